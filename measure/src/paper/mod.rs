//! `doorbell paper`: repeats the measurements of a paper, and shows them beside what was published.
//!
//! `bench` runs `doorbell perf` again and again, and keeps its lines, `rows` are the lines of tests
//! that measure several things at once, and `sections` puts what was measured together. `head` makes
//! the sentence and the figure at the head, and `titles` the titles of figures. Each paper is a folder
//! with the sections of its report.

mod bench;
mod emp;
mod exchange;
mod fast_messages;
mod head;
mod length;
mod open_mx;
mod rmpp;
mod rows;
mod sections;
mod titles;
mod vi_am_splitc;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::ValueEnum;
use doorbell_report::{Note, Report};
use serde_json::json;

use crate::files::{self, Page};
use crate::machine::Machine;
use crate::out::{self, SCHEMA};
use crate::runs::DEVICES;
use crate::{interrupts, runs};
use bench::Bench;
use exchange::Exchanges;
pub use exchange::{Args as ExchangeArgs, NAME as EXCHANGE, run as exchange};
use length::Length;
use sections::Measured;

/// Measures again what a paper measured, here, beside the numbers that it published.
///
/// Without a name it lists the papers. Each table and figure is measured between two processes on
/// this machine, and ends with what the paper concluded and whether that holds here today. Nothing
/// is concluded where something else keeps the machine busy, or where an interval reaches zero. What
/// can't be measured on this machine is listed as such. Ctrl-C ends the measurements early, and what
/// was measured until then is printed and reported.
///
/// The exit status is 0 if everything was measured, 3 if only a part was, as the head of the report
/// says, and 1 if nothing was, or if the report could not be written.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The paper to measure again [default: list the papers]
    #[arg(value_enum)]
    paper: Option<Name>,

    /// Measure on this device: shm, udp, packet or packet-v2; may be given several times [default:
    /// shm and packet; packet and packet-v2 for open-mx, with --quick packet-v2; packet for emp and
    /// rmpp]
    #[arg(long, value_name = "DEV", value_parser = DEVICES, requires = "paper")]
    device: Vec<String>,

    /// Measure with fewer and shorter runs, whose intervals are wider
    #[arg(long, requires = "paper")]
    quick: bool,

    /// As quick, and so short that what is found tells nothing: whether everything can be measured
    #[arg(long, requires = "paper", hide = true)]
    brief: bool,

    /// Everything that was measured as one JSON value instead of text
    #[arg(long, requires = "paper")]
    json: bool,

    /// Every number as comma-separated values instead of text
    #[arg(long, conflicts_with = "json", requires = "paper")]
    csv: bool,

    /// Where the report for a browser is written [default: doorbell-PAPER.html; with --json or
    /// --csv none]
    #[arg(long, value_name = "FILE", requires = "paper")]
    report: Option<PathBuf>,

    /// Write each figure of the report as an SVG file, too, into this directory
    #[arg(long, value_name = "DIR", requires = "paper")]
    svg: Option<PathBuf>,

    /// Draw all figures in the report instead of six; the numbers of all are in the report anyway
    #[arg(long, requires = "paper")]
    all_figures: bool,
}

impl Args {
    fn length(&self) -> Length {
        match (self.brief, self.quick) {
            (true, _) => Length::Brief,
            (false, true) => Length::Quick,
            (false, false) => Length::Full,
        }
    }
}

/// How many figures a report draws unless asked for all of them.
const FIGURES: usize = 6;

const EXAMPLES: &str = "\
Examples:
  doorbell paper                                    lists the papers
  doorbell paper vi-am-splitc                       in three minutes
  doorbell paper vi-am-splitc --quick --device shm  in half a minute
  doorbell paper open-mx                            in three minutes
  doorbell paper vi-am-splitc --csv > numbers.csv";

/// A paper that can be measured again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Name {
    /// Begel, Buonadonna, Culler, Gay: An Analysis of VI Architecture Primitives in Support of
    /// Parallel and Distributed Communication (2001)
    #[value(name = "vi-am-splitc")]
    ViAmSplitC,
    /// Goglin: High-Performance Message Passing over generic Ethernet Hardware with Open-MX (2011)
    #[value(name = "open-mx")]
    OpenMx,
    /// Lauria, Pakin, Chien: Efficient Layering for High Speed Communication: Fast Messages 2.x
    /// (1998)
    #[value(name = "fast-messages")]
    FastMessages,
    /// Shivam, Wyckoff, Panda: EMP: Zero-copy OS-bypass NIC-driven Gigabit Ethernet Message Passing
    /// (2001)
    Emp,
    /// Maccabe, Zhu, Otto, Riesen: Experience in Offloading Protocol Processing to a Programmable
    /// NIC (2002)
    Rmpp,
}

impl Name {
    fn text(self) -> (String, String) {
        let value = self.to_possible_value().expect("no paper is hidden");
        let help = value.get_help().map(ToString::to_string).unwrap_or_default();
        (value.get_name().to_owned(), help)
    }
}

/// Lists the papers, or measures one again, and prints and writes its report.
///
/// # Errors
/// An error if nothing was measured, or if what was measured can't be printed or written.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let Some(paper) = args.paper else { return list().map(|()| ExitCode::SUCCESS) };
    interrupts::handle()?;
    let (name, title) = paper.text();
    let usual = || (!args.json && !args.csv).then(|| format!("doorbell-{name}.html").into());
    let page = Page::begin(args.report.clone().or_else(usual))?;
    files::make_directory(args.svg.as_deref())?;
    let machine = Machine::here(2)?;
    if let Some(warning) = machine.warning() {
        out::note(format_args!("doorbell: {warning}"));
    }
    let (report, Measured { found, failed }) = match paper {
        Name::ViAmSplitC => benched(args, &machine, &["shm", "packet"], vi_am_splitc::report),
        Name::FastMessages => benched(args, &machine, &["shm", "packet"], fast_messages::report),
        // The paper is about Ethernet: without segmentation offload, and with it.
        Name::OpenMx => {
            let devices: &[_] =
                if args.quick || args.brief { &["packet-v2"] } else { &["packet", "packet-v2"] };
            benched(args, &machine, devices, open_mx::report)
        }
        Name::Emp => exchanged(args, &machine, emp::report),
        Name::Rmpp => exchanged(args, &machine, rmpp::report),
    };
    if found.is_empty() && interrupts::is_interrupted() {
        bail!("interrupted before anything was measured");
    }
    if found.is_empty() {
        bail!("nothing was measured\n{}", report.to_text(files::width()));
    }
    let partial = runs::partial(&format!("{} runs", found.len()), failed.len());
    let raw = json!({
        "schema": SCHEMA,
        "paper": name,
        "machine": machine.json(),
        "interrupted": interrupts::is_interrupted(),
        "failed": failed,
        "measured": found,
    });
    let head = match paper {
        Name::ViAmSplitC => vi_am_splitc::HEAD,
        Name::OpenMx => open_mx::HEAD,
        Name::FastMessages => fast_messages::HEAD,
        Name::Emp => emp::HEAD,
        Name::Rmpp => rmpp::HEAD,
    };
    let report = match args.all_figures {
        true => head.on(report),
        false => head.on(report).at_most_figures(FIGURES, "`--all-figures` draws all figures."),
    };
    let mut report = report.subtitle(format!("{title}, measured again")).json(raw.to_string());
    for told in machine.warning().iter().chain(&partial) {
        report = report.note(Note::warning(told.clone()));
    }
    print(args, &report)?;
    if let Some(directory) = &args.svg {
        files::write_figures(directory, &report)?;
    }
    page.finish(&report)?;
    Ok(partial.map_or(ExitCode::SUCCESS, |told| {
        out::note(format_args!("doorbell: {told}"));
        ExitCode::from(runs::PARTIAL)
    }))
}

/// The devices to measure on, unless the command names some.
fn devices(args: &Args, customary: &[&str]) -> Vec<String> {
    match args.device.is_empty() {
        true => customary.iter().map(|&device| device.to_owned()).collect(),
        false => args.device.clone(),
    }
}

/// Makes the report of a paper that is measured by runs of `doorbell perf`.
fn benched(
    args: &Args,
    machine: &Machine,
    customary: &[&str],
    report: fn(&mut Bench, &Machine) -> Report,
) -> (Report, Measured) {
    let mut bench = Bench::new(devices(args, customary), args.length());
    let report = report(&mut bench, machine);
    (report, bench.finish())
}

/// Makes the report of a paper that is measured by exchanges.
fn exchanged(
    args: &Args,
    machine: &Machine,
    report: fn(&mut Exchanges, &[String], &Machine) -> Report,
) -> (Report, Measured) {
    let mut exchanges = Exchanges::new(args.length());
    let report = report(&mut exchanges, &devices(args, &["packet"]), machine);
    (report, exchanges.finish())
}

fn print(args: &Args, report: &Report) -> anyhow::Result<()> {
    match (args.json, args.csv) {
        (true, _) => out::print(&format!("{}\n", report.json.as_deref().unwrap_or("null"))),
        (_, true) => out::print(&report.to_csv()),
        _ => out::show(&report.to_terminal(files::width())),
    }
}

/// Prints the papers' names and titles.
fn list() -> anyhow::Result<()> {
    let width = files::terminal_width().unwrap_or(usize::MAX);
    let lines = Name::value_variants().iter().map(|paper| {
        let (name, title) = paper.text();
        out::wrapped(&format!("{name:16}{title}\n"), width, &" ".repeat(16))
    });
    out::print(&lines.collect::<String>())
}

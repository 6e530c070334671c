//! `doorbell logp`: measures what a message costs, at every layer, on every device that works here.
//!
//! `steps` lists the layers and devices, and measures one after the other through `measure`, or
//! through `remote` with another machine. `page` is a report in tables, with the figures of
//! `figures` and the sentences of `captions`; `digest` is the summary that ends what is printed;
//! `compare` sets two results beside each other, and beside those in
//! `published`. A result as JSON is a `Line`, which papers are measured by, too.

mod captions;
mod compare;
mod digest;
mod figures;
mod measure;
mod page;
mod published;
mod remote;
mod steps;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use doorbell_measure::files::{self, Page};
use doorbell_measure::logp::line::Line;
use doorbell_measure::machine::Machine;
use doorbell_measure::runs::DEVICES;
use doorbell_measure::{interrupts, out, runs, usage};

use compare::Comparison;
use page::Findings;
use remote::Connected;
use steps::{Layer, Step};

/// Measures the parameters of LogP: for how long a processor is busy with a message that it sends
/// (o_s) or receives (o_r), the latency between (L), and the gap between messages (g).
///
/// Two processes on this machine, or on two machines, send each other requests and answers, at
/// every layer and on every device, by the method of Culler, Liu, Martin and Yoshikawa (IEEE Micro,
/// 1996). Each parameter is the mean of eight runs, and lies with a probability of 95 % in the
/// interval beside the mean. Where the sender's processor carries a message all the way, as over a
/// virtual cable, o_s contains that way, and L, which is what remains of half a round trip, comes
/// out near zero or below.
///
/// A table, bars and curves are printed, then a summary that fits a screen; and a report is written
/// for a browser. Ctrl-C ends the
/// measurement early, and what was measured until then is printed and reported.
///
/// The exit status is 0 if everything was measured, 3 if only a part was, as the head of the report
/// says, and 1 if nothing was, or if the report could not be written.
#[derive(clap::Args, Clone)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Measure on this device: shm, udp, packet or packet-v2; may be given several times. Between
    /// machines, name the interface or address, too, as in packet:eth0 [default: all; between
    /// machines udp]
    #[arg(long, value_name = "DEV")]
    device: Vec<String>,

    /// Measure this layer; may be given several times [default: all]
    #[arg(long, value_name = "LAYER", value_enum)]
    layer: Vec<Layer>,

    /// Measure each layer on each device once instead of eight times: the intervals then don't tell
    /// how far another run may be
    #[arg(long)]
    quick: bool,

    /// Wait for the other machine on this address, and measure what that one asks for; how much is
    /// measured, printed and reported is said there
    #[arg(long, value_name = "IP:PORT", value_parser = usage::place)]
    #[arg(conflicts_with_all = ["connect", "layer", "quick", "json", "csv", "report", "svg", "all_figures"])]
    listen: Option<String>,

    /// Measure with the machine that listens on this address
    #[arg(long, value_name = "IP:PORT", value_parser = usage::place)]
    connect: Option<String>,

    /// A line of JSON for each layer and device instead of a table, with the curves
    #[arg(long)]
    json: bool,

    /// Every number as comma-separated values instead of a table; of --compare a line for each
    /// parameter
    #[arg(long, conflicts_with = "json")]
    csv: bool,

    /// Where the report for a browser is written [default: doorbell-logp.html; with --json or --csv
    /// none]
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Write each figure of the report as an SVG file, too, into this directory
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,

    /// Draw all figures in the report instead of six; the numbers of all are in the report anyway
    #[arg(long)]
    all_figures: bool,

    /// Measure nothing, and compare two results that --json has printed
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"])]
    #[arg(conflicts_with_all = ["device", "layer", "quick", "listen", "connect", "report", "svg", "all_figures"])]
    compare: Vec<String>,

    /// Compare by how many times verbs on the same device each layer takes, which hardly depends on
    /// how fast a machine is
    #[arg(long, requires = "compare")]
    ratios: bool,

    /// Exit with 1 if something has become greater by more than this many per cent, not by chance
    #[arg(long, value_name = "PERCENT", requires = "compare")]
    fail_above: Option<f64>,
}

/// How often a layer on a device is measured, each time by processes of their own, and how often
/// when it is to be quick.
const RUNS: [u64; 2] = [8, 1];
/// How many seconds each of these runs measures.
const SECONDS: f64 = 0.65;

const EXAMPLES: &str = "\
Examples:
  doorbell logp                       everything, in two minutes, and a report
  doorbell logp --quick --device shm  shared memory alone, in some seconds
  doorbell logp --json > before.json  for a program to read
  doorbell logp --compare before.json after.json

In continuous integration:
  doorbell logp --compare base.json now.json --ratios --fail-above 25

Between two machines, on the first and on the second:
  doorbell logp --device udp --device packet:eth0 --listen 0.0.0.0:4790
  doorbell logp --device udp --device packet:eth0 --connect 192.0.2.1:4790";

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let [before, after] = &args.compare[..] {
        if args.fail_above.is_some_and(|most| !most.is_finite() || most < 0.0) {
            let why = anyhow!("--fail-above takes a number of per cent that is zero or more");
            return Err(usage::wrong(why));
        }
        let how = Comparison { ratios: args.ratios, fail_above: args.fail_above };
        let form = match (args.json, args.csv) {
            (true, _) => compare::Form::Json,
            (_, true) => compare::Form::Csv,
            _ => compare::Form::Words,
        };
        compare::run(&compare::read(before)?, &compare::read(after)?, &how, form)?;
        return Ok(ExitCode::SUCCESS);
    }
    let devices = devices(args).map_err(usage::wrong)?;
    interrupts::handle()?;
    if let Some(address) = &args.listen {
        return remote::listen(address, &devices).map(|()| ExitCode::SUCCESS);
    }
    let steps = steps::all(&devices, &args.layer);
    let page = Page::begin(args.page())?;
    files::make_directory(args.svg.as_deref())?;
    let machine = Machine::here(if args.connect.is_some() { 1 } else { 2 })?;
    if let Some(warning) = machine.warning() {
        out::note(format_args!("doorbell: {warning}"));
    }
    let connect = |address: &String| Connected::to(address, &machine);
    let mut other = args.connect.as_ref().map(connect).transpose()?;
    let Measurements { lines, failures, runs: measured } =
        measure_all(args, &steps, other.as_mut());
    let all = steps.len() as u64 * args.times();
    let partial = runs::partial(&format!("{measured} of {all} runs"), failures.len());
    let there = other.map(|other| other.machine).unwrap_or_default();
    let between = match &args.connect {
        Some(address) => format!("this machine and that at {address}"),
        None => "two processes on this machine".to_owned(),
    };
    let findings = Findings {
        machine: &machine,
        there: &there,
        lines: &lines,
        failures: &failures,
        between: &between,
        partial: partial.as_deref(),
    };
    if lines.is_empty() && interrupts::is_interrupted() {
        bail!("interrupted after {measured} of {all} runs: nothing was measured");
    }
    if lines.is_empty() {
        let why: Vec<_> = failures.iter().map(|(step, why)| format!("{step}: {why}")).collect();
        bail!("nothing was measured\n{}", why.join("\n"));
    }
    let report = page::report(&findings, args.all_figures);
    match (args.json, args.csv) {
        (true, _) => {
            let lines = lines.iter().map(|line| format!("{}\n", line.json()));
            out::print(&lines.collect::<String>())?;
        }
        (_, true) => out::print(&report.to_csv())?,
        _ => {
            let width = files::width();
            let details = page::summary(&findings).to_terminal(width);
            let digest = digest::text(&lines, machine.warning().is_some(), width);
            out::show(&format!("{details}\n{digest}"))?;
        }
    }
    if args.json || args.csv {
        for (step, why) in &failures {
            out::note(format_args!("doorbell: {step} was not measured: {why}"));
        }
    }
    if let Some(directory) = &args.svg {
        files::write_figures(directory, &report)?;
    }
    page.finish(&report)?;
    Ok(partial.map_or(ExitCode::SUCCESS, |told| {
        out::note(format_args!("doorbell: {told}"));
        ExitCode::from(runs::PARTIAL)
    }))
}

impl Args {
    /// How often each layer on each device is measured.
    fn times(&self) -> u64 {
        RUNS[usize::from(self.quick)]
    }

    /// Where the report is written, if it is.
    fn page(&self) -> Option<PathBuf> {
        let usual = || (!self.json && !self.csv).then(|| "doorbell-logp.html".into());
        self.report.clone().or_else(usual)
    }
}

/// The devices to measure, as they were named.
fn devices(args: &Args) -> anyhow::Result<Vec<String>> {
    let between_machines = args.listen.is_some() || args.connect.is_some();
    for device in &args.device {
        let kind = device.split(':').next().unwrap_or_default();
        let all = DEVICES.join(", ");
        if !DEVICES.contains(&kind) {
            bail!("--device `{device}`: the devices are {all}");
        }
        if !between_machines && kind != device {
            bail!(
                "--device `{device}`: on one machine the devices are {all}, and the interfaces are \
                 made for the measurement; add --listen or --connect for another machine"
            );
        }
        if between_machines && kind.starts_with("packet") && kind == device {
            bail!("--device `{device}`: name the interface, too, as in {device}:eth0");
        }
    }
    Ok(match (args.device.is_empty(), between_machines) {
        (false, _) => args.device.clone(),
        (true, true) => vec!["udp".to_owned()],
        (true, false) => DEVICES.map(str::to_owned).to_vec(),
    })
}

/// The results of the steps.
struct Measurements {
    lines: Vec<Line>,
    /// The steps that failed, and why.
    failures: Vec<(String, String)>,
    /// How many runs have measured something.
    runs: usize,
}

/// Measures all steps, again and again as often as there are runs, or until somebody interrupts.
/// The runs of a step are far apart, so that something that disturbs for a while hits few of them.
fn measure_all(args: &Args, steps: &[Step], mut other: Option<&mut Connected>) -> Measurements {
    let times = args.times();
    interrupts::remember();
    let bar = runs::bar(steps.len() as u64 * times);
    let mut found = vec![Vec::new(); steps.len()];
    let mut failures = vec![None; steps.len()];
    'all: for _ in 0..times {
        for (number, step) in steps.iter().enumerate() {
            bar.set_message(step.to_string());
            bar.inc(1);
            if failures[number].is_some() {
                continue;
            }
            let line = match &mut other {
                Some(other) => other.measure(step, SECONDS),
                None => measure::pair(step, SECONDS),
            };
            match line {
                _ if interrupts::is_interrupted() => break 'all,
                Ok(line) => found[number].push(line),
                Err(why) => failures[number] = Some((step.to_string(), format!("{why:#}"))),
            }
        }
    }
    bar.finish_and_clear();
    let lines = found.iter().filter_map(|lines| Line::of_runs(lines)).collect();
    let runs = found.iter().map(Vec::len).sum();
    Measurements { lines, failures: failures.into_iter().flatten().collect(), runs }
}

//! `doorbell logp`: what a message costs, on every device that works here, at every layer.

mod paper;
mod run;
mod table;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, bail};
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use run::Line;

/// Measures the parameters of LogP: for how long a processor is busy with a message that it sends
/// (o_s) or receives (o_r), the latency between (L), and the gap between messages (g).
///
/// Two processes on this machine send each other requests and answers, at every layer and on every
/// device that works here, by the method of Culler, Liu, Martin and Yoshikawa (IEEE Micro, 1996).
/// Each parameter is a median, and lies with a probability of 95 % in the interval beside it. Where
/// the sender's processor carries a message all the way, as over a virtual cable, o_s contains that
/// way, and L comes out near zero or below: it is what remains of half a round trip.
///
/// The exit status is 0 if something was measured, and 1 if nothing was. Ctrl-C ends the
/// measurement, and what was measured until then is printed.
#[derive(clap::Args, Clone)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The devices: shm, udp, packet, packet-v2; may be given several times [default: all]
    #[arg(long, value_name = "DEV", value_parser = DEVICES)]
    device: Vec<String>,

    /// The layers; may be given several times [default: all]
    #[arg(long, value_name = "LAYER", value_enum)]
    layer: Vec<Layer>,

    /// A quarter of the time, and wider intervals
    #[arg(long)]
    quick: bool,

    /// A line of JSON for each layer and device instead of a table, with the curves
    #[arg(long)]
    json: bool,
}

const DEVICES: [&str; 4] = ["shm", "udp", "packet", "packet-v2"];

const EXAMPLES: &str = "\
Examples:
  doorbell logp                                  everything, two minutes or so
  doorbell logp --quick --device shm             shared memory alone, some seconds
  doorbell logp --layer am --json                Active Messages, for a program to read
Between machines:
  doorbell perf logp_am --device packet:eth0 --listen 0.0.0.0:4790      on one machine, and
  doorbell perf logp_am --device packet:eth0 --connect 192.0.2.1:4790   on the other";

/// A layer that sends messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Layer {
    /// Sends and receives of the NIC
    Verbs,
    /// Requests and replies of Active Messages
    Am,
    /// Split-phase gets of Split-C, by each carrier
    Splitc,
}

/// Whether somebody has interrupted this.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

pub fn run(args: &Args) -> anyhow::Result<()> {
    let steps = run::steps(args);
    // The measuring processes are interrupted, too, by the terminal.
    ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed)).context("handling Ctrl-C")?;
    let bar = bar(steps.len() as u64, args.json);
    let begin = Instant::now();
    let (mut lines, mut failures) = (Vec::new(), Vec::new());
    for (number, step) in steps.iter().enumerate() {
        bar.set_message(step.to_string());
        bar.set_position(number as u64);
        match run::measure(step, args.quick) {
            _ if INTERRUPTED.load(Ordering::Relaxed) => break,
            Ok(line) => {
                if args.json {
                    println!("{}", line.json);
                }
                lines.push(line);
            }
            Err(why) => failures.push((step, why)),
        }
    }
    bar.finish_and_clear();
    if !args.json {
        print!("{}", table::of(&lines));
        println!("\n{}", paper::TABLE);
    }
    for (step, why) in &failures {
        eprintln!("doorbell: {step} was not measured: {why:#}");
    }
    let (measured, all) = (lines.len(), steps.len());
    if INTERRUPTED.load(Ordering::Relaxed) {
        eprintln!(
            "doorbell: interrupted after {:.0?}; {measured} of {all} were measured",
            begin.elapsed()
        );
    }
    if lines.is_empty() {
        bail!("nothing was measured");
    }
    Ok(())
}

/// A bar with the time that is left, on standard error if that is a terminal.
fn bar(steps: u64, hidden: bool) -> ProgressBar {
    let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(steps), target);
    let style = ProgressStyle::with_template("{msg:24} {wide_bar} {pos}/{len}, {eta} left");
    bar.set_style(style.expect("the template is one"));
    bar
}

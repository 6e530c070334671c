//! Runs of `doorbell perf` by commands that measure again and again: each is a process of its own,
//! and Ctrl-C ends all of them.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, anyhow};
use indicatif::{ProgressBar, ProgressStyle};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::{interrupts, out};

/// The devices that both ends of a measurement on one machine can be given.
pub const DEVICES: [&str; 4] = ["shm", "udp", "packet", "packet-v2"];
/// The exit status of a command that has measured and reported a part only: it was interrupted, or
/// something could not be measured.
pub const PARTIAL: u8 = 3;

/// Returns the warning at the head of a report of which only a part was measured; `None` if
/// everything was.
/// `measured` tells how much was, as in "3 of 5 layers and devices".
pub fn partial(measured: &str, failed: usize) -> Option<String> {
    let left_out = "What was not measured is left out, and nothing is concluded of it.";
    match (interrupts::is_interrupted(), failed) {
        (true, _) => Some(format!(
            "This report is a part only: the measurements were interrupted after {measured}. \
             {left_out}"
        )),
        (false, 0) => None,
        (false, 1) => Some(format!(
            "This report is a part only: a measurement has failed, and is named below with the \
             reason. {left_out}"
        )),
        (false, failed) => Some(format!(
            "This report is a part only: {failed} measurements have failed, and are named below \
             with the reasons. {left_out}"
        )),
    }
}

/// A command that runs this program again.
pub fn this_program() -> anyhow::Result<Command> {
    std::env::current_exe().map(Command::new).context("looking for this program")
}

/// Runs this program with arguments by which it prints a line of JSON, and reads the line.
pub fn line<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> anyhow::Result<Value> {
    let output = this_program()?.args(arguments).stdin(Stdio::null()).output();
    let output = output.context("starting the measurement")?;
    if logs() {
        out::pass_on(&output.stderr);
    }
    if !output.status.success() {
        return Err(failed(output.status, &output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("reading what was measured")
}

/// The error of a process that has failed: what it said, or else its exit status. An interrupt that
/// ended the process counts as one of this program.
pub fn failed(status: ExitStatus, said: &[u8]) -> anyhow::Error {
    if status.signal() == Some(Signal::SIGINT as i32) {
        interrupts::note();
    }
    let said = anstream::adapter::strip_str(&String::from_utf8_lossy(said)).to_string();
    // What was logged before the error is no part of it.
    let begin = said.find("doorbell: ").filter(|_| logs()).unwrap_or(0);
    let said = said[begin..].trim().replace("doorbell: ", "");
    anyhow!("{}", if said.is_empty() { status.to_string() } else { said })
}

/// Whether spans and events are written to standard error, as `RUST_LOG` asks.
fn logs() -> bool {
    std::env::var_os("RUST_LOG").is_some_and(|asked| !asked.is_empty())
}

/// A bar with the time that is left, on standard error if that is a terminal.
pub fn bar(count: u64) -> ProgressBar {
    let bar = ProgressBar::new(count);
    let style = ProgressStyle::with_template("{msg:44} {wide_bar} {pos}/{len}, {eta} left");
    bar.set_style(style.expect("the template is one"));
    bar
}

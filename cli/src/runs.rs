//! Runs of `doorbell perf` by commands that measure again and again: each is a process of its own,
//! and Ctrl-C ends all of them.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, anyhow};
use indicatif::{ProgressBar, ProgressStyle};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::interrupts;

/// A command that runs this program again.
pub fn this_program() -> anyhow::Result<Command> {
    std::env::current_exe().map(Command::new).context("looking for this program")
}

/// Runs this program with arguments by which it prints a line of JSON, and reads the line.
pub fn line<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> anyhow::Result<Value> {
    let output = this_program()?.args(arguments).stdin(Stdio::null()).output();
    let output = output.context("starting the measurement")?;
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
    let said = String::from_utf8_lossy(said);
    let said = said.trim().replace("doorbell: ", "");
    anyhow!("{}", if said.is_empty() { status.to_string() } else { said })
}

/// A bar with the time that is left, on standard error if that is a terminal.
pub fn bar(count: u64) -> ProgressBar {
    let bar = ProgressBar::new(count);
    let style = ProgressStyle::with_template("{msg:44} {wide_bar} {pos}/{len}, {eta} left");
    bar.set_style(style.expect("the template is one"));
    bar
}

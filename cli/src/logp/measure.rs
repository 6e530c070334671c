//! A measurement: processes of this program that do it, and what they print.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, anyhow, bail};
use nix::sys::signal::Signal;
use thiserror::Error;

use super::line::Line;
use super::steps::Step;

/// Measures a step between two processes on this machine.
pub fn pair(step: &Step, seconds: f64) -> anyhow::Result<Line> {
    let mut command = this_program()?;
    command.args(step.arguments(seconds)).arg("--pair").stdin(Stdio::null());
    finished(command)
}

/// Measures a step with a machine that listens at an address.
pub fn connected(step: &Step, seconds: f64, address: &str) -> anyhow::Result<Line> {
    let mut command = this_program()?;
    command.args(step.arguments(seconds)).args(["--connect", address]).stdin(Stdio::null());
    finished(command)
}

/// A command that runs this program again.
pub fn this_program() -> anyhow::Result<Command> {
    std::env::current_exe().map(Command::new).context("looking for this program")
}

/// Runs a command to its end, and reads the line that it prints.
fn finished(mut command: Command) -> anyhow::Result<Line> {
    let output = command.output().context("starting the measurement")?;
    if !output.status.success() {
        return Err(failed(output.status, &output.stderr));
    }
    let json = serde_json::from_slice(&output.stdout).context("reading what was measured")?;
    match Line::from_json(json) {
        Some(line) => Ok(line),
        None => bail!("the measurement printed no parameter of LogP"),
    }
}

/// A measurement that somebody has interrupted.
#[derive(Debug, Error)]
#[error("it was interrupted")]
pub struct Interrupted;

/// What a process said that has failed.
pub fn failed(status: ExitStatus, said: &[u8]) -> anyhow::Error {
    if status.signal() == Some(Signal::SIGINT as i32) {
        return Interrupted.into();
    }
    let said = String::from_utf8_lossy(said);
    let said = said.trim().replace("doorbell: ", "");
    anyhow!("{}", if said.is_empty() { status.to_string() } else { said })
}

//! A measurement of LogP's parameters by processes of this program.

use anyhow::Context;
use doorbell_measure::logp::line::Line;
use doorbell_measure::runs;

use super::steps::Step;

/// Measures a step between two processes on this machine.
pub fn pair(step: &Step, seconds: f64) -> anyhow::Result<Line> {
    finished(step, seconds, ["--pair"])
}

/// Measures a step with a machine that listens at an address.
pub fn connected(step: &Step, seconds: f64, address: &str) -> anyhow::Result<Line> {
    finished(step, seconds, ["--connect", address])
}

fn finished<const N: usize>(step: &Step, seconds: f64, how: [&str; N]) -> anyhow::Result<Line> {
    let how = how.into_iter().map(ToOwned::to_owned);
    let json = runs::line(step.arguments(seconds).into_iter().chain(how))?;
    Line::from_json(json).context("the measurement printed no parameter of LogP")
}

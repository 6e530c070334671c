//! The parts of an exchange's time, from rounds of many exchanges.

use std::time::{Duration, Instant};

use anyhow::Context;
use doorbell_am_costs::costs::{Cost, taken};
use doorbell_logp::Estimate;

use super::Exchange;
use crate::perf::Plan;

/// The categories, in the order in which they are told.
pub const COSTS: [Cost; 5] =
    [Cost::Base, Cost::Notification, Cost::FlowControl, Cost::Semantics, Cost::Handlers];

/// What the time of an exchange is spent on, in nanoseconds: estimates from several rounds.
#[derive(Clone, PartialEq, Debug)]
pub struct Breakdown {
    /// How many exchanges a round had.
    pub exchanges: u64,
    /// The time spent on each category, in the order of [`COSTS`].
    pub parts: [Estimate; COSTS.len()],
    /// What the parts of a round amount to.
    pub total: Estimate,
    /// The time that measuring took, which is in no part.
    pub subtracted: Estimate,
    /// The time of an exchange without spans.
    pub uncounted: Estimate,
}

/// What a round has found, in nanoseconds an exchange.
struct Round {
    parts: [f64; COSTS.len()],
    subtracted: f64,
    uncounted: f64,
}

/// Measures an exchange without spans and with spans, in turn. Returns how many rounds there were,
/// and what they found.
pub async fn measure(
    mut plain: impl Exchange,
    mut counted: impl Exchange,
    plan: &Plan,
) -> anyhow::Result<(u64, Breakdown)> {
    let exchanges = fitting(&mut plain)?;
    repeat(&mut counted, exchanges)?;
    let meter = plan.meter();
    let (mut rounds, begin) = (Vec::new(), Instant::now());
    loop {
        rounds.push(round(&mut plain, &mut counted, exchanges)?);
        let done = rounds.len() as u64;
        meter.at(done, begin.elapsed());
        // The tasks that see to connections run, too.
        tokio::task::yield_now().await;
        if plan.amount.is_over(done, || begin.elapsed()) {
            break;
        }
    }
    let estimate = |of: &dyn Fn(&Round) -> f64| Estimate::of(rounds.iter().map(of).collect());
    let found = (|| {
        let mut parts = [Estimate { value: 0.0, low: 0.0, high: 0.0 }; COSTS.len()];
        for (at, part) in parts.iter_mut().enumerate() {
            *part = estimate(&|round| round.parts[at])?;
        }
        Some(Breakdown {
            exchanges,
            parts,
            total: estimate(&|round| round.parts.iter().sum())?,
            subtracted: estimate(&|round| round.subtracted)?,
            uncounted: estimate(&|round| round.uncounted)?,
        })
    })();
    Ok((rounds.len() as u64, found.context("a time was not a number")?))
}

fn round(
    plain: &mut impl Exchange,
    counted: &mut impl Exchange,
    exchanges: u64,
) -> anyhow::Result<Round> {
    let uncounted = repeat(plain, exchanges)?.as_nanos() as f64;
    taken();
    repeat(counted, exchanges)?;
    let costs = taken();
    let each = |nanos: f64| nanos / exchanges as f64;
    if std::env::var("DBG").is_ok() {
        eprintln!("outside {}", each(costs.outside()));
    }
    Ok(Round {
        parts: COSTS.map(|cost| each(costs.on(cost))),
        subtracted: each(costs.measuring()),
        uncounted: each(uncounted),
    })
}

/// How many exchanges take long enough for a round, behind as many that let caches and branch
/// predictors settle.
fn fitting(exchange: &mut impl Exchange) -> anyhow::Result<u64> {
    const LONG_ENOUGH: Duration = Duration::from_millis(10);
    let mut exchanges = 64;
    while repeat(exchange, exchanges)? < LONG_ENOUGH {
        exchanges *= 2;
    }
    Ok(exchanges)
}

/// Repeats an exchange, and returns how long all of it took.
fn repeat(exchange: &mut impl Exchange, times: u64) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    for _ in 0..times {
        exchange.once()?;
    }
    Ok(begin.elapsed())
}

//! The parts of an exchange's time, from rounds of many exchanges.
//!
//! In each round the same exchanges are made by the code that programs run, by the code with spans
//! of which none is watched, and once for each category while that is watched. Where the counter is
//! read when a category begins and ends, half of what the reading takes falls into the category and
//! half out of it. So half of what the watching has added to the whole is subtracted from the
//! category.

use std::time::Instant;

use anyhow::Context;
use doorbell_am_costs::costs::{Cost, span, watch};
use doorbell_logp::Estimate;

use super::Exchange;
use crate::perf::Plan;

/// The categories, in the order in which they are told.
pub const COSTS: [Cost; 5] =
    [Cost::Base, Cost::Notification, Cost::FlowControl, Cost::Semantics, Cost::Handlers];

/// What the time of an exchange is spent on, in nanoseconds: estimates from several rounds.
#[derive(Clone, PartialEq, Debug)]
pub struct Breakdown {
    /// How many exchanges a round had, each time.
    pub exchanges: u64,
    /// The time spent on each category, in the order of [`COSTS`].
    pub parts: [Estimate; COSTS.len()],
    /// What the parts of a round amount to.
    pub total: Estimate,
    /// What was subtracted from the parts of a round for reading the counter.
    pub subtracted: Estimate,
    /// The time of an exchange with spans that are not watched.
    pub unwatched: Estimate,
    /// The time of an exchange without spans.
    pub uncounted: Estimate,
}

/// What a round has found, in nanoseconds an exchange.
struct Round {
    parts: [f64; COSTS.len()],
    subtracted: f64,
    unwatched: f64,
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
    let found = Breakdown::of(exchanges, &rounds).context("no time was measured")?;
    Ok((rounds.len() as u64, found))
}

impl Breakdown {
    fn of(exchanges: u64, rounds: &[Round]) -> Option<Self> {
        let estimate =
            |of: &dyn Fn(&Round) -> f64| Estimate::of(rounds.iter().map(of).collect::<Vec<_>>());
        let mut parts = [estimate(&|round| round.parts[0])?; COSTS.len()];
        for (at, part) in parts.iter_mut().enumerate() {
            *part = estimate(&|round| round.parts[at])?;
        }
        Some(Self {
            exchanges,
            parts,
            total: estimate(&|round| round.parts.iter().sum())?,
            subtracted: estimate(&|round| round.subtracted)?,
            unwatched: estimate(&|round| round.unwatched)?,
            uncounted: estimate(&|round| round.uncounted)?,
        })
    }
}

fn round(
    plain: &mut impl Exchange,
    counted: &mut impl Exchange,
    exchanges: u64,
) -> anyhow::Result<Round> {
    // What ran before, the other exchange among that, has left the caches in another state.
    repeat(plain, exchanges / 4)?;
    let uncounted = repeat(plain, exchanges)?;
    repeat(counted, exchanges / 4)?;
    let mut watched = |cost| {
        let (took, spent) = watch(cost, || {
            // What has no span of its own begins requests and takes values.
            let _semantics = span(Cost::Semantics);
            repeat(counted, exchanges)
        });
        Ok::<_, anyhow::Error>((took?, spent / exchanges as f64))
    };
    let (unwatched, _) = watched(None)?;
    let (mut parts, mut subtracted) = ([0.0; COSTS.len()], 0.0);
    for (part, cost) in parts.iter_mut().zip(COSTS) {
        let (took, spent) = watched(Some(cost))?;
        let reading = (took - unwatched) / 2.0;
        *part = spent - reading;
        subtracted += reading;
    }
    Ok(Round { parts, subtracted, unwatched, uncounted })
}

/// How many exchanges take long enough, behind as many that let caches and branch predictors
/// settle: a millisecond, in which a thread is seldom interrupted.
fn fitting(exchange: &mut impl Exchange) -> anyhow::Result<u64> {
    const LONG_ENOUGH: f64 = 1e6;
    let mut exchanges = 64;
    while repeat(exchange, exchanges)? * (exchanges as f64) < LONG_ENOUGH {
        exchanges *= 2;
    }
    Ok(exchanges)
}

/// Repeats an exchange, and returns how many nanoseconds one of them took in the mean.
fn repeat(exchange: &mut impl Exchange, times: u64) -> anyhow::Result<f64> {
    let begin = Instant::now();
    for _ in 0..times {
        exchange.once()?;
    }
    Ok(begin.elapsed().as_nanos() as f64 / times as f64)
}

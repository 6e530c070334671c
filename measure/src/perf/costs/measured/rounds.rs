//! The parts of an exchange's time, from rounds of many exchanges.
//!
//! In each round the same exchanges are made by the code that programs run, by the code with spans
//! of which none is watched, and once for each category while that is watched. Where the counter is
//! read when a category begins and ends, half of what the reading takes falls into the category and
//! half out of it. So half of what the watching has added to the whole is subtracted from the
//! category. A round does all of that several times, in pieces of which the median counts: so a few
//! pieces in which something else had the processor change nothing.

use std::time::Instant;

use anyhow::Context;
use doorbell_am_costs::costs::{Cost, span, watch};
use doorbell_logp::Estimate;

use super::exchange::Exchange;
use crate::perf::Plan;
use crate::perf::figures::breakdown::{Breakdown, PARTS};

/// The category that each part of a breakdown is.
const COSTS: [Cost; PARTS] =
    [Cost::Base, Cost::Notification, Cost::FlowControl, Cost::Semantics, Cost::Handlers];

/// The findings of a round, in nanoseconds an exchange.
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
        rounds.extend(round(&mut plain, &mut counted, exchanges)?);
        let done = rounds.len() as u64;
        meter.at(done, begin.elapsed());
        // The tasks that see to connections run, too.
        tokio::task::yield_now().await;
        if plan.amount.is_over(done, || begin.elapsed()) {
            break;
        }
    }
    let found = breakdown(exchanges, &rounds).context("no time was measured")?;
    Ok((rounds.len() as u64, found))
}

fn breakdown(exchanges: u64, rounds: &[Round]) -> Option<Breakdown> {
    let estimate =
        |of: &dyn Fn(&Round) -> f64| Estimate::of(rounds.iter().map(of).collect::<Vec<_>>());
    let mut parts = [estimate(&|round| round.parts[0])?; COSTS.len()];
    for (at, part) in parts.iter_mut().enumerate() {
        *part = estimate(&|round| round.parts[at])?;
    }
    Some(Breakdown {
        exchanges,
        parts,
        total: estimate(&|round| round.parts.iter().sum())?,
        subtracted: estimate(&|round| round.subtracted)?,
        unwatched: estimate(&|round| round.unwatched)?,
        uncounted: estimate(&|round| round.uncounted)?,
    })
}

/// The pieces of a round: an exchange without spans, one with spans that are not watched, and for
/// each category the time spent on that, less half of what the whole took meanwhile.
#[derive(Default)]
struct Pieces {
    uncounted: Vec<f64>,
    unwatched: Vec<f64>,
    halved: [Vec<f64>; COSTS.len()],
    took: [Vec<f64>; COSTS.len()],
}

fn round(
    plain: &mut impl Exchange,
    counted: &mut impl Exchange,
    exchanges: u64,
) -> anyhow::Result<Option<Round>> {
    /// How many pieces of each kind there are, of which the median counts.
    const PIECES: usize = 9;
    let mut pieces = Pieces::default();
    for _ in 0..PIECES {
        pieces.sweep(plain, counted, exchanges)?;
    }
    Ok(pieces.medians())
}

impl Pieces {
    /// Measures one piece of each kind.
    fn sweep(
        &mut self,
        plain: &mut impl Exchange,
        counted: &mut impl Exchange,
        exchanges: u64,
    ) -> anyhow::Result<()> {
        // What ran before, the other exchange among that, has left the caches in another state.
        repeat(plain, exchanges / 4)?;
        self.uncounted.push(repeat(plain, exchanges)?);
        repeat(counted, exchanges / 4)?;
        let mut watched = |cost| {
            let (took, spent) = watch(cost, || {
                // What has no span of its own begins requests and takes values.
                let _semantics = span(Cost::Semantics);
                repeat(counted, exchanges)
            });
            Ok::<_, anyhow::Error>((took?, spent / exchanges as f64))
        };
        self.unwatched.push(watched(None)?.0);
        for (at, cost) in COSTS.into_iter().enumerate() {
            let (took, spent) = watched(Some(cost))?;
            self.halved[at].push(spent - took / 2.0);
            self.took[at].push(took);
        }
        Ok(())
    }

    fn medians(self) -> Option<Round> {
        let median = |values| Some(Estimate::of(values)?.value);
        let unwatched = median(self.unwatched)?;
        let (mut parts, mut subtracted) = ([0.0; COSTS.len()], 0.0);
        for ((part, halved), took) in parts.iter_mut().zip(self.halved).zip(self.took) {
            *part = median(halved)? + unwatched / 2.0;
            subtracted += (median(took)? - unwatched) / 2.0;
        }
        Some(Round { parts, subtracted, unwatched, uncounted: median(self.uncounted)? })
    }
}

/// How many exchanges are timed together: as many as take long enough for the clock, and not so
/// long that a thread is often interrupted meanwhile. Caches and branch predictors settle by that,
/// too.
fn fitting(exchange: &mut impl Exchange) -> anyhow::Result<u64> {
    const LONG_ENOUGH: f64 = 2e5;
    let mut exchanges = 64;
    // Of two times the shorter one, which was hardly interrupted.
    while repeat(exchange, exchanges)?.min(repeat(exchange, exchanges)?) * (exchanges as f64)
        < LONG_ENOUGH
    {
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

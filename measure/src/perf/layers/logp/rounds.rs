//! The rounds of a measurement: how many there are, and the waits for answers between them.

use anyhow::Context;
use doorbell_logp::{Measurement, Monotonic, Plan as Rounds, Requester};

use crate::perf::figures::logp_result::LogpResult;
use crate::perf::layers::verbs::Beat;
use crate::perf::shared::patience::Patience;
use crate::perf::{Amount, Plan};

/// How many requests may be under way at a time.
pub const WINDOW: usize = 64;
/// The longest payload of a request.
pub const LONGEST: usize = 65_536;
/// How many rounds there are, however long they take, where time limits a measurement: with fewer,
/// an interval says nothing.
const FEWEST_ROUNDS: u64 = 7;

/// How long an end that measures has waited for an answer. While it measures, nothing else of its
/// thread runs that would notice that the other end has gone.
#[derive(Default)]
pub struct Waiting(Patience);

impl Waiting {
    /// Counts another look for answers, which found some or none.
    ///
    /// # Errors
    /// When none has come for too long.
    #[inline]
    pub fn look(&mut self, found: bool) -> anyhow::Result<()> {
        if found {
            self.0 = Patience::default();
            return Ok(());
        }
        self.0.spend("an answer").map(drop)
    }
}

/// Measures by a requester. Returns how many rounds there were, what they found, and the requester.
pub async fn measure<R>(
    requester: R,
    plan: &Plan,
    beat: &Beat,
) -> anyhow::Result<(u64, LogpResult, R)>
where
    R: Requester<Error = anyhow::Error>,
{
    let rounds = match plan.amount {
        Amount::Times(times) => usize::try_from(times)?,
        Amount::For(_) => usize::MAX,
    };
    // Many short rounds rather than few long ones: what disturbs hits the fewer of them.
    let plan_of_rounds = Rounds { rounds, pieces: 8, warm_up: 2 * WINDOW, ..Rounds::quick() };
    let meter = plan.meter();
    let begin = std::time::Instant::now();
    let mut measurement = Measurement::new(requester, Monotonic::new(), plan_of_rounds)?;
    while measurement.round()? {
        let done = measurement.progress().0 as u64;
        beat.count();
        meter.at(done, begin.elapsed());
        // The tasks that see to connections run, too.
        tokio::task::yield_now().await;
        if done >= FEWEST_ROUNDS && plan.amount.has_passed(|| begin.elapsed()) {
            break;
        }
    }
    let known = LogpResult {
        parameters: measurement.parameters().context("no round was done")?,
        bursts: measurement.bursts().medians(),
        steady: measurement.steady().medians(),
        long: measurement.long().medians(),
    };
    Ok((measurement.progress().0 as u64, known, measurement.into_requester()))
}

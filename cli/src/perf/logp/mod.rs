//! The parameters of LogP, of each layer: one end sends requests, and the other answers each.

mod am;
mod splitc;
mod verbs;

use anyhow::Context;
use doorbell_logp::{Measurement, Monotonic, Parameters, Plan as Rounds, Point, Requester};

use super::patience::Patience;
use super::peer::Peer;
use super::report::{Figures, Found};
use super::test::Layer;
use super::verbs::{Beat, Guard, open};
use super::{Amount, Place, Plan};

/// How many requests may be under way at a time.
const WINDOW: usize = 64;
/// The longest payload of a request.
const LONGEST: usize = 65_536;
/// How many rounds there are, however long they take, where time limits a measurement: with fewer,
/// an interval says nothing.
const FEWEST_ROUNDS: u64 = 7;

/// How long an end that measures has waited for an answer. While it measures, nothing else of its
/// thread runs that would notice that the other end has gone.
#[derive(Default)]
struct Waiting(Patience);

impl Waiting {
    /// One more look for answers, which found some or none.
    ///
    /// # Errors
    /// When none has come for too long.
    #[inline]
    fn look(&mut self, found: bool) -> anyhow::Result<()> {
        if found {
            self.0 = Patience::default();
            return Ok(());
        }
        self.0.spend("an answer").map(drop)
    }
}

/// What a measurement has found.
#[derive(Clone, PartialEq, Debug)]
pub struct Known {
    pub parameters: Parameters,
    /// How a burst becomes steady, by its length and the computation behind each request.
    pub bursts: Vec<Point>,
    /// A steady rate, by the computation behind each request.
    pub steady: Vec<Point>,
    /// A steady rate, by the length of a request.
    pub long: Vec<Point>,
}

/// Runs one end of a measurement.
pub fn run(
    layer: Layer,
    plan: &Plan,
    peer: &mut Peer,
    place: &Place<'_>,
) -> anyhow::Result<Option<Figures>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("a runtime")?.block_on(async {
        let nic = open(plan, place)?;
        let guard = Guard::over(&nic, peer)?;
        let capabilities = *nic.capabilities();
        let found = match layer {
            Layer::Verbs => verbs::run(nic, &guard, plan, peer).await?,
            Layer::Am => am::run(&nic, &guard, plan, peer).await?,
            Layer::SplitC => splitc::run(&nic, &guard, plan, peer, place).await?,
        };
        Ok(found.map(|(iters, known)| Figures {
            device: Some(capabilities.name),
            iters,
            found: Found::LogP(Box::new(known), capabilities),
        }))
    })
}

/// Measures by a requester. Returns how many rounds there were, what they found, and the requester.
async fn measure<R>(requester: R, plan: &Plan, beat: &Beat) -> anyhow::Result<(u64, Known, R)>
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
    let known = Known {
        parameters: measurement.parameters().context("no round was done")?,
        bursts: measurement.bursts().medians(),
        steady: measurement.steady().medians(),
        long: measurement.long().medians(),
    };
    Ok((measurement.progress().0 as u64, known, measurement.into_requester()))
}

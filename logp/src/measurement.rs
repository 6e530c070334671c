//! A measurement, round by round.

use std::fmt;

use crate::bursts::Bench;
use crate::clock::Clock;
use crate::curves::{Curve, Point};
use crate::estimate::{Estimate, median};
use crate::parameters::Parameters;
use crate::plan::{Plan, PlanError};
use crate::requester::Requester;

/// The lengths of the bursts that [curves](Measurement::bursts) show.
const BURSTS: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// The lengths of the computations behind each request, in gaps, from which the overhead of
/// receiving is computed.
const COMPUTATIONS: [u32; 3] = [2, 3, 4];
/// The longest burst that is expected to be over before the first answer has come.
const LONGEST_SHORT: usize = 32;
/// The relative difference up to which the gap and the processor's time for a request count as
/// equal.
const SAME: f64 = 0.05;

/// A measurement of the parameters of LogP.
///
/// [`round`](Self::round) measures one round of the plan, and may be called as long as there is
/// time; [`parameters`](Self::parameters) are those of the rounds so far.
pub struct Measurement<R, C> {
    bench: Bench<R, C>,
    plan: Plan,
    done: usize,
    rounds: Rounds,
    bursts: Curve,
    steady: Curve,
    long: Curve,
}

/// The parameters that each round has found, in nanoseconds.
#[derive(Default)]
struct Rounds {
    send_overhead: Vec<f64>,
    receive_overhead: Vec<f64>,
    latency: Vec<f64>,
    gap: Vec<f64>,
    gap_per_byte: Vec<f64>,
    round_trip: Vec<f64>,
}

impl<R: Requester, C: Clock> Measurement<R, C> {
    /// Makes a measurement of the connection that `requester` sends by.
    ///
    /// # Errors
    /// When the plan can't be followed.
    pub fn new(requester: R, clock: C, plan: Plan) -> Result<Self, PlanError> {
        plan.check()?;
        let bench = Bench::new(requester, clock);
        let (bursts, steady, long) = Default::default();
        Ok(Self { bench, plan, done: 0, rounds: Rounds::default(), bursts, steady, long })
    }

    /// Measures each parameter and each point of the curves once. Returns whether the plan has more
    /// rounds.
    ///
    /// # Errors
    /// When the connection fails. What was found in the rounds before stays.
    pub fn round(&mut self) -> Result<bool, R::Error> {
        let pieces = (self.plan.warm_up, self.plan.pieces, self.plan.steady);
        let round_trip = self.median(8, Bench::round_trip)?;
        let send_overhead = self.send_overhead(round_trip)?;
        let gap = self.bench.steady(pieces, 0.0, 0)?;
        let point = Point { burst: pieces.2, gaps: 0, computation: 0.0, bytes: 0, nanos: gap };
        self.steady.0.push(point);
        let mut overheads = Vec::new();
        for gaps in COMPUTATIONS {
            let computation = f64::from(gaps) * gap;
            let takes = self.bench.computation(computation);
            let nanos = self.bench.steady(pieces, computation, 0)?;
            self.steady.0.push(Point { gaps, computation: takes, nanos, ..point });
            overheads.push(nanos - takes - send_overhead);
        }
        let receive_overhead = median(overheads);
        let mut times = Vec::new();
        for &bytes in &self.plan.lengths {
            let nanos = self.bench.steady(pieces, 0.0, bytes)?;
            self.long.0.push(Point { bytes, nanos, ..point });
            times.push((bytes as f64, nanos));
        }
        self.rounds.gap_per_byte.extend(slope(&times));
        self.rounds.send_overhead.push(send_overhead);
        self.rounds.receive_overhead.push(receive_overhead);
        self.rounds.latency.push(round_trip / 2.0 - send_overhead - receive_overhead);
        self.rounds.gap.push(gap);
        self.rounds.round_trip.push(round_trip);
        self.curve(gap)?;
        self.done += 1;
        Ok(self.done < self.plan.rounds)
    }

    /// The time of a request of a burst that is over before the first answer has come, if there is
    /// such a burst. The longest such burst counts, since the clock's own cost matters least there.
    fn send_overhead(&mut self, round_trip: f64) -> Result<f64, R::Error> {
        let alone = self.median(1, |bench| bench.short(1))?;
        let fits = (round_trip / 2.0 / alone.max(1.0)) as usize;
        let burst = fits.clamp(1, LONGEST_SHORT);
        self.median(4, |bench| bench.short(burst))
    }

    /// The points of a round that show how a burst becomes steady.
    fn curve(&mut self, gap: f64) -> Result<(), R::Error> {
        for burst in BURSTS {
            for gaps in [0, COMPUTATIONS[0]] {
                let computation = f64::from(gaps) * gap;
                let nanos = self.bench.burst(burst, computation)?;
                self.bursts.0.push(Point { burst, gaps, computation, bytes: 0, nanos });
            }
        }
        Ok(())
    }

    fn median(
        &mut self,
        times: usize,
        measure: impl Fn(&mut Bench<R, C>) -> Result<f64, R::Error>,
    ) -> Result<f64, R::Error> {
        let count = times * self.plan.pieces;
        let all: Result<_, _> = (0..count).map(|_| measure(&mut self.bench)).collect();
        all.map(median)
    }

    /// The rounds that are done, and the rounds of the plan.
    pub fn progress(&self) -> (usize, usize) {
        (self.done, self.plan.rounds)
    }

    /// The parameters by the rounds so far; `None` before the first one is done.
    pub fn parameters(&self) -> Option<Parameters> {
        let Rounds { send_overhead, receive_overhead, latency, gap, gap_per_byte, round_trip } =
            &self.rounds;
        let [send_overhead, receive_overhead, latency, gap, round_trip] =
            [send_overhead, receive_overhead, latency, gap, round_trip]
                .map(|values| Estimate::of(values.clone()));
        let (send_overhead, receive_overhead, gap) = (send_overhead?, receive_overhead?, gap?);
        let busy = send_overhead.value + receive_overhead.value;
        Some(Parameters {
            send_overhead,
            receive_overhead,
            latency: latency?,
            gap,
            gap_is_of_the_processor: (gap.value - busy).abs() <= SAME * gap.value,
            gap_per_byte: Estimate::of(gap_per_byte.clone()),
            round_trip: round_trip?,
        })
    }

    /// The time of a request of a burst, by the length of the burst: without a computation behind
    /// each request, and with a computation of two gaps.
    pub fn bursts(&self) -> &Curve {
        &self.bursts
    }

    /// The time of a request at a steady rate, by the computation behind each request.
    pub fn steady(&self) -> &Curve {
        &self.steady
    }

    /// The time of a request at a steady rate, by the length of the request.
    pub fn long(&self) -> &Curve {
        &self.long
    }

    /// Ends the measurement, and returns the requester.
    pub fn into_requester(self) -> R {
        self.bench.into_requester()
    }
}

impl<R, C> fmt::Debug for Measurement<R, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plan, done, .. } = self;
        f.debug_struct("Measurement")
            .field("plan", plan)
            .field("done", done)
            .finish_non_exhaustive()
    }
}

/// The slope of the line nearest to some points, by least squares; `None` if there are fewer than
/// two.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let both: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let one: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    (points.len() > 1).then_some(both / one)
}

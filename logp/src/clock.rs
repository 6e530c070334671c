//! The clock of a measurement, and computations that take a certain time.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// A clock that a measurement reads, with computations of a given length for the processor.
pub trait Clock {
    /// The time in nanoseconds since any fixed moment.
    fn now(&self) -> f64;

    /// Computes for about `nanos` nanoseconds. The real duration is measured, so it need not be
    /// exact, but must be the same for each call.
    fn compute(&self, nanos: f64);
}

/// The monotonic clock of this machine.
#[derive(Clone, Debug)]
pub struct Monotonic {
    begin: Instant,
    /// The steps of the computation per nanosecond.
    steps: f64,
}

impl Monotonic {
    /// Makes a clock, and measures for some milliseconds how fast this processor computes.
    #[must_use]
    pub fn new() -> Self {
        let begin = Instant::now();
        let attempt = || {
            let (steps, begin) = (100_000, Instant::now());
            spin(steps);
            steps as f64 / begin.elapsed().max(Duration::from_nanos(1)).as_nanos() as f64
        };
        // The fastest attempt is the one that was not disturbed.
        let steps = (0..16).map(|_| attempt()).fold(0.0, f64::max);
        Self { begin, steps }
    }
}

impl Default for Monotonic {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for Monotonic {
    #[inline]
    fn now(&self) -> f64 {
        self.begin.elapsed().as_nanos() as f64
    }

    #[inline]
    fn compute(&self, nanos: f64) {
        spin((nanos * self.steps) as u64);
    }
}

/// Computes `steps` steps, each of which needs the result of the step before.
#[inline(never)]
fn spin(steps: u64) {
    let mut state = 1_u64;
    for _ in 0..steps {
        state = black_box(state.wrapping_mul(0x5851_f42d_4c95_7f2d));
    }
    black_box(state);
}

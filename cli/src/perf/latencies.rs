//! Times, one after the other, and what is told of them.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::Amount;
use super::meter::Meter;

/// How many times are kept before they are sorted into the histogram, in which the clock stands.
const BLOCK: usize = 1024;

/// Measured times in nanoseconds. All memory is allocated at the beginning, so that keeping a time
/// costs no more than a store.
pub struct Latencies {
    amount: Amount,
    sorted: Histogram<u64>,
    block: Box<[u32; BLOCK]>,
    /// How many of the block are times.
    filled: usize,
    /// How many were in blocks before.
    before: u64,
    began: Instant,
    /// When the last lap ended.
    last: Instant,
    meter: Meter,
}

/// A summary of times: quantiles in microseconds, and a histogram.
#[derive(Clone, PartialEq, Debug)]
pub struct Summary {
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub longest: f64,
    /// A histogram from the shortest time to the time that one in a thousand exceeds. Each step is
    /// longer than the one before by the same ratio.
    pub bars: Vec<Bar>,
}

/// A step of the histogram: the number of times up to a bound, and above the bound of the step
/// before.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bar {
    /// The longest time of the step, in microseconds.
    pub up_to: f64,
    pub count: u64,
}

/// The steps of the histogram.
const BARS: u64 = 12;

impl Latencies {
    /// Begins to take times, for as many rounds or as long as `amount` says.
    pub fn new(amount: Amount, meter: Meter) -> Self {
        /// Three figures of each time, up to the longest that a u32 holds.
        const LONGEST: u64 = u32::MAX as u64;
        let sorted = Histogram::new_with_max(LONGEST, 3).expect("these bounds can be");
        let now = Instant::now();
        Self {
            amount,
            sorted,
            block: Box::new([0; BLOCK]),
            filled: 0,
            before: 0,
            began: now,
            last: now,
            meter,
        }
    }

    /// Begins a lap anew: what was done since the last one is not timed.
    #[inline]
    pub fn resume(&mut self) {
        self.last = Instant::now();
    }

    /// Takes the time since the last lap, with one look at the clock.
    #[inline]
    pub fn lap(&mut self) {
        let now = Instant::now();
        let time = now - self.last;
        self.last = now;
        if self.keep(time) {
            self.sort();
            self.resume();
        }
    }

    /// Takes in a time that the caller has measured.
    #[inline]
    pub fn record(&mut self, time: Duration) {
        if self.keep(time) {
            self.sort();
        }
    }

    /// Keeps a time among the others. Returns whether there is no room for another.
    #[inline]
    fn keep(&mut self, time: Duration) -> bool {
        self.block[self.filled] = u32::try_from(time.as_nanos()).unwrap_or(u32::MAX);
        self.filled += 1;
        self.filled == BLOCK
    }

    /// How long it was from the beginning to the end of the last lap.
    #[inline]
    pub fn passed(&self) -> Duration {
        self.last - self.began
    }

    /// How many times were taken.
    pub fn len(&self) -> u64 {
        self.before + self.filled as u64
    }

    /// Sorts what was kept. The first tenth is left out, in which caches and processors warm up.
    #[cold]
    fn sort(&mut self) {
        let cold = match self.amount {
            Amount::Times(times) => (times / 10).saturating_sub(self.before),
            Amount::For(time) if self.began.elapsed() < time / 10 => u64::MAX,
            Amount::For(_) => 0,
        };
        let cold = usize::try_from(cold).map_or(self.filled, |cold| cold.min(self.filled));
        for &time in &self.block[cold..self.filled] {
            self.sorted.saturating_record(time.into());
        }
        self.before += self.filled as u64;
        self.filled = 0;
        self.meter.at(self.before, self.began.elapsed());
    }

    /// Returns the summary of the times, each divided by `parts`.
    pub fn summary(&mut self, parts: u32) -> Summary {
        self.sort();
        let micros = |nanos: u64| nanos as f64 / f64::from(parts) / 1e3;
        let sorted = &self.sorted;
        let at = |quantile| micros(sorted.value_at_quantile(quantile));
        Summary {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            longest: micros(sorted.max()),
            bars: self.bars().map(|(up_to, count)| Bar { up_to: micros(up_to), count }).collect(),
        }
    }

    fn bars(&self) -> impl Iterator<Item = (u64, u64)> {
        let (shortest, most) = (self.sorted.min(), self.sorted.value_at_quantile(0.999));
        let ratio = most as f64 / shortest.max(1) as f64;
        (1..=BARS).scan(shortest, move |from, place| {
            let end = shortest as f64 * ratio.powf(place as f64 / BARS as f64);
            let end = if place == BARS { most } else { end as u64 };
            let bar = (end.max(*from), self.sorted.count_between(*from, end.max(*from)));
            *from = bar.0 + 1;
            Some(bar)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(times: impl IntoIterator<Item = u64>, amount: u64, parts: u32) -> Summary {
        let mut taken = Latencies::new(Amount::Times(amount), Meter::hidden());
        times.into_iter().for_each(|time| taken.record(Duration::from_micros(time)));
        taken.summary(parts)
    }

    /// To a part in a thousand, as they are kept.
    fn about(found: f64, expected: f64) -> bool {
        (found / expected - 1.0).abs() < 1e-3
    }

    #[test]
    fn the_first_tenth_is_left_out_and_the_rest_is_sorted() {
        let times = [1000; 11].into_iter().chain((1..=99).rev().map(|time| 2 * time));
        let found = micros(times, 110, 2);
        assert!(about(found.p50, 50.0) && about(found.p90, 90.0), "{found:?}");
        assert!(about(found.p99, 99.0) && about(found.longest, 99.0), "{found:?}");
    }

    #[test]
    fn of_a_single_time_all_is_that_time() {
        let found = micros([3], 1, 1);
        assert!(
            [found.p50, found.p99, found.longest].iter().all(|&it| about(it, 3.0)),
            "{found:?}"
        );
    }

    #[test]
    fn more_times_than_are_kept_at_once_are_counted_and_the_bars_have_all_but_one_in_a_thousand() {
        let count = 10 * BLOCK as u64;
        let times = (0..count).map(|time| if time < count / 10 { 7000 } else { 1 + time % 100 });
        let found = micros(times, count, 1);
        assert!(about(found.longest, 100.0), "{found:?}");
        let counted: u64 = found.bars.iter().map(|bar| bar.count).sum();
        assert!(counted * 1000 >= count * 9 / 10 * 999, "{counted} of {count}");
        assert!(found.bars.is_sorted_by(|one, next| one.up_to < next.up_to), "{found:?}");
    }
}

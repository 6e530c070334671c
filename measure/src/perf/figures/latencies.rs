//! Times, one after the other, and what is told of them.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::perf::Amount;
use crate::perf::plan::meter::Meter;

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
    /// A histogram of all times, from the shortest to the longest, by the steps of [`PARTS`].
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

/// The parts of the histogram: the quantile at which a part ends, and its number of steps. Within a
/// part, each step is longer than the one before by the same ratio. Half of the steps show how the
/// fastest nine tenths are spread, and the others show the tail, however far that reaches.
const PARTS: [(f64, u32); 4] = [(0.9, 6), (0.99, 2), (0.999, 2), (1.0, 2)];

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
            bars: self
                .bars()
                .into_iter()
                .map(|(up_to, count)| Bar { up_to: micros(up_to), count })
                .collect(),
        }
    }

    /// Returns the bounds of the histogram's steps in nanoseconds, and the times in each step. Bounds
    /// that are the same make one step.
    fn bars(&self) -> Vec<(u64, u64)> {
        let mut bounds = Vec::new();
        let mut from = self.sorted.min();
        for (quantile, steps) in PARTS {
            let to = self.sorted.value_at_quantile(quantile);
            let ratio = to as f64 / from.max(1) as f64;
            let within = |step| from as f64 * ratio.powf(f64::from(step) / f64::from(steps));
            bounds.extend((1..steps).map(|step| within(step) as u64).chain([to]));
            from = to;
        }
        bounds.dedup();
        let mut bars: Vec<_> = bounds.into_iter().map(|bound| (bound, 0)).collect();
        for step in self.sorted.iter_recorded() {
            let at = bars.partition_point(|(bound, _)| *bound < step.value_iterated_to());
            let last = bars.len() - 1;
            bars[at.min(last)].1 += step.count_at_value();
        }
        bars.retain(|(_, count)| *count > 0);
        bars
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
    fn more_times_than_are_kept_at_once_are_counted_and_each_is_in_one_bar() {
        let count = 10 * BLOCK as u64;
        let times = (0..count).map(|time| if time < count / 10 { 7000 } else { 1 + time % 100 });
        let found = micros(times, count, 1);
        assert!(about(found.longest, 100.0), "{found:?}");
        let counted: u64 = found.bars.iter().map(|bar| bar.count).sum();
        assert_eq!(counted, count * 9 / 10, "{found:?}");
        assert!(found.bars.is_sorted_by(|one, next| one.up_to < next.up_to), "{found:?}");
    }

    /// The first of twelve bars had more than nine tenths of all times, since a few times that were
    /// far longer than the others made every bar wide. The longest had no bar.
    #[test]
    fn the_bars_show_how_most_times_are_spread_and_how_far_the_tail_reaches() {
        let mut times: Vec<u64> = (0..10_000).map(|time| 100 + time % 20).collect();
        (0..100).for_each(|late| times[5000 + 40 * late] = 300 + 40 * late as u64);
        times[9999] = 90_000;
        let found = micros(times, 10_000, 1);
        let most = found.bars.iter().map(|bar| bar.count).max();
        assert!(most < Some(9000 / 3), "{found:?}");
        let tail = found.bars.iter().filter(|bar| bar.up_to > 300.0);
        assert!(tail.clone().count() >= 4, "{found:?}");
        let late: u64 = tail.map(|bar| bar.count).sum();
        assert!((80..=110).contains(&late), "{found:?}");
        let last = found.bars.last().expect("there are bars");
        assert!(about(last.up_to, 90_000.0) && last.count < 5, "{found:?}");
    }
}

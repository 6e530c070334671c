//! Times, one after the other.

use std::time::Duration;

/// Round trips in nanoseconds.
pub struct Latencies {
    nanos: Vec<u32>,
}

/// A median and a 99th percentile, in microseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Summary {
    pub p50: f64,
    pub p99: f64,
}

impl Latencies {
    /// Room for so many, so that taking a time allocates nothing.
    pub fn new(expected: usize) -> Self {
        Self { nanos: Vec::with_capacity(expected) }
    }

    #[inline]
    pub fn record(&mut self, time: Duration) {
        self.nanos.push(u32::try_from(time.as_nanos()).unwrap_or(u32::MAX));
    }

    pub fn len(&self) -> usize {
        self.nanos.len()
    }

    /// Of all but the first tenth, in which caches and processors warm up, each divided by `parts`.
    pub fn summary(&self, parts: u32) -> Summary {
        let mut warm = self.nanos[self.nanos.len() / 10..].to_vec();
        warm.sort_unstable();
        let at = |hundredths: usize| {
            let index = warm.len() * hundredths / 100;
            let nanos = warm.get(index.min(warm.len().saturating_sub(1))).copied().unwrap_or(0);
            f64::from(nanos) / f64::from(parts) / 1e3
        };
        Summary { p50: at(50), p99: at(99) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_tenth_is_left_out_and_the_rest_is_sorted() {
        let mut times = Latencies::new(110);
        (0..11).for_each(|_| times.record(Duration::from_millis(1)));
        (1..=99).rev().for_each(|us| times.record(Duration::from_micros(2 * us)));
        assert_eq!(times.summary(2), Summary { p50: 50.0, p99: 99.0 });
    }

    #[test]
    fn of_a_single_time_all_is_that_time() {
        let mut times = Latencies::new(1);
        times.record(Duration::from_micros(3));
        assert_eq!(times.summary(1), Summary { p50: 3.0, p99: 3.0 });
    }
}

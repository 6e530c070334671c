//! Latencies in buckets: a fixed amount of memory, however many there are.

use std::time::Duration;

/// Buckets for each power of two, so that a bucket is at most 1.6 percent wide.
const FINE: u64 = 64;

/// The buckets: of single nanoseconds up to [`FINE`], and then `FINE` for each further power of two.
const BUCKETS: usize = (FINE * (64 - FINE.ilog2() as u64 + 1)) as usize;

/// How many latencies there were of each length.
#[derive(Debug)]
pub struct Histogram {
    buckets: Vec<u64>,
    count: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS], count: 0 }
    }
}

impl Histogram {
    pub fn note(&mut self, latency: Duration) {
        let latency = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket(latency)] += 1;
        self.count += 1;
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// The latency, in microseconds, that a fraction of all do not exceed, to the width of a bucket;
    /// `NaN` if there are none.
    pub fn quantile(&self, fraction: f64) -> f64 {
        let rank = ((self.count as f64 * fraction).ceil() as u64).max(1);
        let mut seen = 0;
        let found = self.buckets.iter().position(|&count| {
            seen += count;
            seen >= rank
        });
        found.map_or(f64::NAN, |bucket| last_of(bucket as u64) as f64 / 1e3)
    }
}

/// The bucket of a number of nanoseconds.
fn bucket(latency: u64) -> usize {
    let exponent = latency.max(1).ilog2().saturating_sub(FINE.ilog2());
    (u64::from(exponent) * FINE + (latency >> exponent)) as usize
}

/// The most nanoseconds that go into a bucket.
fn last_of(bucket: u64) -> u64 {
    if bucket < 2 * FINE {
        return bucket;
    }
    let exponent = bucket / FINE - 1;
    ((FINE + bucket % FINE + 1) << exponent) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_lies_in_a_bucket_that_is_hardly_wider() {
        for latency in (0..60).map(|bits| (1_u64 << bits) + (1 << bits) / 3) {
            let most = last_of(bucket(latency) as u64);
            assert!(latency <= most && most - latency <= latency / FINE, "{latency}: {most}");
        }
    }

    #[test]
    fn quantiles_count_all_latencies() {
        let mut histogram = Histogram::default();
        (1..=100).for_each(|microseconds| histogram.note(Duration::from_micros(microseconds)));
        let [median, high] = [0.5, 0.99].map(|fraction| histogram.quantile(fraction));
        assert!((50.0..51.0).contains(&median) && (99.0..101.0).contains(&high));
        assert!(Histogram::default().quantile(0.5).is_nan());
    }
}

//! A load of the service: gets and puts, as many at a time as asked for.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use doorbell::rpc::Code;
use hdrhistogram::Histogram;
use tokio::task::JoinSet;

use crate::service::KeyValueClient;

/// How many keys there are.
const KEYS: u64 = 10_000;

/// The result of a load: how many calls were answered, and how fast.
pub struct Results {
    elapsed: Duration,
    /// How long each call took, in nanoseconds.
    nanoseconds: Histogram<u64>,
}

/// Gets and puts for a time, with so many calls under way: of ten calls one puts.
///
/// # Errors
/// When a call fails.
pub async fn run(client: KeyValueClient, in_flight: usize, duration: Duration) -> Result<Results> {
    ensure!(in_flight > 0, "without a call under way there is no load");
    let begun = Instant::now();
    let until = begun + duration;
    let mut workers = JoinSet::new();
    for seed in 0..in_flight as u64 {
        workers.spawn(work(client.clone(), seed, until));
    }
    let mut nanoseconds = histogram();
    while let Some(worker) = workers.join_next().await {
        nanoseconds += worker??;
    }
    Ok(Results { elapsed: begun.elapsed(), nanoseconds })
}

/// Calls one after the other until a moment.
async fn work(client: KeyValueClient, seed: u64, until: Instant) -> Result<Histogram<u64>> {
    let mut nanoseconds = histogram();
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    loop {
        // Xorshift.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let key = format!("key {}", random % KEYS);
        let begun = Instant::now();
        if begun >= until {
            return Ok(nanoseconds);
        }
        if (random / KEYS).is_multiple_of(10) {
            client.put(key, format!("value {random}")).await?;
        } else if let Err(status) = client.get(key).await {
            ensure!(status.code() == Code::NotFound, status);
        }
        nanoseconds.saturating_record(begun.elapsed().as_nanos() as u64);
    }
}

/// Nanoseconds up to ten seconds, with three digits.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 10_000_000_000, 3).expect("the bounds are in order")
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (calls, seconds) = (self.nanoseconds.len(), self.elapsed.as_secs_f64());
        let [median, slow, slowest] = [0.5, 0.99, 0.999]
            .map(|quantile| self.nanoseconds.value_at_quantile(quantile) as f64 / 1e3);
        write!(
            f,
            "{calls} calls in {seconds:.2} s, {:.0} a second\n\
             a call took {median:.1} µs in the median, 99 % took {slow:.1} µs or less, \
             99.9 % {slowest:.1} µs or less",
            calls as f64 / seconds
        )
    }
}

//! What was measured, and how it is told.

use std::time::Duration;

/// One-way latencies: half of each round trip.
pub struct Latencies {
    nanos: Vec<u32>,
}

impl Latencies {
    pub fn new(rounds: u64) -> Self {
        Self { nanos: Vec::with_capacity(rounds as usize) }
    }

    #[inline]
    pub fn record_round_trip(&mut self, time: Duration) {
        self.nanos.push(time.as_nanos() as u32);
    }

    /// The median and the 99th percentile in microseconds, the first tenth left out as warm-up.
    pub fn summary(mut self) -> (f64, f64) {
        let mut warm = self.nanos.split_off(self.nanos.len() / 10);
        warm.sort_unstable();
        let at = |hundredths: usize| {
            let index = (warm.len() * hundredths / 100).min(warm.len().saturating_sub(1));
            f64::from(warm.get(index).copied().unwrap_or(0)) / 2000.0
        };
        (at(50), at(99))
    }
}

pub fn latency(what: &str, times: Latencies) -> f64 {
    let (median, worst) = times.summary();
    println!("  {what:<58} {median:7.3} µs   (99 % below {worst:.3})");
    median
}

pub fn rate(what: &str, per_second: f64) -> f64 {
    println!("  {what:<58} {:7.2} M/s", per_second / 1e6);
    per_second
}

pub fn ratio(what: &str, ratio: f64) {
    println!("  → {what:<56} {ratio:7.2}");
}

/// The mean of a floor that was measured before and behind something, unless the two disagree: then
/// there is nothing that it could be compared with.
fn floor([before, behind]: [f64; 2]) -> Option<f64> {
    let apart = (before / behind).max(behind / before);
    (apart < 1.1).then_some((before + behind) / 2.0)
}

fn compare(what: &str, compared: Option<String>) {
    let compared = compared.unwrap_or_else(|| "?   the machine changed meanwhile".to_owned());
    println!("  → {what:<56} {compared}");
}

pub fn times_floor(what: &str, micros: f64, floors: [f64; 2]) {
    compare(what, floor(floors).map(|floor| format!("{:7.2}", micros / floor)));
}

pub fn excess(what: &str, micros: f64, floors: [f64; 2]) {
    compare(what, floor(floors).map(|floor| format!("{:7.0} ns", (micros - floor) * 1e3)));
}

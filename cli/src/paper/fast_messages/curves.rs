//! Bandwidth by the length of messages, and what is read from such a curve.

use doorbell_report::Value;

use crate::paper::bench::{Bench, Run};

/// The lengths of messages, in bytes.
pub const SIZES: [&str; 6] = ["16", "64", "256", "1024", "4096", "65536"];

/// The lengths and the bandwidths in megabytes a second.
pub type Curve = Vec<(f64, Value)>;

/// Measures the bandwidth of a test by the length of messages.
pub fn measure(bench: &mut Bench, test: &str, device: &str) -> Curve {
    let mut curve = Curve::new();
    for size in SIZES {
        let rate = bench.rate(Run { test, device, arguments: &["--size", size] });
        let bytes = size.parse().expect("sizes are numbers");
        curve.extend(rate.map(|rate| (bytes, rate)));
    }
    curve
}

/// Returns the greatest bandwidth of a curve.
pub fn peak(curve: &Curve) -> Option<Value> {
    curve.iter().map(|(_, rate)| *rate).max_by(|one, other| one.value.total_cmp(&other.value))
}

/// Returns the length from which on messages have half of the greatest bandwidth, between measured
/// ones along a straight line.
pub fn half_length(curve: &Curve) -> Option<f64> {
    let half = peak(curve)?.value / 2.0;
    let above = curve.iter().position(|(_, rate)| rate.value >= half)?;
    let (bytes, rate) = curve[above];
    let Some((before, less)) = above.checked_sub(1).map(|at| curve[at]) else { return Some(bytes) };
    let share = (half - less.value) / (rate.value - less.value);
    Some(before + share * (bytes - before))
}

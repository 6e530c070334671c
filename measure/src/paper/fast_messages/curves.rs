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

/// The longest messages, whose bandwidth counts as the peak of a curve. The greatest of several
/// uncertain numbers would be too great on average.
pub const LONGEST: f64 = 65_536.0;

/// Returns the value of a curve at a length.
pub fn at(curve: &Curve, length: f64) -> Option<Value> {
    curve.iter().find(|(bytes, _)| *bytes == length).map(|(_, value)| *value)
}

/// Returns the value of a curve for the longest messages.
pub fn peak(curve: &Curve) -> Option<Value> {
    at(curve, LONGEST)
}

/// Returns the length from which on messages have half of the peak bandwidth, between measured ones
/// along a straight line. The interval is from where the highest curve that the intervals allow
/// crosses half of the lowest peak, to where the lowest curve crosses half of the highest peak.
/// `None` if the peak was not measured, or if its interval reaches zero.
pub fn half_length(curve: &Curve) -> Option<Value> {
    let peak = peak(curve)?;
    let (least, most) = peak.interval.unwrap_or((peak.value, peak.value));
    if least <= 0.0 {
        return None;
    }
    let ends = |value: &Value| value.interval.unwrap_or((value.value, value.value));
    let middle = crossing(curve.iter().map(|(bytes, rate)| (*bytes, rate.value)), peak.value)?;
    let low = crossing(curve.iter().map(|(bytes, rate)| (*bytes, ends(rate).1)), least)?;
    let high = crossing(curve.iter().map(|(bytes, rate)| (*bytes, ends(rate).0)), most);
    Some(Value::within(middle, low, high.unwrap_or(f64::INFINITY)))
}

/// The length from which on points have half of a peak; `None` if none has.
fn crossing(points: impl Iterator<Item = (f64, f64)>, peak: f64) -> Option<f64> {
    let half = peak / 2.0;
    let mut before = None;
    for (bytes, rate) in points {
        if rate >= half {
            let Some((shorter, less)) = before else { return Some(bytes) };
            return Some(shorter + (half - less) / (rate - less) * (bytes - shorter));
        }
        before = Some((bytes, rate));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judging::is_between;

    fn curve(reach: f64) -> Curve {
        let rates = [(16.0, 100.0), (64.0, 400.0), (256.0, 900.0), (65_536.0, 1000.0)];
        let value = |rate| Value::within(rate, rate * (1.0 - reach), rate * (1.0 + reach));
        rates.into_iter().map(|(bytes, rate)| (bytes, value(rate))).collect()
    }

    /// The greatest of several noisy rates was the peak, and half of it had no interval.
    #[test]
    fn the_length_of_half_the_peak_is_as_uncertain_as_the_curve() {
        let sure = half_length(&curve(0.01)).expect("the peak is above zero");
        assert!((sure.value - 102.4).abs() < 1e-9, "{sure:?}");
        let (low, high) = sure.interval.expect("it is uncertain");
        assert!((95.0..102.4).contains(&low) && (102.4..110.0).contains(&high), "{sure:?}");
        assert_eq!(is_between(sure, 0.0, 256.0), Some(true));
        let unsure = half_length(&curve(0.6)).expect("the peak is above zero");
        assert_eq!(unsure.interval.expect("it is uncertain").1, f64::INFINITY);
        assert_eq!(is_between(unsure, 0.0, 256.0), None);
        assert_eq!(half_length(&curve(1.1)), None);
    }

    #[test]
    fn the_peak_is_that_of_the_longest_messages_and_not_the_greatest() {
        let mut noisy = curve(0.01);
        noisy[2].1 = Value::within(1500.0, 500.0, 2500.0);
        assert_eq!(peak(&noisy), Some(Value::within(1000.0, 990.0, 1010.0)));
        assert_eq!(peak(&noisy[..3].to_vec()), None);
    }
}

//! A value that was measured several times.

use std::fmt;

/// The median of several measurements, and an interval in which the true median lies with a
/// probability of 95 %, whatever the distribution of the measurements is.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Estimate {
    /// The median.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// The estimate from measurements; `None` if there are none, or if one is not a number. Of fewer
    /// than six measurements the interval is from the least to the greatest, which is less certain.
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        if values.is_empty() || values.iter().any(|value| value.is_nan()) {
            return None;
        }
        values.sort_unstable_by(f64::total_cmp);
        let count = values.len() as f64;
        // So many measurements are below the true median as heads come of so many coins: the normal
        // approximation of that distribution's quantiles of 2.5 % and 97.5 %.
        let reach = 1.96 * count.sqrt();
        let low = ((count - reach) / 2.0).floor().max(1.0) as usize;
        let high = (1.0 + (count + reach) / 2.0).ceil().min(count) as usize;
        let value = median_of_sorted(&values);
        Some(Self { value, low: values[low - 1], high: values[high - 1] })
    }

    /// Whether this interval and another overlap.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    /// The width of the interval.
    #[must_use]
    pub fn width(&self) -> f64 {
        self.high - self.low
    }
}

/// The median of values, of which there is at least one.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    median_of_sorted(&values)
}

fn median_of_sorted(values: &[f64]) -> f64 {
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => (values[middle - 1] + values[middle]) / 2.0,
        _ => values[middle],
    }
}

impl fmt::Display for Estimate {
    /// The value and its interval, in the unit in which they were measured.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ({:.3} to {:.3})", self.value, self.low, self.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_in_the_middle_and_its_interval_around_it() {
        let of = |values: &[f64]| Estimate::of(values.to_vec());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[1.0, f64::NAN]), None);
        assert_eq!(of(&[3.0]), Some(Estimate { value: 3.0, low: 3.0, high: 3.0 }));
        let few = of(&[5.0, 1.0, 2.0, 9.0]).expect("there are four");
        assert_eq!(few, Estimate { value: 3.5, low: 1.0, high: 9.0 });
        let many = Estimate::of((1..=100).map(f64::from).collect()).expect("there are many");
        // The ranks that tables of the binomial distribution have for the sign test.
        assert_eq!(many, Estimate { value: 50.5, low: 40.0, high: 61.0 });
    }

    #[test]
    fn of_a_hundred_intervals_some_ninety_five_have_the_median() {
        let mut state = 7_u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // A skewed distribution, whose median is 0.25.
            ((state >> 11) as f64 / (1_u64 << 53) as f64).powi(2)
        };
        let hit = |estimate: Estimate| estimate.low <= 0.25 && 0.25 <= estimate.high;
        let hits = (0..1000)
            .filter(|_| hit(Estimate::of((0..41).map(|_| draw()).collect()).expect("41")))
            .count();
        assert!((930..=990).contains(&hits), "{hits}");
    }
}

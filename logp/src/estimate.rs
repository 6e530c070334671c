//! A value that was measured several times.

use std::fmt;

/// A value that was measured several times, and an interval in which it lies with a probability of
/// 95 %.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Estimate {
    /// The estimated value, which is a median or a mean.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// The median of measurements, with the interval in which the true median lies whatever their
    /// distribution is; `None` if there are none, or if one is not a number. Of fewer than six
    /// measurements the interval is from the least to the greatest, which is less certain.
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        if values.is_empty() || values.iter().any(|value| value.is_nan()) {
            return None;
        }
        values.sort_unstable_by(f64::total_cmp);
        let count = values.len() as f64;
        // The number of measurements below the true median is distributed as the heads among as
        // many tossed coins: the normal approximation of that distribution's quantiles of 2.5 % and
        // 97.5 %.
        let reach = 1.96 * count.sqrt();
        let low = ((count - reach) / 2.0).floor().max(1.0) as usize;
        let high = (1.0 + (count + reach) / 2.0).ceil().min(count) as usize;
        let value = median_of_sorted(&values);
        Some(Self { value, low: values[low - 1], high: values[high - 1] })
    }

    /// The mean of the results of several independent runs, each with processes and memory of its
    /// own, and Student's interval around it; `None` if there are fewer than two runs, or if a
    /// result is not a number. Runs differ by more than the rounds of a run do, so only several
    /// runs show where the result of another run may be.
    ///
    /// ```
    /// use doorbell_logp::Estimate;
    ///
    /// let found = Estimate::of_runs(&[1.0, 1.2, 1.1]).expect("three runs");
    /// assert!((found.value - 1.1).abs() < 1e-9);
    /// assert!((found.high - 1.348).abs() < 1e-3); // 1.1 + 4.303 × 0.1 / √3
    /// ```
    #[must_use]
    pub fn of_runs(values: &[f64]) -> Option<Self> {
        let count = values.len();
        if count < 2 || values.iter().any(|value| value.is_nan()) {
            return None;
        }
        let value = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|one| (one - value).powi(2)).sum();
        let deviation = (squares / (count - 1) as f64).sqrt();
        let quantile = STUDENT[(count - 2).min(STUDENT.len() - 1)];
        let reach = quantile * deviation / (count as f64).sqrt();
        Some(Self { value, low: value - reach, high: value + reach })
    }

    /// Tests whether the intervals of two estimates overlap.
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

/// The quantiles of 97.5 % of Student's distribution, for 1, 2, … degrees of freedom. The last
/// quantile also stands for more degrees of freedom, for which it is a little too wide.
const STUDENT: [f64; 15] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131,
];

/// The median of at least one value.
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
    fn the_mean_of_runs_needs_two_and_is_as_uncertain_as_they_differ() {
        assert_eq!(Estimate::of_runs(&[1.0]), None);
        assert_eq!(Estimate::of_runs(&[1.0, f64::NAN]), None);
        let same = Estimate::of_runs(&[2.0; 8]).expect("there are eight");
        assert_eq!(same, Estimate { value: 2.0, low: 2.0, high: 2.0 });
        let two = Estimate::of_runs(&[1.0, 3.0]).expect("there are two");
        assert!((two.high - 2.0 - 12.706).abs() < 1e-9, "{two}");
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

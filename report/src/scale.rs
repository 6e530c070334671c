//! The range of an axis, its ticks, and where a number lies between the ends.

use crate::number;
use crate::{Axis, Scale, Value};

/// The part of an axis that a figure shows.
#[derive(Clone, PartialEq, Debug)]
pub struct Range {
    /// How numbers become places.
    pub scale: Scale,
    /// The number at the beginning.
    pub low: f64,
    /// The number at the end.
    pub high: f64,
    /// The ticks with their labels, from low to high.
    pub ticks: Vec<(f64, String)>,
    /// Further places on a logarithmic axis, between the ticks, without labels.
    pub minor: Vec<f64>,
    /// How many digits after the point the values of a linear axis have, so that the greatest has
    /// three digits.
    pub decimals: usize,
}

/// Whether a number has a place on an axis of a scale.
pub fn fits(value: f64, scale: Scale) -> bool {
    let drawable = value == 0.0 || (1e-100..1e100).contains(&value.abs());
    drawable && (scale == Scale::Linear || value > 0.0)
}

/// The numbers that an axis must have room for: values, and the ends of their intervals. The end of an
/// interval that is far beyond all values would leave them no room; in its place is a number that is
/// a little beyond, and what is drawn of the interval ends at the edge.
pub fn with_ends(values: &[Value], scale: Scale) -> Vec<f64> {
    let numbers = || values.iter().map(|value| value.value).filter(|value| fits(*value, scale));
    let least = numbers().fold(f64::INFINITY, f64::min);
    let most = numbers().fold(f64::NEG_INFINITY, f64::max);
    let size = least.abs().max(most.abs());
    let (low, high) = match scale {
        // Where no value is below zero, the axis begins at zero at the least.
        Scale::Linear => ((least - 0.5 * size).max(least.min(0.0)), most + 0.5 * size),
        Scale::Log2 | Scale::Log10 => (least / 3.0, most * 3.0),
    };
    let intervals = values.iter().filter_map(|value| value.interval);
    let ends = intervals.flat_map(|(from, to)| [from.max(low).min(high), to.max(low).min(high)]);
    numbers().chain(ends).collect()
}

impl Range {
    /// A range that contains all of the values, with about as many ticks as there is room for;
    /// `None` if there is no value that [fits]. `bars` makes a linear range contain zero in any
    /// case, and lets a logarithmic range begin below the least value, so that the least bar has a
    /// length.
    pub fn new(
        axis: &Axis,
        bars: bool,
        values: impl IntoIterator<Item = f64>,
        most: usize,
    ) -> Option<Self> {
        let values = values.into_iter().filter(|value| fits(*value, axis.scale));
        let (low, high) = values.fold(None, |ends: Option<(f64, f64)>, value| {
            let (low, high) = ends.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        })?;
        let most = most.max(2);
        let low = if bars && axis.scale != Scale::Linear { 0.8 * low } else { low };
        Some(match axis.scale {
            Scale::Linear => Self::linear(low, high, bars, most),
            Scale::Log2 => Self::log2(low, high, most, axis.unit == "B"),
            Scale::Log10 => Self::log10(low, high, most),
        })
    }

    /// Where a number lies: 0 at the beginning, 1 at the end.
    pub fn position(&self, value: f64) -> f64 {
        let place = |value: f64| match self.scale {
            Scale::Linear => value,
            Scale::Log2 | Scale::Log10 => value.log2(),
        };
        (place(value) - place(self.low)) / (place(self.high) - place(self.low))
    }

    /// The number where bars begin: zero, or the beginning of a logarithmic axis.
    pub fn base(&self) -> f64 {
        if self.scale == Scale::Linear { 0.0_f64.clamp(self.low, self.high) } else { self.low }
    }

    /// Whether ratios rather than differences are distances.
    pub fn is_logarithmic(&self) -> bool {
        self.scale != Scale::Linear
    }

    fn linear(mut low: f64, mut high: f64, zero: bool, most: usize) -> Self {
        let far = low.abs().max(high.abs());
        if zero || low == high || high - low >= 0.5 * far {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        if low == high {
            high = 1.0;
        }
        let step = round_step((high - low) / most as f64);
        let near = 1e-9; // A tick that is missed by a rounding error is not missed.
        let (first, last) = ((low / step + near).floor(), (high / step - near).ceil());
        let decimals = usize::try_from(-(step * 1.0001).log10().floor() as i32).unwrap_or(0);
        let plain = far < 1e9 && decimals <= 4;
        let ticks = (0..=(last - first) as usize).map(|number| {
            let value = (first + number as f64) * step;
            let text = match plain || value == 0.0 {
                true => number::fixed(value, if plain { decimals } else { 0 }),
                false => number::tick(value),
            };
            (value, text)
        });
        let (low, high) = (first * step, last * step);
        // Values do not quite reach the ends: below 100, three digits are those of 99.9.
        let digits = (0.999 * low.abs().max(high.abs())).log10().floor() as i32;
        let decimals = usize::try_from(2 - digits).unwrap_or(0);
        Self {
            scale: Scale::Linear,
            low,
            high,
            ticks: ticks.collect(),
            minor: Vec::new(),
            decimals,
        }
    }

    fn log2(low: f64, high: f64, most: usize, bytes: bool) -> Self {
        let (mut first, mut last) = (low.log2().floor() as i32, high.log2().ceil() as i32);
        if first == last {
            (first, last) = (first - 1, last + 1);
        }
        let every = ((last - first + 1) as usize).div_ceil(most);
        let text = |value| if bytes { number::bytes(value) } else { number::shortest(value) };
        let ticks = (first..=last).step_by(every).map(|power| 2_f64.powi(power));
        Self {
            scale: Scale::Log2,
            low: 2_f64.powi(first),
            high: 2_f64.powi(last),
            ticks: ticks.map(|value| (value, text(value))).collect(),
            minor: (first..=last).map(|power| 2_f64.powi(power)).collect(),
            decimals: 0,
        }
    }

    fn log10(low: f64, high: f64, most: usize) -> Self {
        let decades = low.log10().floor() as i32 - 1..=high.log10().ceil() as i32 + 1;
        let multiples = |factors: &'static [u32]| {
            decades.clone().flat_map(move |power| factors.iter().map(move |f| decimal(*f, power)))
        };
        let near = 1e-9; // A bound that is missed by a rounding error is not missed.
        let mut bounds = multiples(&[1, 2, 5]).filter(|bound| *bound <= low * (1.0 + near));
        let mut from = bounds.next_back().unwrap_or(low);
        let mut bounds = multiples(&[1, 2, 5]).filter(|bound| *bound >= high * (1.0 - near));
        let mut to = bounds.next().unwrap_or(high);
        if from >= to {
            (from, to) = (from / 10.0, from * 10.0);
        }
        let shown = |factors| multiples(factors).filter(|tick| (from..=to).contains(tick));
        let mut ticks: Vec<f64> = shown(&[1, 2, 5]).collect();
        if ticks.len() > most {
            let powers: Vec<f64> = shown(&[1]).collect();
            ticks = powers.iter().copied().step_by(powers.len().div_ceil(most)).collect();
        }
        let ticks = ticks.into_iter().map(|value| (value, number::tick(value))).collect();
        let minor = shown(&[1, 2, 3, 4, 5, 6, 7, 8, 9]).collect();
        Self { scale: Scale::Log10, low: from, high: to, ticks, minor, decimals: 0 }
    }
}

/// A digit times a power of ten, as near as a number can be to what is written so.
fn decimal(factor: u32, power: i32) -> f64 {
    let factor = f64::from(factor);
    if power < 0 { factor / 10_f64.powi(-power) } else { factor * 10_f64.powi(power) }
}

/// The least step that is 1, 2 or 5 times a power of ten and not below another step.
fn round_step(least: f64) -> f64 {
    let power = least.log10().floor() as i32;
    let mut steps = [1, 2, 5, 10].into_iter().map(|factor| decimal(factor, power));
    steps.find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64], most: usize) -> Vec<String> {
        let range =
            Range::new(axis, false, values.iter().copied(), most).expect("there are values");
        range.ticks.into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_of_a_linear_axis_are_round_and_begin_at_zero() {
        let axis = Axis::linear("Time", "µs");
        assert_eq!(labels(&axis, &[0.13, 0.97], 6), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&axis, &[-0.3, 1.5], 4), ["−0.5", "0.0", "0.5", "1.0", "1.5"]);
        assert_eq!(labels(&axis, &[7.0], 4), ["0", "2", "4", "6", "8"]);
        assert_eq!(labels(&axis, &[0.0], 2), ["0.0", "0.5", "1.0"]);
        assert_eq!(labels(&axis, &[-4.0, -1.0], 4), ["−4", "−3", "−2", "−1", "0"]);
    }

    #[test]
    fn a_linear_axis_of_numbers_that_are_close_together_does_not_begin_at_zero() {
        let years = labels(&Axis::linear("Year", ""), &[1996.0, 2001.0], 6);
        assert_eq!(years, ["1996", "1997", "1998", "1999", "2000", "2001"]);
    }

    #[test]
    fn a_linear_axis_of_bars_begins_at_zero_whatever_the_numbers() {
        let axis = Axis::linear("Time", "µs");
        let range = Range::new(&axis, true, [9.0, 10.0], 5).expect("there are values");
        assert_eq!((range.low, range.base()), (0.0, 0.0));
    }

    #[test]
    fn ticks_of_bytes_are_powers_of_two_with_binary_units() {
        let axis = Axis::bytes("Size");
        assert_eq!(labels(&axis, &[4.0, 16.0], 8), ["4 B", "8 B", "16 B"]);
        let coarse = labels(&axis, &[1.0, 1_048_576.0], 6);
        assert_eq!(coarse, ["1 B", "16 B", "256 B", "4 KiB", "64 KiB", "1 MiB"]);
        assert_eq!(labels(&Axis::log2("Burst", ""), &[1.0, 8.0], 8), ["1", "2", "4", "8"]);
        assert_eq!(labels(&axis, &[64.0], 8), ["32 B", "64 B", "128 B"]);
    }

    #[test]
    fn ticks_of_a_logarithmic_axis_are_powers_of_ten_and_more_where_there_is_room() {
        let axis = Axis::log("Bandwidth", "GB/s");
        assert_eq!(labels(&axis, &[0.3, 4.0], 8), ["0.2", "0.5", "1", "2", "5"]);
        assert_eq!(labels(&axis, &[0.001, 100.0], 6), ["0.001", "0.01", "0.1", "1", "10", "100"]);
        assert_eq!(labels(&axis, &[1e-6, 1e6], 5), ["10⁻⁶", "0.001", "1", "1000", "10⁶"]);
        let single = labels(&axis, &[1.0], 8);
        assert_eq!(single, ["0.1", "0.2", "0.5", "1", "2", "5", "10"]);
    }

    #[test]
    fn the_least_bar_on_a_logarithmic_axis_has_a_length() {
        for axis in [Axis::log("Time", "µs"), Axis::log2("Time", "µs")] {
            let range = Range::new(&axis, true, [1.0, 8.0], 8).expect("there are values");
            assert!(range.base() < 1.0, "{axis:?}");
        }
    }

    #[test]
    fn numbers_without_a_place_on_the_axis_do_not_widen_the_range() {
        let axis = Axis::log("Time", "µs");
        let values = [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e200, 2.0, 5.0];
        let range = Range::new(&axis, false, values, 8).expect("two values fit");
        assert_eq!((range.low, range.high), (2.0, 5.0));
        assert_eq!(Range::new(&axis, false, [0.0, -1.0, f64::NAN], 8), None);
    }

    /// One interval of seven milliseconds left all times of microseconds at the left edge.
    #[test]
    fn the_end_of_an_interval_that_is_far_beyond_all_values_does_not_widen_the_axis_as_far() {
        let values = [Value::exact(1.0), Value::within(2.0, -7000.0, 7000.0)];
        assert_eq!(with_ends(&values, Scale::Linear), [1.0, 2.0, 0.0, 3.0]);
        assert_eq!(with_ends(&values, Scale::Log10), [1.0, 2.0, 1.0 / 3.0, 6.0]);
        let near = [Value::within(2.0, 1.5, 2.5)];
        assert_eq!(with_ends(&near, Scale::Log10), [2.0, 1.5, 2.5]);
    }

    #[test]
    fn a_number_between_the_ends_lies_between_them_by_difference_or_by_ratio() {
        let linear = Range::new(&Axis::linear("", ""), true, [10.0], 5).expect("there is a value");
        assert!((linear.position(5.0) - 0.5).abs() < 1e-9);
        let axis = Axis::log("", "");
        let logarithmic = Range::new(&axis, false, [1.0, 100.0], 5).expect("there are values");
        assert!((logarithmic.position(10.0) - 0.5).abs() < 1e-9);
    }
}

//! Numbers with the interval in which they are believed to lie.

/// A number, with or without an interval around the number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Value {
    /// The number, whatever its interval is.
    pub value: f64,
    /// The lower and the upper end of the interval, if there is an interval.
    pub interval: Option<(f64, f64)>,
}

impl Value {
    /// A number without an interval.
    #[must_use]
    pub fn exact(value: f64) -> Self {
        Self { value, interval: None }
    }

    /// A number with the interval from `low` to `high`, which holds the number. An interval that
    /// does not hold its number is never shown.
    #[must_use]
    pub fn within(value: f64, low: f64, high: f64) -> Self {
        debug_assert!(!(low > value || high < value), "{value} is not from {low} to {high}");
        Self { value, interval: Some((low, high)) }
    }

    /// Whether the number is too uncertain to rely on: its interval is wider than a fifth of the
    /// number and, of a time, than 10 ns. `unit` is the unit of the number.
    #[must_use]
    pub fn is_uncertain(self, unit: &str) -> bool {
        let Some(Self { value, interval: Some((low, high)) }) = self.finite() else { return false };
        let least: f64 = match unit {
            "s" => 1e-8,
            "ms" => 1e-5,
            "µs" => 1e-2,
            "ns" => 10.0,
            _ => 0.0,
        };
        high - low > least.max(0.2 * value.abs())
    }

    /// The value if the number is finite, with the interval only if both ends are finite and the
    /// interval holds the number.
    pub(crate) fn finite(self) -> Option<Self> {
        let holds = |(low, high): &(f64, f64)| {
            low.is_finite() && high.is_finite() && (*low..=*high).contains(&self.value)
        };
        let interval = self.interval.filter(holds);
        self.value.is_finite().then_some(Self { value: self.value, interval })
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::exact(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_uncertain_whose_interval_is_wider_than_a_fifth_of_it_and_than_10_ns() {
        assert!(Value::within(1.0, 0.8, 1.1).is_uncertain("µs"));
        assert!(!Value::within(1.0, 0.95, 1.1).is_uncertain("µs"));
        assert!(!Value::within(0.02, 0.016, 0.025).is_uncertain("µs"), "9 ns");
        assert!(Value::within(0.02, 0.016, 0.025).is_uncertain("GB/s"));
        assert!(!Value::exact(1.0).is_uncertain("µs"));
    }

    /// Bands were drawn beside their lines, where an interval had been turned over.
    #[test]
    fn an_interval_that_does_not_hold_its_number_is_not_shown() {
        let turned = Value { value: 166.0, interval: Some((-35.0, -186.0)) };
        assert_eq!(turned.finite(), Some(Value::exact(166.0)));
        let beside = Value { value: 1.0, interval: Some((2.0, 3.0)) };
        assert_eq!(beside.finite(), Some(Value::exact(1.0)));
        let sound = Value::within(1.0, 0.5, 3.0);
        assert_eq!(sound.finite(), Some(sound));
    }
}

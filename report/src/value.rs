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

    /// A number with the interval from `low` to `high`.
    #[must_use]
    pub fn within(value: f64, low: f64, high: f64) -> Self {
        Self { value, interval: Some((low, high)) }
    }

    /// The value if the number is finite, with the interval only if both ends are finite.
    pub(crate) fn finite(self) -> Option<Self> {
        let interval = self.interval.filter(|(low, high)| low.is_finite() && high.is_finite());
        self.value.is_finite().then_some(Self { value: self.value, interval })
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::exact(value)
    }
}

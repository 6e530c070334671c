//! Axes: what a direction of a figure stands for.

/// An axis of a figure: the quantity that a direction stands for, its unit and its scale.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// The quantity, as in "Bandwidth".
    pub title: String,
    /// The unit, as in "GB/s"; empty for numbers without a unit. The ticks of an axis whose unit is
    /// "B" and whose scale is [`Scale::Log2`] read "512 B", "1 KiB", "1 MiB".
    pub unit: String,
    /// How numbers become places.
    pub scale: Scale,
}

/// How numbers become places on an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Equal differences are equal distances. The axis begins at zero, unless all numbers lie
    /// within half of the way from zero to the greatest.
    Linear,
    /// Equal ratios are equal distances, with ticks at powers of two.
    Log2,
    /// Equal ratios are equal distances, with ticks at powers of ten.
    Log10,
}

impl Axis {
    /// An axis on which equal differences are equal distances.
    #[must_use]
    pub fn linear(title: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { title: title.into(), unit: unit.into(), scale: Scale::Linear }
    }

    /// A logarithmic axis with ticks at powers of ten.
    #[must_use]
    pub fn log(title: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { scale: Scale::Log10, ..Self::linear(title, unit) }
    }

    /// A logarithmic axis with ticks at powers of two, as for the lengths of bursts.
    #[must_use]
    pub fn log2(title: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { scale: Scale::Log2, ..Self::linear(title, unit) }
    }

    /// A logarithmic axis of sizes in bytes, with ticks at powers of two.
    #[must_use]
    pub fn bytes(title: impl Into<String>) -> Self {
        Self::log2(title, "B")
    }
}

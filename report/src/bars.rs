//! The data of figures with bars.

use crate::csv::Record;
use crate::{Axis, Value};

/// Bars: one or several values for each of several things.
///
/// On a logarithmic axis, where the length of a bar would have no meaning, a marker at the end of a
/// thin line takes the place of a bar.
#[derive(Clone, PartialEq, Debug)]
pub struct Bars {
    /// The axis of the values. Stacked bars have a linear axis whatever its scale says, since
    /// lengths on a logarithmic axis do not add up.
    pub axis: Axis,
    /// The names of a bar's values, in their order, as the legend shows them.
    pub parts: Vec<String>,
    /// The things that are compared, in order.
    pub bars: Vec<Bar>,
    /// Whether the values of a thing stand beside each other or upon each other.
    pub arrangement: Arrangement,
    /// Where the bars grow to.
    pub direction: Direction,
    /// The name of the sum of stacked parts; a mark then shows the sum of each bar. With negative
    /// parts, the sum is not where the bar ends.
    pub total: Option<String>,
}

/// Whether values stand beside or upon each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrangement {
    /// A bar for each value, beside each other.
    Grouped,
    /// The values of a bar follow each other. Negative values are stacked on the other side of
    /// zero.
    Stacked,
}

/// Where bars grow to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Bars grow to the right, and labels stand to the left of the bars: for many things or long
    /// names.
    Horizontal,
    /// Bars grow upwards, and labels stand below the bars: for few things with short names.
    Vertical,
}

/// The values of one thing.
#[derive(Clone, PartialEq, Debug)]
pub struct Bar {
    /// The name of the thing.
    pub label: String,
    /// The name of the group that the thing belongs to; empty if to none. Bars that follow each
    /// other and belong to the same group stand under one heading.
    pub group: String,
    /// A value for each part; `None` where there is no value.
    pub values: Vec<Option<Value>>,
    /// Where the values were published, if these are not measurements of this report.
    pub published: Option<String>,
}

impl Bars {
    /// Bars whose values stand beside each other, without any bar as yet.
    pub fn grouped<S: Into<String>>(axis: Axis, parts: impl IntoIterator<Item = S>) -> Self {
        Self {
            axis,
            parts: parts.into_iter().map(Into::into).collect(),
            bars: Vec::new(),
            arrangement: Arrangement::Grouped,
            direction: Direction::Horizontal,
            total: None,
        }
    }

    /// Bars whose values stand upon each other, without any bar as yet.
    pub fn stacked<S: Into<String>>(axis: Axis, parts: impl IntoIterator<Item = S>) -> Self {
        Self { arrangement: Arrangement::Stacked, ..Self::grouped(axis, parts) }
    }

    /// Lets the bars grow upwards rather than to the right.
    #[must_use]
    pub fn vertical(mut self) -> Self {
        self.direction = Direction::Vertical;
        self
    }

    /// Marks the sum of each stacked bar, and names the sum in the legend.
    #[must_use]
    pub fn total(mut self, name: impl Into<String>) -> Self {
        self.total = Some(name.into());
        self
    }

    /// Adds a bar behind the others.
    #[must_use]
    pub fn bar(mut self, bar: Bar) -> Self {
        self.bars.push(bar);
        self
    }

    pub(crate) fn records(&self) -> Vec<Record<'_>> {
        let all = self.bars.iter().flat_map(|bar| {
            let values = self.parts.iter().zip(&bar.values);
            values.filter_map(move |(part, value)| {
                Some(Record {
                    group: &bar.group,
                    row: bar.label.clone(),
                    row_unit: "",
                    column: part,
                    value: (*value)?,
                    unit: &self.axis.unit,
                    published: bar.published.as_deref(),
                })
            })
        });
        all.filter(|record| record.value.value.is_finite()).collect()
    }
}

impl Bar {
    /// A bar with a value, or `None`, for each part; parts beyond the last value have none.
    pub fn new<V: Into<Option<Value>>>(
        label: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        Self { label: label.into(), group: String::new(), values, published: None }
    }

    /// Puts the bar under a heading.
    #[must_use]
    pub fn group(mut self, name: impl Into<String>) -> Self {
        self.group = name.into();
        self
    }

    /// Marks the bar as published elsewhere, by a citation.
    #[must_use]
    pub fn published(mut self, citation: impl Into<String>) -> Self {
        self.published = Some(citation.into());
        self
    }
}

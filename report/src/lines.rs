//! The data of figures with lines.

use crate::csv::{self, Record};
use crate::{Axis, Value};

/// Lines through points: how a quantity depends on another one.
///
/// Each line has a colour, a dash and a marker of its own, so lines can be told apart in grey, too.
/// Intervals are drawn as a band around the line.
#[derive(Clone, PartialEq, Debug)]
pub struct Lines {
    /// The axis from left to right.
    pub x: Axis,
    /// The axis from bottom to top.
    pub y: Axis,
    /// The lines, in the order of the legend.
    pub series: Vec<Series>,
    /// Levels to compare with: a label and a place on the y axis, drawn as a thin horizontal line.
    pub levels: Vec<(String, f64)>,
}

/// A line of a figure: a name and points.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// The name of the line in the legend.
    pub name: String,
    /// The points, each a place on the x axis and a value, in the order in which a line joins the
    /// points.
    pub points: Vec<(f64, Value)>,
    /// Where the numbers were published, if these are not measurements of this report. A published
    /// line is grey and dashed, and the figure's note names the source.
    pub published: Option<String>,
    /// The number of the line's colour, so that a thing has one colour in all figures of a report;
    /// `None` for the first colour that no line before has.
    pub colour: Option<usize>,
    /// The number of the line's dash and markers, where several lines have one colour; `None` for
    /// those that belong to the colour.
    pub pattern: Option<usize>,
}

impl Lines {
    /// A figure with axes and, as yet, no lines.
    #[must_use]
    pub fn new(x: Axis, y: Axis) -> Self {
        Self { x, y, series: Vec::new(), levels: Vec::new() }
    }

    /// Adds a line behind the others.
    #[must_use]
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds a level: a thin horizontal line at `y` with a label.
    #[must_use]
    pub fn level(mut self, label: impl Into<String>, y: f64) -> Self {
        self.levels.push((label.into(), y));
        self
    }

    pub(crate) fn records(&self) -> Vec<Record<'_>> {
        let all = self.series.iter().flat_map(|series| {
            series.points.iter().map(move |(x, value)| Record {
                group: "",
                row: csv::number(*x),
                row_unit: &self.x.unit,
                column: &series.name,
                value: *value,
                unit: &self.y.unit,
                published: series.published.as_deref(),
            })
        });
        all.filter(|record| record.value.value.is_finite()).collect()
    }
}

impl Series {
    /// A line through points.
    pub fn new<V: Into<Value>>(
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, V)>,
    ) -> Self {
        let points = points.into_iter().map(|(x, y)| (x, y.into())).collect();
        Self { name: name.into(), points, published: None, colour: None, pattern: None }
    }

    /// Marks the line as published elsewhere, by a citation.
    #[must_use]
    pub fn published(mut self, citation: impl Into<String>) -> Self {
        self.published = Some(citation.into());
        self
    }

    /// Sets the number of the line's colour.
    #[must_use]
    pub fn colour(mut self, number: usize) -> Self {
        self.colour = Some(number);
        self
    }

    /// Sets the number of the line's dash and markers.
    #[must_use]
    pub fn pattern(mut self, number: usize) -> Self {
        self.pattern = Some(number);
        self
    }
}

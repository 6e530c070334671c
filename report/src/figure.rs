//! Figures: a drawing with a title and a sentence on what the drawing says.

use crate::csv::{self, Record};
use crate::{Bars, Dots, Lines, Panels, Spans};

/// A drawing with a title, and with a sentence on what the drawing says.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// A short name for links and files, as in "bandwidth".
    pub id: String,
    /// The heading of the figure: what the figure shows.
    pub title: String,
    /// A plain sentence under the figure: what a reader should see in the drawing.
    pub sentence: String,
    /// The data, and how the data are drawn.
    pub plot: Plot,
}

/// The data of a figure, and how the data are drawn.
#[derive(Clone, PartialEq, Debug)]
pub enum Plot {
    /// Lines through points.
    Lines(Lines),
    /// Bars beside or upon each other.
    Bars(Bars),
    /// A dot for each of several things.
    Dots(Dots),
    /// Times with the pieces of work that they begin and end with.
    Spans(Spans),
    /// Drawings with lines, beside each other on the same axes.
    Panels(Panels),
}

impl Figure {
    /// A figure without a sentence as yet.
    #[must_use]
    pub fn new(id: impl Into<String>, title: impl Into<String>, plot: impl Into<Plot>) -> Self {
        let (id, title, plot) = (id.into(), title.into(), plot.into());
        Self { id, title, sentence: String::new(), plot }
    }

    /// Sets the sentence under the figure.
    #[must_use]
    pub fn sentence(mut self, sentence: impl Into<String>) -> Self {
        self.sentence = sentence.into();
        self
    }

    /// The data as CSV in long form: a row for each number, with the line or part that the number
    /// belongs to, its place, its interval, its unit, and where it was published.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut text = csv::line(csv::COLUMNS);
        text.extend(self.records().iter().map(|record| csv::line(record.fields())));
        text
    }

    /// The numbers, those included that have no place in the drawing.
    pub(crate) fn records(&self) -> Vec<Record<'_>> {
        match &self.plot {
            Plot::Lines(lines) => lines.records(),
            Plot::Bars(bars) => bars.records(),
            Plot::Dots(dots) => dots.records(),
            Plot::Spans(spans) => spans.records(),
            Plot::Panels(panels) => panels.records(),
        }
    }
}

impl From<Lines> for Plot {
    fn from(lines: Lines) -> Self {
        Self::Lines(lines)
    }
}

impl From<Bars> for Plot {
    fn from(bars: Bars) -> Self {
        Self::Bars(bars)
    }
}

impl From<Dots> for Plot {
    fn from(dots: Dots) -> Self {
        Self::Dots(dots)
    }
}

impl From<Spans> for Plot {
    fn from(spans: Spans) -> Self {
        Self::Spans(spans)
    }
}

impl From<Panels> for Plot {
    fn from(panels: Panels) -> Self {
        Self::Panels(panels)
    }
}

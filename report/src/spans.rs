//! The data of figures with spans of time.

use crate::csv::Record;
use crate::{Axis, Value};

/// Spans: a time that begins with one piece of work and ends with another one, as half a round trip
/// begins with the sender's work and ends with the receiver's. Where the two pieces together are
/// longer than the whole, they overlap.
///
/// Each group of rows has an axis of its own.
#[derive(Clone, PartialEq, Debug)]
pub struct Spans {
    /// The name of the whole time.
    pub title: String,
    /// The unit of all times.
    pub unit: String,
    /// What the legend calls the first piece, what is between the pieces, the last piece, and the
    /// whole.
    pub names: [String; 4],
    /// The spans, from the top.
    pub spans: Vec<Span>,
}

/// A time with its two pieces of work.
#[derive(Clone, PartialEq, Debug)]
pub struct Span {
    /// The name of the row.
    pub label: String,
    /// The name of the group that the row belongs to. Rows that follow each other and belong to the
    /// same group stand under one heading.
    pub group: String,
    /// The number of the row's colour.
    pub colour: usize,
    /// The piece of work that begins when the whole begins.
    pub first: Value,
    /// The piece of work that ends when the whole ends.
    pub last: Value,
    /// The whole time.
    pub whole: Value,
}

impl Span {
    /// The time between the two pieces of work; below zero by as much as they overlap.
    #[must_use]
    pub fn between(&self) -> f64 {
        self.whole.value - self.first.value - self.last.value
    }

    /// Returns whether a drawing has room for the span: its first and last part and the whole are
    /// finite, none is negative, and the whole is above zero.
    pub(crate) fn is_drawable(&self) -> bool {
        let all = [self.first, self.last, self.whole];
        all.iter().all(|one| one.value >= 0.0 && one.value < 1e100) && self.whole.value > 0.0
    }
}

impl Spans {
    /// Spans without any row as yet; `names` are those of the first piece, of what is between, of
    /// the last piece, and of the whole.
    pub fn new(title: impl Into<String>, unit: impl Into<String>, names: [&str; 4]) -> Self {
        let (title, unit, names) = (title.into(), unit.into(), names.map(str::to_owned));
        Self { title, unit, names, spans: Vec::new() }
    }

    /// Adds a row below the others.
    #[must_use]
    pub fn span(mut self, span: Span) -> Self {
        self.spans.push(span);
        self
    }

    /// The axis of the times.
    #[must_use]
    pub fn axis(&self) -> Axis {
        Axis::linear(&self.title, &self.unit)
    }

    pub(crate) fn records(&self) -> Vec<Record<'_>> {
        let of = |span: &'_ Span| {
            let between = Value::exact(span.between());
            [span.first, between, span.last, span.whole]
        };
        let all = self.spans.iter().flat_map(|span| {
            of(span).into_iter().zip(&self.names).map(|(value, name)| Record {
                group: &span.group,
                row: span.label.clone(),
                row_unit: "",
                column: name,
                value,
                unit: &self.unit,
                published: None,
            })
        });
        all.filter(|record| record.value.value.is_finite()).collect()
    }
}

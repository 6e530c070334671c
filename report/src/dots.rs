//! The data of dot plots.

use crate::csv::Record;
use crate::{Axis, Value};

/// By how many times the greatest number must be above the least for a logarithmic axis.
const WIDE: f64 = 8.0;

/// A dot plot: one value for each of several things, each with its name and its number beside the
/// dot, and with its interval as a whisker.
#[derive(Clone, PartialEq, Debug)]
pub struct Dots {
    /// The name of the values.
    pub title: String,
    /// The unit of the values.
    pub unit: String,
    /// The things that are compared, from the top.
    pub dots: Vec<Dot>,
}

/// A thing of a dot plot, with its value.
#[derive(Clone, PartialEq, Debug)]
pub struct Dot {
    /// The name of the thing.
    pub label: String,
    /// The name of the group that the thing belongs to; empty if to none. Dots that follow each
    /// other and belong to the same group stand under one heading.
    pub group: String,
    /// The value; `None` if there is no value.
    pub value: Option<Value>,
    /// The number of the dot's colour.
    pub colour: usize,
    /// Where the value was published, if it is not of this report.
    pub published: Option<String>,
}

impl Dots {
    /// A dot plot without any dot as yet.
    pub fn new(title: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { title: title.into(), unit: unit.into(), dots: Vec::new() }
    }

    /// Adds a dot below the others.
    #[must_use]
    pub fn dot(mut self, dot: Dot) -> Self {
        self.dots.push(dot);
        self
    }

    /// The axis of the values: logarithmic if all numbers are above zero, and the greatest is at
    /// least eight times the least.
    #[must_use]
    pub fn axis(&self) -> Axis {
        let values = || self.dots.iter().filter_map(|dot| Some(dot.value?.finite()?.value));
        let least = values().fold(f64::INFINITY, f64::min);
        let most = values().fold(0.0, f64::max);
        match least > 0.0 && least.is_finite() && most >= WIDE * least {
            true => Axis::log(&self.title, &self.unit),
            false => Axis::linear(&self.title, &self.unit),
        }
    }

    pub(crate) fn records(&self) -> Vec<Record<'_>> {
        let record = |dot: &'_ Dot| Some((dot.value?.finite()?, dot.label.clone()));
        let all = self.dots.iter().filter_map(|dot| Some((dot, record(dot)?)));
        all.map(|(dot, (value, row))| Record {
            group: &dot.group,
            row,
            row_unit: "",
            column: &self.title,
            value,
            unit: &self.unit,
            published: dot.published.as_deref(),
        })
        .collect()
    }
}

impl Dot {
    /// A dot in the first colour.
    pub fn new(label: impl Into<String>, value: impl Into<Option<Value>>) -> Self {
        let (label, value) = (label.into(), value.into());
        Self { label, group: String::new(), value, colour: 0, published: None }
    }

    /// Puts the dot under a heading.
    #[must_use]
    pub fn group(mut self, name: impl Into<String>) -> Self {
        self.group = name.into();
        self
    }

    /// Sets the number of the dot's colour.
    #[must_use]
    pub fn colour(mut self, number: usize) -> Self {
        self.colour = number;
        self
    }

    /// Marks the value as published elsewhere, by a citation.
    #[must_use]
    pub fn published(mut self, citation: impl Into<String>) -> Self {
        self.published = Some(citation.into());
        self
    }
}

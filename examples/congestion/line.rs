//! A line of what was found: as JSON, or as a row of a table.

use std::fmt::Write;

/// The names of what is measured, in the order in which they are printed.
const FIELDS: [&str; 15] = [
    "run",
    "transport",
    "mtu",
    "loss",
    "senders",
    "ecn",
    "paths",
    "goodput",
    "slowest",
    "timeouts",
    "again",
    "fct_ratio",
    "p99_ratio",
    "stall_rtts",
    "frames_per_s",
];

/// The figures of one case, with the names that they have as JSON.
#[derive(Clone, Debug, Default)]
pub struct Line(Vec<(&'static str, Value)>);

/// A value of a field.
#[derive(Clone, Debug)]
pub enum Value {
    Text(&'static str),
    Count(u64),
    /// A share or a ratio.
    Share(f64),
}

impl Line {
    #[must_use]
    pub fn with(mut self, field: &'static str, value: Value) -> Self {
        self.0.push((field, value));
        self
    }

    /// Returns a share or a ratio, if it was measured.
    #[allow(dead_code, reason = "the test of this example asks for it")]
    pub fn share(&self, field: &str) -> Option<f64> {
        self.0.iter().find_map(|(name, value)| match value {
            Value::Share(share) if *name == field => Some(*share),
            _ => None,
        })
    }

    pub fn json(&self) -> String {
        let mut line = String::from("{");
        for (name, value) in &self.0 {
            let comma = if line.len() > 1 { ", " } else { "" };
            let _ = match value {
                Value::Text(text) => write!(line, "{comma}\"{name}\": \"{text}\""),
                Value::Count(count) => write!(line, "{comma}\"{name}\": {count}"),
                Value::Share(share) => write!(line, "{comma}\"{name}\": {share:.4}"),
            };
        }
        line + "}"
    }

    pub fn head() -> String {
        FIELDS.iter().fold(String::new(), |row, name| format!("{row}{name:>14}"))
    }

    pub fn row(&self) -> String {
        let cell = |name: &str| match self.0.iter().find(|(other, _)| *other == name) {
            Some((_, Value::Text(text))) => (*text).to_owned(),
            Some((_, Value::Count(count))) => count.to_string(),
            Some((_, Value::Share(share))) => format!("{share:.3}"),
            None => String::new(),
        };
        FIELDS.iter().fold(String::new(), |row, name| format!("{row}{:>14}", cell(name)))
    }
}

//! The data of small multiples.

use crate::Lines;
use crate::csv::Record;

/// Small multiples: drawings with lines beside each other, with the same axes from end to end.
///
/// The axes' titles, units and scales are those of the first drawing. A line has the colour that its
/// name has in the other drawings, and one legend is for all of them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Panels {
    /// The drawings, each with its heading.
    pub panels: Vec<(String, Lines)>,
}

impl Panels {
    /// Small multiples without any drawing as yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a drawing behind the others.
    #[must_use]
    pub fn panel(mut self, heading: impl Into<String>, lines: Lines) -> Self {
        self.panels.push((heading.into(), lines));
        self
    }

    pub(crate) fn records(&self) -> Vec<Record<'_>> {
        let panels = self.panels.iter();
        panels
            .flat_map(|(heading, lines)| {
                let records = lines.records().into_iter();
                records.map(move |record| Record { group: heading, ..record })
            })
            .collect()
    }
}

//! Tables: rows of measured and published numbers.

use crate::Value;
use crate::csv;

/// A table with a caption.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// A short name for links and files, as in "costs".
    pub id: String,
    /// What the table shows.
    pub caption: String,
    /// The columns, from left to right. The first column names the rows.
    pub columns: Vec<Column>,
    /// The rows. A row with fewer cells than there are columns is filled up with empty cells.
    pub rows: Vec<Vec<Cell>>,
}

/// A column of a table.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// The heading.
    pub title: String,
    /// The unit, shown under the heading; empty if there is no unit.
    pub unit: String,
    /// On which side the text of the cells begins or ends.
    pub alignment: Alignment,
    /// How many digits measured numbers have after the point.
    pub decimals: usize,
}

/// On which side the text of a cell begins or ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alignment {
    /// Text begins at the left.
    Left,
    /// Text ends at the right.
    Right,
}

/// What stands in one place of a table.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A measured number: shown with the decimals of the column and, smaller, with `±` and how far
    /// the interval reaches on the side where it reaches farther.
    Number(Value),
    /// A number from the literature: shown with the digits that it was published with, in another
    /// style, and with a footnote.
    Published {
        /// The number.
        value: f64,
        /// Where the number was published.
        citation: String,
    },
    /// Nothing, shown as a dash.
    Empty,
}

impl Table {
    /// A table without columns and rows as yet.
    #[must_use]
    pub fn new(id: impl Into<String>, caption: impl Into<String>) -> Self {
        Self { id: id.into(), caption: caption.into(), columns: Vec::new(), rows: Vec::new() }
    }

    /// Adds a column to the right.
    #[must_use]
    pub fn column(mut self, column: Column) -> Self {
        self.columns.push(column);
        self
    }

    /// Adds a row at the bottom.
    #[must_use]
    pub fn row(mut self, cells: impl IntoIterator<Item = Cell>) -> Self {
        self.rows.push(cells.into_iter().collect());
        self
    }

    /// The table as CSV: a row for each row, with two further columns, `low` and `high`, behind each
    /// column that has intervals.
    #[must_use]
    pub fn to_csv(&self) -> String {
        csv::line(self.columns.iter().map(|column| column.title.as_str()))
    }
}

impl Column {
    /// A column of words.
    #[must_use]
    pub fn text(title: impl Into<String>) -> Self {
        let title = title.into();
        Self { title, unit: String::new(), alignment: Alignment::Left, decimals: 3 }
    }

    /// A column of numbers with three decimals.
    #[must_use]
    pub fn number(title: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { unit: unit.into(), alignment: Alignment::Right, ..Self::text(title) }
    }

    /// Sets how many digits measured numbers have after the point.
    #[must_use]
    pub fn decimals(mut self, decimals: usize) -> Self {
        self.decimals = decimals;
        self
    }
}

impl Cell {
    /// A number from the literature.
    #[must_use]
    pub fn published(value: f64, citation: impl Into<String>) -> Self {
        Self::Published { value, citation: citation.into() }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Value> for Cell {
    fn from(value: Value) -> Self {
        Self::Number(value)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self::Number(value.into())
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Self {
        cell.map_or(Self::Empty, Into::into)
    }
}

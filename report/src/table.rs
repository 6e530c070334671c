//! Tables: rows of measured and published numbers.

use crate::Value;
use crate::csv::{self, Record};

/// A table with a caption.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// A short name for links and files, as in "costs".
    pub id: String,
    /// The heading of the table: what the table shows.
    pub caption: String,
    /// The columns, from left to right. The first column names the rows.
    pub columns: Vec<Column>,
    /// The rows, from the top. A row with fewer cells than there are columns is filled up with
    /// empty cells.
    pub rows: Vec<Vec<Cell>>,
}

/// A column of a table.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// The heading of the column.
    pub title: String,
    /// The unit, shown behind the heading; empty if there is no unit.
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

/// A cell of a table.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// A cell of words.
    Text(String),
    /// A measured number, shown with the decimals of the column and, smaller, with its interval: as
    /// `±` and how far the interval reaches or, where one side is longer than the other by more
    /// than a tenth of the whole, by the two ends.
    Number(Value),
    /// A number from the literature: shown with the digits that it was published with, in another
    /// style, and with a footnote.
    Published {
        /// The number as it was published.
        value: f64,
        /// Where the number was published.
        citation: String,
    },
    /// A cell without content, shown as a dash.
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

    /// The table as CSV: a row for each row. A column of numbers is named by its title and unit,
    /// and two further columns follow, for the ends of the intervals, if any number has an
    /// interval.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut titles = Vec::new();
        for (number, column) in self.columns.iter().enumerate() {
            let title = match column.unit.as_str() {
                "" => column.title.clone(),
                unit => format!("{}, {unit}", column.title),
            };
            titles.push(title.clone());
            if self.has_intervals(number) {
                titles.extend([format!("{title}, low"), format!("{title}, high")]);
            }
        }
        let mut text = csv::line(titles);
        for row in &self.rows {
            text += &csv::line((0..self.columns.len()).flat_map(|number| {
                let cell = row.get(number).unwrap_or(&Cell::Empty);
                cell.fields(self.has_intervals(number))
            }));
        }
        text
    }

    fn has_intervals(&self, column: usize) -> bool {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let mut values = cells.filter_map(|cell| match cell {
            Cell::Number(value) => value.finite()?.interval,
            _ => None,
        });
        values.next().is_some()
    }

    /// The numbers of the table, each with the text of the first cell of its row.
    pub(crate) fn records(&self) -> Vec<Record<'_>> {
        let mut records = Vec::new();
        for row in &self.rows {
            let name = row.first().map(|cell| cell.fields(false).concat()).unwrap_or_default();
            for (column, cell) in self.columns.iter().zip(row) {
                let (value, published) = match cell {
                    Cell::Number(value) => (*value, None),
                    Cell::Published { value, citation } => {
                        (Value::exact(*value), Some(&**citation))
                    }
                    Cell::Text(_) | Cell::Empty => continue,
                };
                if value.value.is_finite() {
                    let (row, row_unit, unit) = (name.clone(), "", column.unit.as_str());
                    let column = column.title.as_str();
                    records.push(Record {
                        group: "",
                        row,
                        row_unit,
                        column,
                        value,
                        unit,
                        published,
                    });
                }
            }
        }
        records
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

    /// The cell as fields of CSV: its text or number and, if asked for, the ends of its interval.
    fn fields(&self, intervals: bool) -> Vec<String> {
        let (text, ends) = match self {
            Self::Text(text) => (text.clone(), Default::default()),
            Self::Number(value) => match value.finite() {
                Some(value) => (csv::number(value.value), csv::ends(value)),
                None => Default::default(),
            },
            Self::Published { value, .. } => (csv::number(*value), Default::default()),
            Self::Empty => Default::default(),
        };
        if intervals { vec![text, ends.0, ends.1] } else { vec![text] }
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

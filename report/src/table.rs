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
    /// The groups of rows, from the top. Rows above the first group belong to none.
    pub groups: Vec<Group>,
}

/// Rows of a table that follow each other under a heading of their own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// The number of the first row; the group ends where the next one begins.
    pub first: usize,
    /// The heading of the group, as in "shm".
    pub heading: String,
    /// What is behind the name of a row where the row stands alone, as in " over shm".
    pub suffix: String,
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
        Self {
            id: id.into(),
            caption: caption.into(),
            columns: Vec::new(),
            rows: Vec::new(),
            groups: Vec::new(),
        }
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

    /// Begins a group: the rows that are added from now on stand under a heading. `suffix` is what is
    /// behind the name of a row where the row stands alone, as in " over shm".
    #[must_use]
    pub fn group(mut self, heading: impl Into<String>, suffix: impl Into<String>) -> Self {
        let (first, heading, suffix) = (self.rows.len(), heading.into(), suffix.into());
        self.groups.push(Group { first, heading, suffix });
        self
    }

    /// The group of a row; `None` for a row above the first group.
    pub(crate) fn group_of(&self, row: usize) -> Option<&Group> {
        self.groups.iter().rev().find(|group| group.first <= row)
    }

    /// Keeps the rows of which a condition is true, and the groups that still have rows.
    pub(crate) fn keep(&mut self, is_kept: impl Fn(&[Cell]) -> bool) {
        let kept = |rows: &[Vec<Cell>]| rows.iter().filter(|row| is_kept(row)).count();
        for group in &mut self.groups {
            group.first = kept(&self.rows[..group.first.min(self.rows.len())]);
        }
        self.rows.retain(|row| is_kept(row));
        let rows = self.rows.len();
        let ends: Vec<usize> =
            self.groups.iter().skip(1).map(|group| group.first).chain([rows]).collect();
        let mut ends = ends.into_iter();
        self.groups.retain(|group| ends.next().is_some_and(|end| group.first < end));
    }

    /// The table as CSV: a row for each row, in a grouped table with the group before all. A column of numbers is named by its title and unit,
    /// and two further columns follow, for the ends of the intervals, if any number has an
    /// interval.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut titles = Vec::new();
        if !self.groups.is_empty() {
            titles.push("Group".to_owned());
        }
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
        for (number, row) in self.rows.iter().enumerate() {
            let group = self.group_of(number).map_or("", |group| &group.heading).to_owned();
            let group = (!self.groups.is_empty()).then_some(group);
            let cells = (0..self.columns.len()).flat_map(|number| {
                let cell = row.get(number).unwrap_or(&Cell::Empty);
                cell.fields(self.has_intervals(number))
            });
            text += &csv::line(group.into_iter().chain(cells));
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
        for (number, row) in self.rows.iter().enumerate() {
            let group = self.group_of(number).map_or("", |group| &group.heading);
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
                    records.push(Record { group, row, row_unit, column, value, unit, published });
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

//! Tables as text.

use super::wrapping::{padded, wrapped};
use crate::{Alignment, Cell, Column, Table, number};

/// The space between two columns.
const GAP: &str = "  ";

/// A table in columns, with intervals beside the numbers or, where those columns are too wide,
/// below the numbers; where these are too wide as well, row by row.
pub fn draw(table: &Table, width: usize) -> String {
    let caption = wrapped(&table.caption, width, "");
    let citations = citations(table);
    let heads: Vec<String> = table.columns.iter().map(head).collect();
    let rows: Vec<Vec<Words>> =
        table.rows.iter().map(|row| texts(row, &table.columns, &citations)).collect();
    let beside: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(Words::beside).collect()).collect();
    let below: Vec<Vec<String>> = rows.iter().flat_map(|row| lines(row)).collect();
    let body = in_columns(table, &heads, &beside, width)
        .or_else(|| in_columns(table, &heads, &below, width))
        .unwrap_or_else(|| row_by_row(&heads, &beside));
    let notes = citations.iter().enumerate().map(|(number, citation)| {
        wrapped(&format!("{} {citation}", mark(number)), width, "  ").trim_start().to_owned()
    });
    format!("{caption}{body}{}", notes.collect::<String>())
}

/// A cell as text: words or a number, and the interval of the number; empty without an interval.
struct Words {
    text: String,
    after: String,
}

impl Words {
    /// The text and what follows the text on one line.
    fn beside(&self) -> String {
        format!("{} {}", self.text, self.after).trim_end().to_owned()
    }
}

/// A row as lines: one of texts and, if any number has an interval, one of intervals.
fn lines(row: &[Words]) -> Vec<Vec<String>> {
    let texts = row.iter().map(|words| words.text.clone()).collect();
    let after: Vec<String> = row.iter().map(|words| words.after.clone()).collect();
    match after.iter().all(String::is_empty) {
        true => vec![texts],
        false => vec![texts, after],
    }
}

fn head(column: &Column) -> String {
    match &*column.unit {
        "" => column.title.clone(),
        unit => format!("{}, {unit}", column.title),
    }
}

/// The cells of a row as text; those that the row lacks are empty cells.
fn texts(row: &[Cell], columns: &[Column], citations: &[&str]) -> Vec<Words> {
    let words = |(number, column): (usize, &Column)| {
        let (text, after) = match row.get(number) {
            Some(Cell::Text(text)) => (text.clone(), None),
            Some(Cell::Number(value)) => match value.finite() {
                Some(value) => (
                    number::fixed(value.value, column.decimals),
                    number::interval(value, column.decimals),
                ),
                None => ("–".to_owned(), None),
            },
            Some(Cell::Published { value, citation }) => {
                let place = citations.iter().position(|known| known == citation).unwrap_or(0);
                (format!("{} {}", number::shortest(*value), mark(place)), None)
            }
            Some(Cell::Empty) | None => ("–".to_owned(), None),
        };
        Words { text, after: after.unwrap_or_default() }
    };
    columns.iter().enumerate().map(words).collect()
}

fn citations(table: &Table) -> Vec<&str> {
    let mut citations = Vec::new();
    for cell in table.rows.iter().flatten() {
        if let Cell::Published { citation, .. } = cell
            && !citations.contains(&&**citation)
        {
            citations.push(&**citation);
        }
    }
    citations
}

/// The mark of a footnote.
fn mark(number: usize) -> String {
    format!("[{}]", number + 1)
}

/// Lines of cells in columns below the heads; `None` if the columns are wider than the text may be.
fn in_columns(
    table: &Table,
    heads: &[String],
    lines: &[Vec<String>],
    width: usize,
) -> Option<String> {
    let widest = |column: usize| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.chain([heads[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(widest).collect();
    let whole = widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1);
    let line = |cells: &[String]| {
        let cells = table.columns.iter().zip(cells).zip(&widths).map(|((column, cell), width)| {
            let space = width.saturating_sub(cell.chars().count());
            match column.alignment {
                Alignment::Left => padded(cell, *width),
                Alignment::Right => " ".repeat(space) + cell,
            }
        });
        cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned() + "\n"
    };
    let body = || lines.iter().map(|cells| line(cells)).collect::<String>();
    (whole <= width).then(|| line(heads) + &body())
}

/// Each row as a list: its first cell, and below it the others with their headings.
fn row_by_row(heads: &[String], rows: &[Vec<String>]) -> String {
    let widest = heads.iter().skip(1).map(|head| head.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for row in rows {
        let mut cells = heads.iter().zip(row);
        if let Some((_, name)) = cells.next() {
            text += &format!("{name}\n");
        }
        for (head, cell) in cells {
            text += &format!("  {}{GAP}{cell}\n", padded(head, widest));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    fn table() -> Table {
        Table::new("costs", "What a message costs")
            .column(Column::text("Layer"))
            .column(Column::number("o_s", "µs"))
            .row(["verbs".into(), Value::within(0.0314, 0.0286, 0.0344).into()])
            .row(["AMVIAv3".into(), Cell::published(3.1, "Begel, 2001, table 2")])
            .row(["none".into()])
    }

    #[test]
    fn a_table_is_in_columns_with_the_citations_below() {
        let expected = "\
What a message costs
Layer          o_s, µs
verbs    0.031 ± 0.003
AMVIAv3        3.1 [1]
none                 –
[1] Begel, 2001, table 2
";
        assert_eq!(draw(&table(), 80), expected);
    }

    #[test]
    fn where_there_is_no_room_for_intervals_beside_the_numbers_they_are_below() {
        let expected = "\
What a message costs
Layer    o_s, µs
verbs      0.031
         ± 0.003
AMVIAv3  3.1 [1]
none           –
";
        assert!(draw(&table(), 20).starts_with(expected), "{}", draw(&table(), 20));
    }

    #[test]
    fn where_there_is_no_room_for_columns_each_row_is_a_list() {
        let expected = "\
What a message
costs
verbs
  o_s, µs  0.031 ± 0.003
AMVIAv3
  o_s, µs  3.1 [1]
none
  o_s, µs  –
[1] Begel,
  2001, table 2
";
        assert_eq!(draw(&table(), 15), expected);
    }
}

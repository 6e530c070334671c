//! Tables as text.

use super::{padded, wrapped};
use crate::{Alignment, Cell, Column, Table, number};

/// Between two columns.
const GAP: &str = "  ";

/// A table in columns or, where those are too wide, row by row.
pub fn draw(table: &Table, width: usize) -> String {
    let caption = wrapped(&table.caption, width, "");
    let citations = citations(table);
    let heads: Vec<String> = table.columns.iter().map(head).collect();
    let rows: Vec<Vec<String>> =
        table.rows.iter().map(|row| texts(row, &table.columns, &citations)).collect();
    let widths: Vec<usize> = (0..heads.len())
        .map(|column| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.chain([heads[column].chars().count()]).max().unwrap_or(0)
        })
        .collect();
    let whole = widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1);
    let body = match whole <= width {
        true => in_columns(table, &heads, &rows, &widths),
        false => row_by_row(&heads, &rows),
    };
    let notes = citations.iter().enumerate().map(|(number, citation)| {
        wrapped(&format!("{} {citation}", mark(number)), width, "  ").trim_start().to_owned()
    });
    format!("{caption}{body}{}", notes.collect::<String>())
}

fn head(column: &Column) -> String {
    match &*column.unit {
        "" => column.title.clone(),
        unit => format!("{}, {unit}", column.title),
    }
}

/// The cells of a row as text; those that the row lacks are empty cells.
fn texts(row: &[Cell], columns: &[Column], citations: &[&str]) -> Vec<String> {
    let text = |(number, column): (usize, &Column)| match row.get(number) {
        Some(Cell::Text(text)) => text.clone(),
        Some(Cell::Number(value)) => match value.finite() {
            Some(value) => {
                let text = number::fixed(value.value, column.decimals);
                let reach = value
                    .interval
                    .map(|(low, high)| (value.value - low).max(high - value.value))
                    .map(|reach| format!(" ± {}", number::fixed(reach, column.decimals)));
                text + &reach.unwrap_or_default()
            }
            None => "–".to_owned(),
        },
        Some(Cell::Published { value, citation }) => {
            let place = citations.iter().position(|known| known == citation).unwrap_or(0);
            format!("{} {}", number::shortest(*value), mark(place))
        }
        Some(Cell::Empty) | None => "–".to_owned(),
    };
    columns.iter().enumerate().map(text).collect()
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

fn in_columns(table: &Table, heads: &[String], rows: &[Vec<String>], widths: &[usize]) -> String {
    let line = |cells: &[String]| {
        let cells = table.columns.iter().zip(cells).zip(widths).map(|((column, cell), width)| {
            let space = width.saturating_sub(cell.chars().count());
            match column.alignment {
                Alignment::Left => padded(cell, *width),
                Alignment::Right => " ".repeat(space) + cell,
            }
        });
        cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned() + "\n"
    };
    line(heads) + &rows.iter().map(|row| line(row)).collect::<String>()
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
            .row(["verbs".into(), Value::within(0.0314, 0.030, 0.034).into()])
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
    fn where_there_is_no_room_for_columns_each_row_is_a_list() {
        let expected = "\
What a message costs
verbs
  o_s, µs  0.031 ± 0.003
AMVIAv3
  o_s, µs  3.1 [1]
none
  o_s, µs  –
[1] Begel, 2001,
  table 2
";
        assert_eq!(draw(&table(), 20), expected);
    }
}

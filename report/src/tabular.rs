//! Tables as HTML.

use crate::markup::{Attribute, Markup};
use crate::number;
use crate::{Alignment, Cell, Column, Table, Value};

/// Writes a table, and the citations of its published numbers below. `name` is unique in the page.
pub fn table(markup: &mut Markup, table: &Table, name: &str) {
    let citations = citations(table);
    let label = format!("{name}-caption");
    markup.open(
        "div",
        &[("class", &"scroll"), ("tabindex", &0), ("role", &"region"), ("aria-labelledby", &label)],
    );
    markup.open("table", &[("aria-labelledby", &label)]);
    head(markup, &table.columns);
    let decimals: Vec<usize> =
        (0..table.columns.len()).map(|column| self::decimals(table, column)).collect();
    markup.open("tbody", &[]);
    for (number, row) in table.rows.iter().enumerate() {
        for group in table.groups.iter().filter(|group| group.first == number) {
            heading(markup, &group.heading, table.columns.len());
        }
        self::row(markup, row, &table.columns, &decimals, (&citations, name));
    }
    for part in ["tbody", "table", "div"] {
        markup.close(part);
    }
    // The script shows the hint where the frame is narrower than the table.
    markup.element(
        "p",
        &[("class", &"hint"), ("hidden", &"")],
        "Scroll sideways for more columns →",
    );
    notes(markup, &citations, name);
}

/// Ends the body of a table, and begins that of a group with its heading.
fn heading(markup: &mut Markup, heading: &str, columns: usize) {
    markup.raw("</tbody><tbody><tr class=\"group\">");
    markup.open("th", &[("colspan", &columns), ("scope", &"rowgroup"), ("class", &"left")]);
    markup.words_in("span", &[], heading);
    markup.raw("</th></tr>");
}

/// Writes a row. `notes` are the citations of the table, and its name.
fn row(
    markup: &mut Markup,
    row: &[Cell],
    columns: &[Column],
    decimals: &[usize],
    notes: (&[&str], &str),
) {
    markup.open("tr", &[]);
    for (number, column) in columns.iter().enumerate() {
        let cell = row.get(number).unwrap_or(&Cell::Empty);
        let tag = if number == 0 { "th" } else { "td" };
        let uncertain = if is_uncertain(cell, column) { " uncertain" } else { "" };
        let class = format!("{}{uncertain}", class(column));
        let mut attributes: Vec<Attribute> = vec![("class", &class)];
        if number == 0 {
            attributes.push(("scope", &"row"));
        }
        markup.open(tag, &attributes);
        self::cell(markup, cell, column, decimals[number], notes.0, notes.1);
        markup.close(tag);
    }
    markup.close("tr");
}

/// Whether a cell is a number that is too uncertain to rely on.
fn is_uncertain(cell: &Cell, column: &Column) -> bool {
    matches!(cell, Cell::Number(value) if value.is_uncertain(&column.unit))
}

/// Whether a table has numbers that are too uncertain to rely on.
pub fn has_uncertain(table: &Table) -> bool {
    let cells = table.rows.iter().flat_map(|row| row.iter().zip(&table.columns));
    cells.into_iter().any(|(cell, column)| is_uncertain(cell, column))
}

fn head(markup: &mut Markup, columns: &[Column]) {
    markup.raw("<thead><tr>");
    for column in columns {
        markup.open("th", &[("scope", &"col"), ("class", class(column))]);
        markup.words(&column.title);
        if !column.unit.is_empty() {
            markup.raw(" ");
            markup.element("span", &[("class", &"unit")], &column.unit);
        }
        markup.close("th");
    }
    markup.raw("</tr></thead>");
}

fn class(column: &Column) -> &'static &'static str {
    match column.alignment {
        Alignment::Left => &"left",
        Alignment::Right => &"right",
    }
}

/// The most digits that the numbers of a column have after the point, so that points stand below
/// points.
fn decimals(table: &Table, column: usize) -> usize {
    let cells = table.rows.iter().filter_map(|row| row.get(column));
    let digits = cells.map(|cell| match cell {
        Cell::Number(_) => table.columns[column].decimals,
        Cell::Published { value, .. } => fraction(&number::shortest(*value)),
        Cell::Text(_) | Cell::Empty => 0,
    });
    digits.max().unwrap_or(0)
}

/// How many characters a number has after its point.
fn fraction(text: &str) -> usize {
    text.split_once('.').map_or(0, |(_, fraction)| fraction.chars().count())
}

fn cell(
    markup: &mut Markup,
    cell: &Cell,
    column: &Column,
    decimals: usize,
    citations: &[&str],
    name: &str,
) {
    match cell {
        Cell::Text(text) => markup.words(text),
        Cell::Number(value) => match value.finite() {
            Some(value) => {
                let text = number::fixed(value.value, column.decimals);
                markup.text(&text);
                pad(markup, &text, decimals);
                if let Some(interval) = number::interval(value, column.decimals) {
                    let range = range(value, column.decimals);
                    markup.element("span", &[("class", &"after"), ("title", &range)], &interval);
                }
            }
            None => markup.element("span", &[("class", &"none")], "–"),
        },
        Cell::Published { value, citation } => {
            let number = citations.iter().position(|known| known == citation).unwrap_or(0) + 1;
            markup.open("span", &[("class", &"published"), ("title", citation)]);
            let text = number::shortest(*value);
            markup.text(&text);
            // The mark takes no room: it stands over the invisible digits.
            markup.open("sup", &[]);
            markup.element("a", &[("href", &format!("#{name}-note-{number}"))], &mark(number));
            markup.close("sup");
            markup.raw("</span>");
            pad(markup, &text, decimals);
        }
        Cell::Empty => markup.element("span", &[("class", &"none")], "–"),
    }
}

/// Writes, behind a number, invisible digits in the place of those that others of its column have.
fn pad(markup: &mut Markup, text: &str, decimals: usize) {
    let missing = decimals.saturating_sub(fraction(text));
    if missing > 0 {
        let point = if text.contains('.') { "" } else { "." };
        let pad = point.to_owned() + &"0".repeat(missing);
        markup.element("span", &[("class", &"pad"), ("aria-hidden", &"true")], &pad);
    }
}

/// The mark of a footnote.
fn mark(number: usize) -> String {
    format!("[{number}]")
}

/// The ends of a value's interval, for a pointer that rests on the interval.
fn range(value: Value, decimals: usize) -> String {
    let Some((low, high)) = value.interval else { return String::new() };
    format!("{} to {}", number::fixed(low, decimals), number::fixed(high, decimals))
}

/// The citations of a table, in the order in which they first appear.
fn citations(table: &Table) -> Vec<&str> {
    let mut citations: Vec<&str> = Vec::new();
    for cell in table.rows.iter().flatten() {
        if let Cell::Published { citation, .. } = cell
            && !citations.contains(&citation.as_str())
        {
            citations.push(citation);
        }
    }
    citations
}

fn notes(markup: &mut Markup, citations: &[&str], name: &str) {
    if citations.is_empty() {
        return;
    }
    markup.open("ol", &[("class", &"citations")]);
    for (number, citation) in citations.iter().enumerate() {
        markup.words_in("li", &[("id", &format!("{name}-note-{}", number + 1))], citation);
    }
    markup.close("ol");
}

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
    markup.open("tbody", &[]);
    let widths: Vec<Widths> =
        (0..table.columns.len()).map(|column| Widths::of(table, column)).collect();
    for row in &table.rows {
        markup.open("tr", &[]);
        for (number, column) in table.columns.iter().enumerate() {
            let cell = row.get(number).unwrap_or(&Cell::Empty);
            let tag = if number == 0 { "th" } else { "td" };
            let mut attributes: Vec<Attribute> = vec![("class", class(column))];
            if number == 0 {
                attributes.push(("scope", &"row"));
            }
            markup.open(tag, &attributes);
            self::cell(markup, cell, column, &widths[number], &citations, name);
            markup.close(tag);
        }
        markup.close("tr");
    }
    for part in ["tbody", "table", "div"] {
        markup.close(part);
    }
    notes(markup, &citations, name);
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

/// How much room the parts of a number have in a column, so that points stand below points.
struct Widths {
    /// The most digits after the point.
    decimals: usize,
    /// The most characters behind a number: of an interval, or of the mark of a footnote.
    after: usize,
}

impl Widths {
    fn of(table: &Table, column: usize) -> Self {
        let decimals = table.columns[column].decimals;
        let mut widths = Self { decimals: 0, after: 0 };
        for cell in table.rows.iter().filter_map(|row| row.get(column)) {
            match cell {
                Cell::Number(value) => {
                    widths.decimals = widths.decimals.max(decimals);
                    let length = interval(*value, decimals).chars().count();
                    widths.after = widths.after.max(length);
                }
                Cell::Published { value, .. } => {
                    let text = number::shortest(*value);
                    widths.decimals = widths.decimals.max(fraction(&text));
                    widths.after = widths.after.max(mark(1).len());
                }
                Cell::Text(_) | Cell::Empty => {}
            }
        }
        widths
    }
}

/// How many characters a number has after its point.
fn fraction(text: &str) -> usize {
    text.split_once('.').map_or(0, |(_, fraction)| fraction.chars().count())
}

fn cell(
    markup: &mut Markup,
    cell: &Cell,
    column: &Column,
    widths: &Widths,
    citations: &[&str],
    name: &str,
) {
    match cell {
        Cell::Text(text) => markup.words(text),
        Cell::Number(value) => match value.finite() {
            Some(value) => {
                let interval = interval(value, column.decimals);
                figures(markup, &number::fixed(value.value, column.decimals), widths);
                if widths.after > 0 {
                    open_after(markup, widths, &range(value, column.decimals));
                    markup.text(&interval);
                    markup.close("span");
                }
            }
            None => none(markup, widths),
        },
        Cell::Published { value, citation } => {
            let number = citations.iter().position(|known| known == citation).unwrap_or(0) + 1;
            markup.open("span", &[("class", &"published"), ("title", citation)]);
            figures(markup, &number::shortest(*value), widths);
            markup.raw("</span>");
            open_after(markup, widths, "");
            markup.element("a", &[("href", &format!("#{name}-note-{number}"))], &mark(number));
            markup.close("span");
        }
        Cell::Empty => none(markup, widths),
    }
}

/// A dash where a number would end.
fn none(markup: &mut Markup, widths: &Widths) {
    markup.element("span", &[("class", &"none")], "–");
    if widths.after > 0 {
        open_after(markup, widths, "");
        markup.close("span");
    }
}

/// A number, and invisible digits in the place of those that other numbers of the column have.
fn figures(markup: &mut Markup, text: &str, widths: &Widths) {
    markup.text(text);
    let missing = widths.decimals.saturating_sub(fraction(text));
    if missing > 0 {
        let point = if text.contains('.') { "" } else { "." };
        let pad = point.to_owned() + &"0".repeat(missing);
        markup.element("span", &[("class", &"pad"), ("aria-hidden", &"true")], &pad);
    }
}

/// The room behind a number for an interval or the mark of a footnote, as wide as the widest of the
/// column.
fn open_after(markup: &mut Markup, widths: &Widths, range: &str) {
    let style = format!("min-width:{}ch", widths.after);
    let mut attributes: Vec<Attribute> = vec![("class", &"after"), ("style", &style)];
    if !range.is_empty() {
        attributes.push(("title", &range));
    }
    markup.open("span", &attributes);
}

/// The mark of a footnote.
fn mark(number: usize) -> String {
    format!("[{number}]")
}

/// How far the interval of a value reaches, on the side where it reaches farther; empty without an
/// interval.
fn interval(value: Value, decimals: usize) -> String {
    let Some((low, high)) = value.finite().and_then(|value| value.interval) else {
        return String::new();
    };
    let reach = (value.value - low).max(high - value.value).max(0.0);
    format!("± {}", number::fixed(reach, decimals))
}

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

//! Dot plots.

use super::axes;
use super::canvas::{Area, Canvas, HEADING_TEXT, TEXT};
use super::marker::Look;
use super::tooltip::tooltip;
use crate::number;
use crate::scale::{self, Range};
use crate::words;
use crate::{Dot, Dots, Scale, Value};

/// How high a row is, and how high the heading of a group is.
const ROW: f64 = 21.0;
const HEADING: f64 = 30.0;
/// How much a name takes above its row.
const ABOVE: f64 = 18.0;

/// A dot with its value and the height of its row.
struct Row<'a> {
    dot: &'a Dot,
    value: Value,
    text: String,
    y: f64,
}

/// Draws a dot plot. Returns false, and draws nothing, if no value has a place.
pub fn draw(dots: &Dots, canvas: &mut Canvas) -> bool {
    let axis = dots.axis();
    let mut rows: Vec<Row> = dots.dots.iter().filter_map(|dot| row(dot, axis.scale)).collect();
    let values: Vec<Value> = rows.iter().map(|row| row.value).collect();
    let values = scale::with_ends(&values, axis.scale);
    let widest = |text: &dyn Fn(&Row) -> f64| rows.iter().map(text).fold(0.0, f64::max);
    let names = widest(&|row| words::width(&row.dot.label, TEXT));
    // Where there is no room beside the dots, the names are above them.
    let above = names > 0.42 * canvas.width;
    let left = if above { 10.0 } else { names + 14.0 };
    let behind = widest(&|row| words::width(&row.text, TEXT)) + 16.0;
    let headings = place(&mut rows, if above { ABOVE } else { 0.0 });
    let bottom = rows.last().map_or(0.0, |row| row.y) + ROW / 2.0 + 4.0;
    let area = Area { left, top: 4.0, right: canvas.width - behind, bottom };
    let make = |most| Range::new(&axis, axis.scale == Scale::Linear, values.clone(), most);
    let Some(range) = axes::across(area.width(), make) else { return false };
    axes::below(canvas, &range, &area, true);
    for (heading, y) in headings {
        let heading = words::fitted(heading, HEADING_TEXT, canvas.width);
        canvas.text_over((0.0, y), "start", "group halo", &heading);
    }
    for row in &rows {
        row.label(canvas, &area, above);
        row.draw(canvas, &range, &area, &dots.unit);
    }
    canvas.text((area.right, area.bottom + 37.0), "end", "title", &axes::title(&axis));
    canvas.height = area.bottom + 44.0;
    true
}

/// A row without a height as yet; `None` if its value has no place.
fn row(dot: &Dot, scale: Scale) -> Option<Row<'_>> {
    let value = dot.value?.finite().filter(|value| scale::fits(value.value, scale))?;
    let text = number::significant(value.value);
    Some(Row { dot, value, text, y: 0.0 })
}

/// Puts the rows below each other, with some room above each. Returns the headings of groups with their heights.
fn place<'a>(rows: &mut [Row<'a>], above: f64) -> Vec<(&'a str, f64)> {
    let (mut y, mut group, mut headings) = (4.0, "", Vec::new());
    for row in rows {
        if row.dot.group != group {
            group = &row.dot.group;
            headings.push((group, y + 24.0));
            y += HEADING;
        }
        row.y = y + above + ROW / 2.0;
        y += above + ROW;
    }
    headings
}

impl Row<'_> {
    /// Writes the name of the row, to the left of the area or above the row.
    fn label(&self, canvas: &mut Canvas, area: &Area, above: bool) {
        let cited = if self.dot.published.is_some() { " cited" } else { "" };
        let class = format!("label halo{cited}");
        let (at, anchor) = match above {
            true => ((area.left + 4.0, self.y - 9.5), "start"),
            false => ((area.left - 10.0, self.y + 4.5), "end"),
        };
        let label = words::fitted(&self.dot.label, TEXT, canvas.width - 14.0);
        canvas.text_over(at, anchor, &class, &label);
    }

    /// Draws the dot with its interval and its number.
    fn draw(&self, canvas: &mut Canvas, range: &Range, area: &Area, unit: &str) {
        let Self { dot, value, text, y } = self;
        let x = |value: f64| {
            let part = range.position(value);
            // An end of an interval may have no place on a logarithmic axis.
            area.left + area.width() * if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 }
        };
        let cited = if dot.published.is_some() { " cited" } else { "" };
        let look = Look::new(dot.colour, dot.published.is_some());
        let class = look.class();
        let at = x(value.value);
        canvas.line((area.left, *y), (at, *y), "guide");
        let mut end = at;
        if let Some((from, to)) = value.interval {
            let (low, high) = (x(from), x(to));
            canvas.line((low, *y), (high, *y), &format!("whisker thick {class}"));
            let is_shown = |end: &f64| (range.low..=range.high).contains(end);
            for end in [from, to].iter().filter(|end| is_shown(end)) {
                canvas.line((x(*end), y - 3.5), (x(*end), y + 3.5), &format!("whisker {class}"));
            }
            end = end.max(high);
        }
        look.marker(canvas, (at, *y), &tooltip(&dot.label, *value, unit));
        let end = end.max(at + 4.0) + 7.0;
        let uncertain = if value.is_uncertain(unit) { " uncertain" } else { "" };
        let class = format!("number halo{cited}{uncertain}");
        canvas.text_over((end, y + 4.5), "start", &class, text);
    }
}

//! Spans of time: what a time begins with, and what it ends with.

use super::axes;
use super::canvas::{Area, Canvas, HEADING_TEXT, SMALL, TEXT};
use super::legend;
use super::tooltip::tooltip;
use crate::number;
use crate::scale::{self, Range};
use crate::words;
use crate::{Scale, Span, Spans, Value};

/// How high a lane is; a row has two of them.
const LANE: f64 = 8.0;
/// How high a row is with its label beside it, and how much its label takes above it.
const ROW: f64 = 26.0;
const ABOVE: f64 = 19.0;
/// How high the heading of a group is, and how much its axis takes below.
const HEADING: f64 = 30.0;
const AXIS: f64 = 30.0;

/// Where the parts of all groups are.
struct Layout {
    left: f64,
    right: f64,
    /// Where the numbers of the whole end, and those of what is between begin.
    numbers: f64,
    /// Whether labels are above their rows, where there is no room beside them.
    above: bool,
}

/// Draws spans, group by group. Returns false, and draws nothing, if no span can be drawn.
pub fn draw(spans: &Spans, canvas: &mut Canvas) -> bool {
    let rows: Vec<&Span> = spans.spans.iter().filter(|span| span.is_drawable()).collect();
    if rows.is_empty() {
        return false;
    }
    let widest = |text: &dyn Fn(&Span) -> String, size: f64| {
        rows.iter().map(|row| words::width(&text(row), size)).fold(0.0, f64::max)
    };
    let names = widest(&|row| row.label.clone(), TEXT);
    let whole = widest(&|row| number::significant(row.whole.value), TEXT);
    let between = widest(&|row| told(spans, row), SMALL) + 10.0;
    let above = names + whole + between > 0.6 * canvas.width;
    let numbers = canvas.width - between;
    let layout = match above {
        true => Layout { left: 10.0, right: canvas.width - 10.0, numbers, above },
        false => Layout { left: names + 14.0, right: numbers - whole - 16.0, numbers, above },
    };
    let mut y = explain(spans, canvas) + 6.0;
    for group in rows.chunk_by(|one, other| one.group == other.group) {
        y = draw_group(spans, group, canvas, &layout, y);
    }
    let title = axes::title(&spans.axis());
    canvas.text((layout.right, y + 7.0), "end", "title", &title);
    canvas.height = y + 14.0;
    true
}

/// What is between the two pieces of a row, or by how much they overlap.
fn told(spans: &Spans, span: &Span) -> String {
    let between = span.between();
    let name = if between < 0.0 { "overlap" } else { &spans.names[1] };
    format!("{name} {}", number::significant(between.abs()))
}

/// Draws the legend, and returns the height below.
fn explain(spans: &Spans, canvas: &mut Canvas) -> f64 {
    let [first, between, last, whole] = spans.names.clone();
    let is = |below: bool| spans.spans.iter().any(|span| (span.between() < 0.0) == below);
    let mut samples = vec![(first, 0)];
    samples.extend(is(false).then_some((between, 3)));
    samples.push((last, 1));
    samples.extend(is(true).then(|| ("overlap".to_owned(), 4)));
    samples.push((whole, 2));
    let names: Vec<String> = samples.iter().map(|(name, _)| name.clone()).collect();
    legend::draw(canvas, 0.0, &names, |canvas, number, (x, y)| {
        let area = |top: f64, bottom: f64| Area {
            left: x - 11.0,
            top: y + top,
            right: x + 11.0,
            bottom: y + bottom,
        };
        match samples[number].1 {
            0 => canvas.path(&area(-4.0, 4.0).path(), "span published", ""),
            1 => canvas.path(&area(-4.0, 4.0).path(), "span pale published", ""),
            2 => canvas.line((x, y - 8.0), (x, y + 8.0), "total"),
            3 => canvas.line((x - 11.0, y), (x + 11.0, y), "between"),
            _ => canvas.path(&area(-7.0, 7.0).path(), "overlap", ""),
        }
    })
}

/// Draws a group with its heading and its axis from a height on, and returns the height below.
fn draw_group(
    spans: &Spans,
    rows: &[&Span],
    canvas: &mut Canvas,
    layout: &Layout,
    top: f64,
) -> f64 {
    let heading = words::fitted(&rows[0].group, HEADING_TEXT, canvas.width);
    let begin = if heading.is_empty() { top } else { top + HEADING };
    canvas.text_over((0.0, top + 20.0), "start", "group halo", &heading);
    let pitch = ROW + if layout.above { ABOVE } else { 0.0 };
    let area = Area {
        left: layout.left,
        top: begin,
        right: layout.right,
        bottom: begin + pitch * rows.len() as f64 + 2.0,
    };
    let values: Vec<Value> = rows
        .iter()
        .flat_map(|row| [row.whole, row.first.value.into(), row.last.value.into()])
        .collect();
    let values = scale::with_ends(&values, Scale::Linear);
    let make = |most| Range::new(&spans.axis(), true, values.clone(), most);
    let Some(range) = axes::across(area.width(), make) else { return top };
    axes::below(canvas, &range, &area, true);
    for (number, row) in rows.iter().enumerate() {
        // The row is the lower part of its place, where its label stands above.
        let middle = begin + pitch * (number + 1) as f64 - ROW / 2.0;
        draw_row(spans, row, canvas, (&range, &area), middle);
    }
    canvas.line((area.left, area.top), (area.left, area.bottom), "axis");
    let labels = rows.iter().enumerate().map(|(number, row)| (row, begin + pitch * number as f64));
    for (row, y) in labels {
        label(spans, row, canvas, layout, y);
    }
    area.bottom + AXIS
}

/// Writes the name and the numbers of a row: at its two sides, or above.
fn label(spans: &Spans, row: &Span, canvas: &mut Canvas, layout: &Layout, y: f64) {
    let whole = number::significant(row.whole.value);
    let (name, place, anchor, y) = match layout.above {
        true => {
            let room = layout.numbers - layout.left - words::width(&whole, TEXT) - 12.0;
            let name = words::fitted(&row.label, TEXT, room);
            (name, layout.left + 4.0, "start", y + 14.0)
        }
        false => (row.label.clone(), layout.left - 10.0, "end", y + ROW / 2.0 + 4.5),
    };
    canvas.text_over((place, y), anchor, "label halo", &name);
    canvas.text_over((layout.numbers, y), "end", "number halo", &whole);
    canvas.text_over((layout.numbers + 10.0, y), "start", "small halo", &told(spans, row));
}

/// Draws the two pieces of a row in two lanes, what is between them or where they overlap, and the
/// mark at the end of the whole.
fn draw_row(
    spans: &Spans,
    row: &Span,
    canvas: &mut Canvas,
    (range, area): (&Range, &Area),
    middle: f64,
) {
    let x = |value: f64| area.left + area.width() * range.position(value).clamp(0.0, 1.0);
    let whole = row.whole.value;
    let begins = (whole - row.last.value).max(0.0);
    let lane = |from: f64, to: f64, top: f64, bottom: f64| {
        Area { left: x(from), top, right: x(to), bottom }.path()
    };
    let class = format!("s{}", row.colour % 6);
    let [first, between, last, _] = &spans.names;
    let told = |part: &str, value| tooltip(&format!("{}, {part}", row.label), value, &spans.unit);
    let ends = row.first.value;
    if ends < begins {
        let told = told(between, (begins - ends).into());
        let path = lane(ends, begins, middle - 0.7, middle + 0.7);
        canvas.path(&path, "between", &told);
    }
    let upper = lane(0.0, ends, middle - LANE, middle);
    canvas.path(&upper, &format!("span {class}"), &told(first, row.first));
    let lower = lane(begins, whole, middle, middle + LANE);
    canvas.path(&lower, &format!("span pale {class}"), &told(last, row.last));
    if ends > begins {
        let path = lane(begins, ends.min(whole), middle - LANE - 2.0, middle + LANE + 2.0);
        canvas.path(&path, "overlap", &told("overlap", (-row.between()).into()));
    }
    if let Some((low, high)) = row.whole.interval {
        canvas.line((x(low), middle), (x(high), middle), "whisker plain");
    }
    canvas.line((x(whole), middle - LANE - 3.0), (x(whole), middle + LANE + 3.0), "total");
}

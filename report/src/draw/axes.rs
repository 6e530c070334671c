//! Axes: grid lines, ticks and titles around the area of a plot.

use super::canvas::{Area, Canvas, SMALL};
use crate::Axis;
use crate::scale::Range;
use crate::words;

/// The title of an axis, and its unit. An axis of bytes has the unit at its ticks.
pub fn title(axis: &Axis) -> String {
    match axis.unit.as_str() {
        "" => axis.title.clone(),
        "B" if axis.scale == crate::Scale::Log2 => axis.title.clone(),
        unit => format!("{}, {unit}", axis.title),
    }
}

/// The range from left to right of a drawing that is so wide, with as many ticks as have room for
/// their labels; `make` makes a range with a number of ticks.
pub fn across(width: f64, make: impl Fn(usize) -> Option<Range>) -> Option<Range> {
    let mut ranges = (2..=(width / 60.0) as usize).rev().filter_map(&make);
    let roomy = |range: &Range| {
        let count = range.ticks.len().max(1) as f64;
        (widest(range) + 8.0) * count <= 0.85 * width
    };
    ranges.find(roomy).or_else(|| make(2))
}

/// How wide the widest label of a tick is.
pub fn widest(range: &Range) -> f64 {
    range.ticks.iter().map(|(_, label)| words::width(label, SMALL)).fold(0.0, f64::max)
}

/// The places between the ticks; none if they would run together.
fn minor(range: &Range, length: f64) -> &[f64] {
    if range.minor.len() as f64 * 4.0 < length { &range.minor } else { &[] }
}

/// Draws the ticks below the area, whose labels need 22 units of height.
pub fn below(canvas: &mut Canvas, range: &Range, area: &Area, grid: bool) {
    let place = |value: f64| area.left + range.position(value) * area.width();
    for value in minor(range, area.width()) {
        let x = place(*value);
        canvas.line((x, area.bottom), (x, area.bottom + 3.0), "tick");
    }
    for (value, label) in &range.ticks {
        let x = place(*value);
        if grid {
            canvas.line((x, area.top), (x, area.bottom), "grid");
        }
        canvas.line((x, area.bottom), (x, area.bottom + 5.0), "tick");
        canvas.text((x, area.bottom + 18.0), "middle", "small", label);
    }
}

/// Draws the ticks to the left of the area, with grid lines in the area.
pub fn left(canvas: &mut Canvas, range: &Range, area: &Area) {
    let place = |value: f64| area.bottom - range.position(value) * area.height();
    for value in minor(range, area.height()) {
        let y = place(*value);
        canvas.line((area.left - 3.0, y), (area.left, y), "tick");
    }
    for (value, label) in &range.ticks {
        let y = place(*value);
        canvas.line((area.left, y), (area.right, y), "grid");
        canvas.text((area.left - 7.0, y + 4.0), "end", "small", label);
    }
}

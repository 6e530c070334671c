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

/// How wide the widest label of a tick is.
pub fn widest(range: &Range) -> f64 {
    range.ticks.iter().map(|(_, label)| words::width(label, SMALL)).fold(0.0, f64::max)
}

/// The ticks below the area, whose labels need 22 units.
pub fn below(canvas: &mut Canvas, range: &Range, area: &Area, grid: bool) {
    let place = |value: f64| area.left + range.position(value) * area.width();
    for value in &range.minor {
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

/// The ticks to the left of the area, with grid lines in the area.
pub fn left(canvas: &mut Canvas, range: &Range, area: &Area) {
    let place = |value: f64| area.bottom - range.position(value) * area.height();
    for value in &range.minor {
        let y = place(*value);
        canvas.line((area.left - 3.0, y), (area.left, y), "tick");
    }
    for (value, label) in &range.ticks {
        let y = place(*value);
        canvas.line((area.left, y), (area.right, y), "grid");
        canvas.text((area.left - 7.0, y + 4.0), "end", "small", label);
    }
}

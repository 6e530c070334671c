//! The area of bars, in which values run to the right or upwards.

use super::axes;
use super::canvas::{Area, Canvas, Place};
use crate::Direction;
use crate::scale::Range;

/// The area of bars, and what its edges stand for.
pub struct Plane {
    /// Where values run to.
    pub direction: Direction,
    /// The area on the canvas.
    pub area: Area,
    /// The values from the one edge to the other.
    pub range: Range,
}

impl Plane {
    /// The place of a value, at a distance from the first bar's edge of the area.
    pub fn place(&self, across: f64, value: f64) -> Place {
        let part = self.range.position(value);
        // An end of an interval may have no place on a logarithmic axis.
        let part = if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 };
        match self.direction {
            Direction::Horizontal => {
                (self.area.left + part * self.area.width(), self.area.top + across)
            }
            Direction::Vertical => {
                (self.area.left + across, self.area.bottom - part * self.area.height())
            }
        }
    }

    /// The rectangle between two distances from the edge and between two values.
    pub fn rectangle(&self, across: (f64, f64), values: (f64, f64)) -> Area {
        let (one, other) = (self.place(across.0, values.0), self.place(across.1, values.1));
        Area {
            left: one.0.min(other.0),
            top: one.1.min(other.1),
            right: one.0.max(other.0),
            bottom: one.1.max(other.1),
        }
    }

    /// A line from one value to another, at one distance from the edge.
    pub fn line(&self, canvas: &mut Canvas, across: f64, values: (f64, f64), class: &str) {
        canvas.line(self.place(across, values.0), self.place(across, values.1), class);
    }

    /// A line at one value, from one distance from the edge to another.
    pub fn stroke(&self, canvas: &mut Canvas, across: (f64, f64), value: f64, class: &str) {
        canvas.line(self.place(across.0, value), self.place(across.1, value), class);
    }

    /// The grid lines and labels of the axis of values.
    pub fn axis(&self, canvas: &mut Canvas) {
        match self.direction {
            Direction::Horizontal => axes::below(canvas, &self.range, &self.area, true),
            Direction::Vertical => axes::left(canvas, &self.range, &self.area),
        }
    }

    /// The line at which bars begin.
    pub fn base(&self, canvas: &mut Canvas) {
        let across = match self.direction {
            Direction::Horizontal => self.area.height(),
            Direction::Vertical => self.area.width(),
        };
        self.stroke(canvas, (0.0, across), self.range.base(), "axis");
    }
}

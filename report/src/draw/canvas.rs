//! A surface to draw on.

use std::fmt;

use crate::markup::Markup;
use crate::words;

/// The size of ordinary text.
pub const TEXT: f64 = 12.5;
/// The size of ordinary text that has the room of the headings of groups, which are bold.
pub const HEADING_TEXT: f64 = 13.5;
/// The size of the text at ticks.
pub const SMALL: f64 = 11.5;

/// A place on a canvas: how far to the right, and how far down.
pub type Place = (f64, f64);

/// A surface of a given width that becomes as high as what is drawn.
pub struct Canvas {
    /// The shapes that were drawn, in order.
    pub markup: Markup,
    /// The shapes that lie over all others.
    over: Markup,
    /// How wide the surface is.
    pub width: f64,
    /// How high the surface is.
    pub height: f64,
    /// A name that no other surface of a page has.
    pub name: String,
}

/// A rectangle on a canvas.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Area {
    /// The left edge.
    pub left: f64,
    /// The upper edge.
    pub top: f64,
    /// The right edge.
    pub right: f64,
    /// The lower edge.
    pub bottom: f64,
}

/// A coordinate, written with a tenth of a unit.
pub struct Px(pub f64);

impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round() / 10.0;
        write!(f, "{}", if tenths == 0.0 { 0.0 } else { tenths })
    }
}

impl Canvas {
    /// A surface without any shape as yet.
    pub fn new(width: f64, name: &str) -> Self {
        Self {
            markup: Markup::default(),
            over: Markup::default(),
            width,
            height: 0.0,
            name: name.to_owned(),
        }
    }

    /// A text whose base line begins, ends, or has its middle at a place; nothing if empty.
    pub fn text(&mut self, at: Place, anchor: &str, class: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        self.markup.open(
            "text",
            &[("x", &Px(at.0)), ("y", &Px(at.1)), ("text-anchor", &anchor), ("class", &class)],
        );
        let mut lowered = false;
        for (piece, subscript) in words::pieces(text) {
            match (subscript, lowered) {
                (true, _) => self.markup.element("tspan", &[("dy", &3), ("class", &"sub")], piece),
                (false, true) => self.markup.element("tspan", &[("dy", &-3)], piece),
                (false, false) => self.markup.text(piece),
            }
            lowered = subscript;
        }
        self.markup.close("text");
    }

    /// A text that lies over everything, whatever is drawn later.
    pub fn text_over(&mut self, at: Place, anchor: &str, class: &str, text: &str) {
        std::mem::swap(&mut self.markup, &mut self.over);
        self.text(at, anchor, class, text);
        std::mem::swap(&mut self.markup, &mut self.over);
    }

    /// Returns the markup of all shapes.
    pub fn finish(self) -> String {
        self.markup.finish() + &self.over.finish()
    }

    /// Draws a straight line.
    pub fn line(&mut self, from: Place, to: Place, class: &str) {
        self.markup.leaf(
            "line",
            &[
                ("x1", &Px(from.0)),
                ("y1", &Px(from.1)),
                ("x2", &Px(to.0)),
                ("y2", &Px(to.1)),
                ("class", &class),
            ],
        );
    }

    /// Draws a path; `told` is shown to a pointer that rests on the shape, unless empty.
    pub fn path(&mut self, path: &str, class: &str, told: &str) {
        if told.is_empty() {
            return self.markup.leaf("path", &[("d", &path), ("class", &class)]);
        }
        self.markup.open("path", &[("d", &path), ("class", &class)]);
        self.markup.element("title", &[], told);
        self.markup.close("path");
    }
}

impl Area {
    /// How wide the rectangle is.
    pub fn width(&self) -> f64 {
        self.right - self.left
    }

    /// How high the rectangle is.
    pub fn height(&self) -> f64 {
        self.bottom - self.top
    }

    /// Whether the rectangle and another have a point in common.
    pub fn meets(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    /// Whether the other rectangle lies within.
    pub fn contains(&self, other: &Self) -> bool {
        self.left <= other.left
            && other.right <= self.right
            && self.top <= other.top
            && other.bottom <= self.bottom
    }

    /// The rectangle as a path.
    pub fn path(&self) -> String {
        let (left, top, right, bottom) =
            (Px(self.left), Px(self.top), Px(self.right), Px(self.bottom));
        format!("M{left} {top}H{right}V{bottom}H{left}Z")
    }
}

/// A path through places.
pub fn polyline(places: &[Place]) -> String {
    let mut path = String::new();
    for (number, (x, y)) in places.iter().enumerate() {
        path += if number == 0 { "M" } else { "L" };
        path += &format!("{} {}", Px(*x), Px(*y));
    }
    path
}

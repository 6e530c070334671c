//! Markers: the shapes at the points of a line.

use super::canvas::{Canvas, Place, Px};

/// How many shapes there are.
const SHAPES: usize = 6;

/// The look of a line: its colour, its dash and its markers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// The number of the colour; `None` for grey.
    colour: Option<usize>,
    /// The number of the dash and the marker.
    number: usize,
    /// Whether the line was published elsewhere, and is grey and hollow.
    published: bool,
}

impl Look {
    /// The look of the line with a number, counted among the measured or among the published lines.
    pub fn new(number: usize, published: bool) -> Self {
        Self { colour: Some(number), number, published }
    }

    /// The look with another dash and other markers.
    pub fn with_pattern(self, number: usize) -> Self {
        Self { number, ..self }
    }

    /// The look without its colour, for what several colours have in common.
    pub fn in_grey(self) -> Self {
        Self { colour: None, ..self }
    }

    /// The class that has the colour: as a line, a shape or text.
    pub fn class(&self) -> String {
        match (self.published, self.colour) {
            (true, _) => "published".to_owned(),
            (false, None) => "grey".to_owned(),
            (false, Some(number)) => format!("s{}", number % SHAPES),
        }
    }

    /// The lengths of dashes and gaps; "none" for a line without gaps. Lines beyond the sixth
    /// repeat the colours and shapes of those before with other dashes.
    pub fn dash(&self) -> &'static str {
        const MEASURED: [&str; 4] = ["none", "2 2.5", "7 3", "9 3 2 3"];
        const PUBLISHED: [&str; 3] = ["5 3", "2 3", "8 3 2 3"];
        match self.published {
            true => PUBLISHED[self.number % 3],
            false => MEASURED[(self.number % SHAPES % 2 * 2 + self.number / SHAPES) % 4],
        }
    }

    /// Draws the marker of the line around a place.
    pub fn marker(&self, canvas: &mut Canvas, at: Place, told: &str) {
        let hollow = if self.published { " hollow" } else { "" };
        let class = format!("marker {}{hollow}", self.class());
        let number = if self.published { self.number + 3 } else { self.number };
        canvas.path(&shape(number, at), &class, told);
    }
}

/// The path of a shape around a place.
pub fn shape(number: usize, (x, y): Place) -> String {
    let polygon = |corners: &[(f64, f64)]| {
        let corners: Vec<_> = corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
        super::canvas::polyline(&corners) + "Z"
    };
    match number % SHAPES {
        0 => format!("M{} {}a3.7 3.7 0 1 0 7.4 0a3.7 3.7 0 1 0 -7.4 0Z", Px(x - 3.7), Px(y)),
        1 => polygon(&[(-3.4, -3.4), (3.4, -3.4), (3.4, 3.4), (-3.4, 3.4)]),
        2 => polygon(&[(0.0, -4.4), (4.4, 3.4), (-4.4, 3.4)]),
        3 => polygon(&[(0.0, -4.8), (4.8, 0.0), (0.0, 4.8), (-4.8, 0.0)]),
        4 => polygon(&[(0.0, 4.4), (4.4, -3.4), (-4.4, -3.4)]),
        _ => polygon(&[
            (-1.5, -4.2),
            (1.5, -4.2),
            (1.5, -1.5),
            (4.2, -1.5),
            (4.2, 1.5),
            (1.5, 1.5),
            (1.5, 4.2),
            (-1.5, 4.2),
            (-1.5, 1.5),
            (-4.2, 1.5),
            (-4.2, -1.5),
            (-1.5, -1.5),
        ]),
    }
}

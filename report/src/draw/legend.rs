//! Legends: which look has which name.

use super::canvas::{Canvas, TEXT};
use crate::words;

/// How high a row of a legend is.
const ROW: f64 = 18.0;
/// How wide the sample before a name is.
const SAMPLE: f64 = 30.0;

/// Draws names in rows from a height on, each behind a sample that `sample` draws around the given
/// place, 24 units wide. Returns the height below the legend.
pub fn draw(
    canvas: &mut Canvas,
    top: f64,
    names: &[String],
    mut sample: impl FnMut(&mut Canvas, usize, (f64, f64)),
) -> f64 {
    let (mut x, mut y) = (0.0, top);
    for (number, name) in names.iter().enumerate() {
        let name = words::fitted(name, TEXT, canvas.width - SAMPLE);
        let wide = SAMPLE + words::width(&name, TEXT);
        if x > 0.0 && x + wide > canvas.width {
            (x, y) = (0.0, y + ROW);
        }
        sample(canvas, number, (x + 12.0, y + ROW / 2.0));
        canvas.text((x + SAMPLE, y + ROW / 2.0 + 4.5), "start", "label", &name);
        x += wide + 18.0;
    }
    y + ROW
}

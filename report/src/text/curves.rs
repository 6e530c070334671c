//! Lines through points as text: each line has a letter, which stands at its points.

use super::wrapping::{padded, wrapped};
use crate::scale::{self, Range};
use crate::{Lines, Series};

/// How many lines of text a plot is high at the least and at the most.
const HEIGHTS: [usize; 2] = [9, 15];
/// How many characters a plot is wide at the most.
const WIDEST: usize = 76;

/// The plot with its axes and the names of the letters; `None` if no point has a place. A narrow
/// plot is low, too.
pub fn draw(lines: &Lines, width: usize) -> Option<String> {
    let drawn = |point: &(f64, f64)| {
        scale::fits(point.0, lines.x.scale) && scale::fits(point.1, lines.y.scale)
    };
    let all: Vec<Vec<(f64, f64)>> = lines
        .series
        .iter()
        .map(|series| places(series).filter(drawn).collect::<Vec<_>>())
        .collect();
    let points = || all.iter().flatten().copied();
    let x = Range::new(&lines.x, false, points().map(|point| point.0), 9)?;
    let levels = lines.levels.iter().map(|(_, y)| *y);
    let y = Range::new(&lines.y, false, points().map(|point| point.1).chain(levels), 5)?;
    let margin = y.ticks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
    let columns = width.min(WIDEST).saturating_sub(margin + 3).max(10);
    let height = (columns / 4).clamp(HEIGHTS[0], HEIGHTS[1]);
    let mut grid = Grid { x: &x, y: &y, cells: vec![vec![' '; columns]; height] };
    for (_, level) in &lines.levels {
        grid.row(*level).into_iter().for_each(|row| grid.cells[row].fill('-'));
    }
    for points in &all {
        points.windows(2).for_each(|pair| grid.join(pair[0], pair[1]));
    }
    for (number, points) in all.iter().enumerate() {
        points.iter().for_each(|point| grid.mark(*point, letter(number)));
    }
    let title = |axis: &crate::Axis| match &*axis.unit {
        "" => axis.title.clone(),
        unit => format!("{}, {unit}", axis.title),
    };
    let mut text = format!("{}\n", title(&lines.y));
    text += &grid.text(margin);
    text += &axis(&x, margin, columns);
    text += &format!("{}{}\n", " ".repeat(margin + 3), title(&lines.x));
    let names = lines.series.iter().enumerate();
    text.extend(names.map(|(number, series)| {
        let name = wrapped(&series.name, width, "     ");
        let name = name.replacen("     ", &format!("  {}  ", letter(number)), 1);
        let from = series.published.as_deref().unwrap_or_default();
        name + &wrapped(from, width, "     ")
    }));
    let levels: Vec<_> = lines.levels.iter().map(|(label, _)| label.as_str()).collect();
    text += &wrapped(&levels.join(", "), width, "     ").replacen("     ", "  -  ", 1);
    Some(text)
}

fn places(series: &Series) -> impl Iterator<Item = (f64, f64)> {
    series.points.iter().map(|(x, value)| (*x, value.value))
}

/// The letter of a line: a to z, and then from a again.
fn letter(number: usize) -> char {
    (b'a' + (number % 26) as u8).into()
}

/// The characters of a plot, the topmost line first.
struct Grid<'a> {
    x: &'a Range,
    y: &'a Range,
    cells: Vec<Vec<char>>,
}

impl Grid<'_> {
    fn row(&self, y: f64) -> Option<usize> {
        let place = self.y.position(y);
        let row = ((1.0 - place) * (self.cells.len() - 1) as f64).round();
        (0.0..=1.0).contains(&place).then_some(row as usize)
    }

    fn column(&self, x: f64) -> usize {
        let last = self.cells[0].len() - 1;
        ((self.x.position(x) * last as f64).round().max(0.0) as usize).min(last)
    }

    /// Puts a letter at a point; where another letter stands already, a star for both.
    fn mark(&mut self, (x, y): (f64, f64), letter: char) {
        let (Some(row), column) = (self.row(y), self.column(x)) else { return };
        let cell = &mut self.cells[row][column];
        *cell = if cell.is_ascii_lowercase() && *cell != letter { '*' } else { letter };
    }

    /// Puts dots on the straight line between two points, where nothing stands.
    fn join(&mut self, from: (f64, f64), to: (f64, f64)) {
        let ends = [from, to].map(|(x, y)| (self.x.position(x), self.y.position(y)));
        let columns = self.cells[0].len();
        let last = self.cells.len() - 1;
        let steps = 2 * columns.max(last);
        for step in 0..=steps {
            let share = step as f64 / steps as f64;
            let place = |a: f64, b: f64| a + (b - a) * share;
            let (x, y) = (place(ends[0].0, ends[1].0), place(ends[0].1, ends[1].1));
            let column = (x * (columns - 1) as f64).round() as usize;
            let row = ((1.0 - y) * last as f64).round() as usize;
            if let Some(cell @ (' ' | '-')) =
                self.cells.get_mut(row).and_then(|row| row.get_mut(column))
            {
                *cell = '·';
            }
        }
    }

    /// The lines, each with the label of its tick, if it has one.
    fn text(&self, margin: usize) -> String {
        let mut labels = vec![String::new(); self.cells.len()];
        for (value, label) in &self.y.ticks {
            if let Some(row) = self.row(*value) {
                labels[row].clone_from(label);
            }
        }
        let lines = self.cells.iter().zip(&labels).map(|(cells, label)| {
            let space = " ".repeat(margin.saturating_sub(label.chars().count()));
            let edge = if label.is_empty() { '│' } else { '┤' };
            let cells: String = cells.iter().collect();
            format!("{space}{label} {edge} {}\n", cells.trim_end())
        });
        lines.collect()
    }
}

/// The axis below a plot, with its ticks' labels; those are left out that have no room.
fn axis(range: &Range, margin: usize, columns: usize) -> String {
    let mut labels = String::new();
    for (value, label) in &range.ticks {
        let at = (range.position(*value) * (columns - 1) as f64).round() as usize;
        let length = label.chars().count();
        let begin = at.saturating_sub(length / 2).min(columns.saturating_sub(length));
        if begin >= labels.chars().count() + usize::from(!labels.is_empty()) {
            labels = padded(&labels, begin) + label;
        }
    }
    let space = " ".repeat(margin);
    format!("{space} └{}\n{space}   {labels}\n", "─".repeat(columns + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Axis;

    #[test]
    fn each_line_is_drawn_by_its_letter_from_the_left_to_the_right() {
        let lines = Lines::new(Axis::log2("Burst", ""), Axis::linear("Time", "µs"))
            .series(Series::new("up", [(1.0, 0.0), (128.0, 10.0)]))
            .series(Series::new("down", [(1.0, 10.0), (128.0, 0.0)]))
            .level("half", 5.0);
        let text = draw(&lines, 60).expect("there are points");
        let rows: Vec<_> = text.lines().collect();
        let height = rows.iter().filter(|row| row.contains(['│', '┤'])).count();
        assert_eq!(height, 13, "{text}");
        assert_eq!(rows[0], "Time, µs");
        assert!(rows[1].starts_with("10 ┤ b") && rows[1].ends_with('a'), "{text}");
        assert!(rows[height].starts_with(" 0 ┤ a") && rows[height].ends_with('b'), "{text}");
        assert!(rows[height / 2 + 1].contains("---"), "{text}");
        assert!(text.contains("  a  up\n  b  down\n  -  half\n"), "{text}");
        assert!(rows.iter().all(|row| row.chars().count() <= 60), "{text}");
        assert!(rows[height + 2].trim_start().starts_with('1'), "{text}");
        assert!(rows[height + 2].ends_with("128"), "{text}");
    }

    /// Of two plots beside each other in 80 columns, one had a name that reached beyond.
    #[test]
    fn a_name_that_is_too_long_is_wrapped() {
        let name = "Step 2: receives and sends offloaded";
        let lines = Lines::new(Axis::log("x", ""), Axis::log("y", ""))
            .series(Series::new(name, [(1.0, 1.0), (2.0, 2.0)]));
        let text = draw(&lines, 38).expect("there are points");
        assert!(text.ends_with("  a  Step 2: receives and sends\n     offloaded\n"), "{text}");
    }

    #[test]
    fn lines_without_points_are_not_drawn() {
        let lines = Lines::new(Axis::log("x", ""), Axis::log("y", ""))
            .series(Series::new("below", [(1.0, -1.0), (f64::NAN, 2.0)]));
        assert_eq!(draw(&lines, 60), None);
    }
}

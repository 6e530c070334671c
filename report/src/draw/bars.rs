//! Bars beside or upon each other.

use super::axes;
use super::canvas::{Area, Canvas, Place, SMALL, TEXT};
use super::legend;
use super::marker;
use super::pieces::{self, Piece};
use super::plane::Plane;
use crate::number;
use crate::scale::{self, Range};
use crate::words;
use crate::{Arrangement, Bar, Bars, Direction, Value};

/// How high the heading of a group is.
const HEADING: f64 = 26.0;
/// The size of the values behind bars.
const VALUE: f64 = 10.5;

/// A bar with its place: how far from the edge of the area its thickness begins and ends.
struct Row<'a> {
    bar: &'a Bar,
    pieces: Vec<Piece>,
    across: (f64, f64),
}

/// Draws the bars of a figure. Returns false, and draws nothing, if no value has a place.
pub fn draw(bars: &Bars, canvas: &mut Canvas) -> bool {
    let rows =
        bars.bars.iter().map(|bar| Row { bar, pieces: pieces::of(bars, bar), across: (0.0, 0.0) });
    let mut rows: Vec<Row> = rows.collect();
    let Some(range) = range(bars, &rows, canvas.width) else { return false };
    patterns(canvas);
    let top = explain(bars, canvas);
    let pitch = (canvas.width - axes::widest(&range) - 9.0) / rows.len() as f64;
    let fits = |row: &Row| words::width(&row.bar.label, SMALL) + 6.0 <= pitch;
    let plane = match bars.direction {
        Direction::Vertical if rows.iter().all(fits) => {
            upright(bars, canvas, &mut rows, range, top)
        }
        _ => lying(bars, canvas, &mut rows, range, top),
    };
    for row in &rows {
        row.draw(bars, canvas, &plane);
    }
    plane.base(canvas);
    for row in &rows {
        row.marks(bars, canvas, &plane);
    }
    true
}

fn range(bars: &Bars, rows: &[Row], width: f64) -> Option<Range> {
    let pieces = || rows.iter().flat_map(|row| &row.pieces);
    pieces().next()?;
    let sums = rows.iter().filter_map(|row| pieces::sum(bars, row.bar));
    let axis = pieces::axis(bars);
    let values: Vec<Value> =
        pieces().map(|piece| Value { value: piece.to, interval: piece.interval }).collect();
    let values: Vec<f64> = scale::with_ends(&values, axis.scale).into_iter().chain(sums).collect();
    axes::across(width, |most| Range::new(&axis, true, values.clone(), most))
}

/// Defines the hatching that distinguishes every other part from its neighbours in grey.
fn patterns(canvas: &mut Canvas) {
    let id = format!("{}-hatch", canvas.name);
    let units = "userSpaceOnUse";
    canvas.markup.open(
        "pattern",
        &[
            ("id", &id),
            ("width", &5),
            ("height", &5),
            ("patternUnits", &units),
            ("patternTransform", &"rotate(45)"),
        ],
    );
    canvas.line((0.0, 0.0), (0.0, 5.0), "hatch");
    canvas.markup.close("pattern");
}

/// Draws the legend, if there are parts to tell apart, and returns the height below the legend.
fn explain(bars: &Bars, canvas: &mut Canvas) -> f64 {
    let mut names = bars.parts.clone();
    names.extend(bars.total.clone().filter(|_| bars.arrangement == Arrangement::Stacked));
    if names.len() < 2 {
        return 6.0;
    }
    let dots = pieces::axis(bars).scale != crate::Scale::Linear;
    let below = legend::draw(canvas, 0.0, &names, |canvas, number, (x, y)| {
        if number == bars.parts.len() {
            canvas.line((x, y - 8.0), (x, y + 8.0), "total");
        } else if dots {
            canvas.path(&marker::shape(number, (x, y)), &dot(number), "");
        } else {
            let area = Area { left: x - 10.0, top: y - 6.0, right: x + 10.0, bottom: y + 6.0 };
            filled(canvas, &area, number, "", "");
        }
    });
    below + 10.0
}

/// Puts bars that grow to the right below each other, with labels to their left or, if the
/// labels are too long, above.
fn lying(bars: &Bars, canvas: &mut Canvas, rows: &mut [Row], range: Range, top: f64) -> Plane {
    let wide = rows.iter().map(|row| words::width(&row.bar.label, TEXT)).fold(0.0, f64::max);
    let beside = wide <= 0.36 * canvas.width;
    let left = if beside { wide + 12.0 } else { axes::widest(&range) / 2.0 };
    let (label, gap) = if beside { (0.0, 8.0) } else { (18.0, 6.0) };
    let thickness = thickness(bars);
    let mut group = "";
    let mut headings = Vec::new();
    let mut bottom = 2.0;
    for row in rows.iter_mut() {
        if row.bar.group != group {
            group = &row.bar.group;
            bottom += if group.is_empty() { 10.0 } else { HEADING };
            headings.push((group, top + bottom - 6.0));
        }
        let begin = bottom + gap / 2.0 + label;
        row.across = (begin, begin + thickness);
        bottom = begin + thickness + gap / 2.0;
    }
    let area = Area {
        left,
        top,
        right: canvas.width - behind(bars, rows, &range),
        bottom: top + bottom + 6.0,
    };
    let plane = Plane { direction: Direction::Horizontal, area, range };
    plane.axis(canvas);
    for (heading, y) in headings {
        canvas.text_over((0.0, y), "start", "group halo", heading);
    }
    for row in rows.iter() {
        let (from, to) = row.across;
        let (at, anchor) = match beside {
            true => ((left - 10.0, top + (from + to) / 2.0 + 4.5), "end"),
            false => ((left + 4.0, top + from - 5.0), "start"),
        };
        let label = words::fitted(&row.bar.label, TEXT, canvas.width - left - 4.0);
        canvas.text_over(at, anchor, &format!("{} halo", label_class(row.bar)), &label);
    }
    let title = axes::title(&bars.axis);
    canvas.text((plane.area.right, plane.area.bottom + 37.0), "end", "title", &title);
    canvas.height = plane.area.bottom + 44.0;
    plane
}

/// Puts bars that grow upwards beside each other.
fn upright(bars: &Bars, canvas: &mut Canvas, rows: &mut [Row], range: Range, top: f64) -> Plane {
    let left = axes::widest(&range) + 9.0;
    canvas.text((0.0, top + 8.0), "start", "title", &axes::title(&bars.axis));
    let top = top + 32.0;
    let area = Area { left, top, right: canvas.width, bottom: top + 260.0 };
    let pitch = area.width() / rows.len() as f64;
    let thick = thickness(bars).max(0.5 * pitch).min(0.8 * pitch).min(70.0);
    let plane = Plane { direction: Direction::Vertical, area, range };
    plane.axis(canvas);
    let grouped = rows.iter().any(|row| !row.bar.group.is_empty());
    for (number, row) in rows.iter_mut().enumerate() {
        let middle = (number as f64 + 0.5) * pitch;
        row.across = (middle - thick / 2.0, middle + thick / 2.0);
        let at = (area.left + middle, area.bottom + 20.0);
        canvas.text(at, "middle", &format!("{} small", label_class(row.bar)), &row.bar.label);
    }
    for run in rows.chunk_by(|one, other| one.bar.group == other.bar.group) {
        let (first, last) = (run[0].across, run[run.len() - 1].across);
        let at = (area.left + (first.0 + last.1) / 2.0, area.bottom + 40.0);
        canvas.text(at, "middle", "group", &run[0].bar.group);
    }
    canvas.height = area.bottom + if grouped { 48.0 } else { 28.0 };
    plane
}

/// How much room the values behind bars need, the widest of which may stand behind the longest bar.
fn behind(bars: &Bars, rows: &[Row], range: &Range) -> f64 {
    let parts = rows.iter().flat_map(|row| row.pieces.iter().map(|piece| piece.to));
    let sums = rows.iter().filter_map(|row| pieces::sum(bars, row.bar));
    let widths = parts.chain(sums).map(|value| words::width(&precise(range, value), VALUE));
    widths.fold(0.0, f64::max) + 9.0
}

fn thickness(bars: &Bars) -> f64 {
    match (bars.arrangement, bars.parts.len()) {
        (Arrangement::Stacked, _) | (_, 0 | 1) => 14.0,
        (Arrangement::Grouped, parts) => 11.0 * parts as f64,
    }
}

fn label_class(bar: &Bar) -> String {
    if bar.published.is_some() { "label cited".to_owned() } else { "label".to_owned() }
}

fn dot(part: usize) -> String {
    format!("marker s{}", part % 6)
}

/// A piece of a bar, hatched if its part's number is odd.
fn filled(canvas: &mut Canvas, area: &Area, part: usize, cited: &str, told: &str) {
    let path = area.path();
    canvas.path(&path, &format!("bar b{}{cited}", part % 6), told);
    if part % 2 == 1 {
        let fill = format!("url(#{}-hatch)", canvas.name);
        canvas.markup.leaf("path", &[("d", &path), ("class", &"over"), ("fill", &fill)]);
    }
}

impl Row<'_> {
    /// The thickness of the bar of a part: all of the bar's, or a share beside the other parts.
    fn share(&self, bars: &Bars, part: usize) -> (f64, f64) {
        let (from, to) = self.across;
        if bars.arrangement == Arrangement::Stacked {
            return self.across;
        }
        let each = (to - from) / bars.parts.len() as f64;
        (from + part as f64 * each, from + (part + 1) as f64 * each)
    }

    fn draw(&self, bars: &Bars, canvas: &mut Canvas, plane: &Plane) {
        let cited = if self.bar.published.is_some() { " faded" } else { "" };
        for piece in &self.pieces {
            let share = self.share(bars, piece.part);
            let from = piece.from.unwrap_or(plane.range.base());
            if plane.range.is_logarithmic() {
                let middle = (share.0 + share.1) / 2.0;
                let class = format!("stem s{}{cited}", piece.part % 6);
                plane.line(canvas, middle, (from, piece.to), &class);
                continue;
            }
            let area = plane.rectangle(share, (from, piece.to));
            filled(canvas, &area, piece.part, cited, &piece.told);
        }
    }

    /// The value of a piece of its own, behind the end or, of a negative piece that grows
    /// downwards, below. Pieces that are thinner than their values are wide have none.
    fn value(&self, canvas: &mut Canvas, plane: &Plane, piece: &Piece, share: (f64, f64)) {
        let text = precise(&plane.range, piece.to);
        let thin = words::width(&text, VALUE) > share.1 - share.0 + 4.0;
        if plane.direction == Direction::Vertical && thin {
            return;
        }
        let below = plane.direction == Direction::Vertical && piece.to < plane.range.base();
        let (low, high) = piece.interval.unwrap_or((piece.to, piece.to));
        let end =
            if below { low.min(piece.to) } else { high.max(piece.to).max(plane.range.base()) };
        let at = plane.place((share.0 + share.1) / 2.0, end);
        after(canvas, plane, at, &text, below);
    }

    /// The value of a stacked piece within the piece, if there is room.
    fn inscribe(&self, canvas: &mut Canvas, plane: &Plane, piece: &Piece) {
        let from = piece.from.unwrap_or(plane.range.base());
        let text = precise(&plane.range, piece.to - from);
        let area = plane.rectangle(self.across, (from, piece.to));
        if area.width() > words::width(&text, SMALL) + 4.0 && area.height() >= 14.0 {
            let middle = ((area.left + area.right) / 2.0, (area.top + area.bottom) / 2.0 + 4.0);
            canvas.text(middle, "middle", "small inside", &text);
        }
    }

    /// Whiskers, sums, and values behind the bars.
    fn marks(&self, bars: &Bars, canvas: &mut Canvas, plane: &Plane) {
        let stacked = bars.arrangement == Arrangement::Stacked;
        let sum = pieces::sum(bars, self.bar);
        for piece in &self.pieces {
            let (from, to) = self.share(bars, piece.part);
            // Whiskers of parts that are stacked would cover each other at one height.
            let order = (piece.part + 1) as f64 / (bars.parts.len() + 1) as f64;
            let middle = from + (to - from) * if stacked { order } else { 0.5 };
            if let Some((low, high)) = piece.interval {
                plane.line(canvas, middle, (low, high), "whisker plain");
                for end in [low, high] {
                    plane.stroke(canvas, (middle - 2.0, middle + 2.0), end, "whisker plain");
                }
            }
            if plane.range.is_logarithmic() {
                let at = plane.place(middle, piece.to);
                canvas.path(&marker::shape(piece.part, at), &dot(piece.part), &piece.told);
            }
            if stacked && bars.total.is_none() {
                self.inscribe(canvas, plane, piece);
            }
            if !stacked {
                self.value(canvas, plane, piece, (from, to));
            }
        }
        if let Some(sum) = sum.filter(|_| bars.total.is_some()) {
            let across = (self.across.0 - 3.0, self.across.1 + 3.0);
            plane.stroke(canvas, across, sum, "total");
            let reach =
                |piece: &Piece| piece.interval.map_or(piece.to, |(_, high)| high.max(piece.to));
            let ends = self.pieces.iter().map(reach);
            let end = ends.fold(sum.max(0.0), f64::max);
            let middle = (self.across.0 + self.across.1) / 2.0;
            let text = precise(&plane.range, sum);
            after(canvas, plane, plane.place(middle, end), &text, false);
        }
    }
}

/// A value as text: with the decimals of a linear axis, or on a logarithmic axis with three digits.
fn precise(range: &Range, value: f64) -> String {
    match range.is_logarithmic() {
        true => number::significant(value),
        false => number::fixed(value, range.decimals),
    }
}

/// Text behind the end of a bar: to the right of a place, above or, if so asked for, below.
fn after(canvas: &mut Canvas, plane: &Plane, (x, y): Place, text: &str, below: bool) {
    match (plane.direction, below) {
        (Direction::Horizontal, _) => canvas.text((x + 7.0, y + 4.0), "start", "value", text),
        (Direction::Vertical, false) => canvas.text((x, y - 6.0), "middle", "value", text),
        (Direction::Vertical, true) => canvas.text((x, y + 13.0), "middle", "value", text),
    }
}

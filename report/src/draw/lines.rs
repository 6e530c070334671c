//! Lines through points.

use super::axes;
use super::canvas::{Area, Canvas, Place, TEXT, polyline};
use super::labels::{Obstacles, spread};
use super::legend;
use super::marker::Look;
use super::tooltip::tooltip;
use crate::scale::{self, Range};
use crate::words;
use crate::{Axis, Lines, Value};

/// A line with the points that have a place.
pub struct Trace<'a> {
    /// The name of the line.
    pub name: &'a str,
    /// The look of the line and of its markers.
    pub look: Look,
    points: Vec<(f64, Value)>,
}

/// The area in which lines are drawn, and what its edges stand for.
pub struct Plot {
    /// The values from the left edge to the right.
    pub x: Range,
    /// The values from the lower edge to the upper.
    pub y: Range,
    /// The area on the canvas.
    pub area: Area,
}

/// The label of a line: its area, and the end of the line if that is elsewhere.
struct Label {
    area: Area,
    from: Option<Place>,
}

/// Draws the lines of a figure. Returns false, and draws nothing, if no point has a place.
pub fn draw(lines: &Lines, canvas: &mut Canvas) -> bool {
    let traces = traces(lines);
    let wide = canvas.width > 500.0;
    let height = if wide { 320.0 } else { 230.0 };
    let Some(x) = range_of_x(lines, &traces, canvas.width) else { return false };
    let Some(y) = range_of_y(lines, &traces, height) else { return false };

    let left = axes::widest(&y) + 9.0;
    let names = traces.iter().map(|trace| words::width(trace.name, TEXT)).fold(0.0, f64::max);
    let spare = x.ticks.last().map_or(0.0, |(_, label)| words::width(label, TEXT) / 2.0);
    let width = canvas.width;
    let area = |top: f64, margin: f64| Area {
        left,
        top,
        right: width - margin.max(spare),
        bottom: top + height,
    };
    let mut plot = Plot { x, y, area: area(30.0, names + 16.0) };
    let labels = match wide && names < 0.26 * canvas.width {
        true => direct(&plot, &traces),
        false => None,
    };
    if labels.is_none() {
        let all: Vec<_> = traces.iter().map(|trace| (trace.name, trace.look)).collect();
        plot.area = area(explain(canvas, &all) + 36.0, 10.0);
    }
    canvas.text((0.0, plot.area.top - 17.0), "start", "title", &axes::title(&lines.y));
    let labels = labels.unwrap_or_default();
    let areas: Vec<_> = labels.iter().map(|label| label.area).collect();
    plot.draw(canvas, lines, &traces, &areas);
    for (trace, label) in traces.iter().zip(labels) {
        label.draw(canvas, trace);
    }
    let title = axes::title(&lines.x);
    canvas.text((plot.area.right, plot.area.bottom + 37.0), "end", "title", &title);
    canvas.height = plot.area.bottom + 44.0;
    true
}

/// Draws the legend of lines, each with its look, and returns the height below the legend.
pub fn explain(canvas: &mut Canvas, lines: &[(&str, Look)]) -> f64 {
    let names: Vec<String> = lines.iter().map(|(name, _)| (*name).to_owned()).collect();
    legend::draw(canvas, 0.0, &names, |canvas, number, (x, y)| {
        let look = lines[number].1;
        line(canvas, &[(x - 12.0, y), (x + 12.0, y)], &look);
        look.marker(canvas, (x, y), "");
    })
}

/// The lines of a figure that have points with a place, each with its look.
pub fn traces(lines: &Lines) -> Vec<Trace<'_>> {
    let mut counts = [0; 2];
    let trace = |series: &'_ crate::Series| {
        let count = &mut counts[usize::from(series.published.is_some())];
        *count += 1;
        let look = Look::new(series.colour.unwrap_or(*count - 1), series.published.is_some());
        series.pattern.map_or(look, |number| look.with_pattern(number))
    };
    let looks: Vec<Look> = lines.series.iter().map(trace).collect();
    let placed = |(x, y): &(f64, Value)| {
        let fits = scale::fits(*x, lines.x.scale) && scale::fits(y.value, lines.y.scale);
        Some((*x, y.finite()?)).filter(|_| fits)
    };
    let traces = lines.series.iter().zip(looks).map(|(series, look)| Trace {
        name: &series.name,
        look,
        points: series.points.iter().filter_map(placed).collect(),
    });
    traces.filter(|trace| !trace.points.is_empty()).collect()
}

/// The range from left to right of lines in a drawing that is so wide.
pub fn range_of_x(lines: &Lines, traces: &[Trace], width: f64) -> Option<Range> {
    let values = traces.iter().flat_map(|trace| trace.points.iter().map(|(x, _)| *x));
    axes::across(width, |most| Range::new(&lines.x, false, values.clone(), most))
}

/// The range from bottom to top of lines in a drawing that is so high.
pub fn range_of_y(lines: &Lines, traces: &[Trace], height: f64) -> Option<Range> {
    let points = traces.iter().flat_map(|trace| trace.points.iter().map(|(_, y)| *y));
    let points: Vec<Value> = points.collect();
    if points.is_empty() {
        return None;
    }
    let levels = lines.levels.iter().map(|(_, y)| *y);
    let values = scale::with_ends(&points, lines.y.scale).into_iter().chain(levels);
    Range::new(&lines.y, false, values, (height / 46.0) as usize)
}

impl Plot {
    fn place(&self, x: f64, y: f64) -> Place {
        let (right, up) = (self.x.position(x), self.y.position(y));
        // An end of an interval may have no place on a logarithmic axis.
        let up = if up.is_finite() { up.clamp(0.0, 1.0) } else { 0.0 };
        (self.area.left + right * self.area.width(), self.area.bottom - up * self.area.height())
    }

    fn places(&self, trace: &Trace) -> Vec<Place> {
        trace.points.iter().map(|(x, y)| self.place(*x, y.value)).collect()
    }

    /// Draws the axes, the lines and the levels, whose labels leave out where the `labels` of lines
    /// are.
    pub fn draw(&self, canvas: &mut Canvas, lines: &Lines, traces: &[Trace], labels: &[Area]) {
        axes::left(canvas, &self.y, &self.area);
        axes::below(canvas, &self.x, &self.area, false);
        let (left, right) = (self.area.left, self.area.right);
        canvas.line((left, self.area.bottom), (right, self.area.bottom), "axis");
        for trace in traces {
            self.intervals(canvas, trace);
        }
        for trace in traces {
            line(canvas, &self.places(trace), &trace.look);
        }
        for trace in traces {
            self.markers(canvas, trace, lines);
        }
        let mut obstacles = Obstacles::default();
        traces.iter().for_each(|trace| obstacles.line(&self.places(trace)));
        labels.iter().for_each(|label| obstacles.label(*label));
        self.levels(canvas, &lines.levels, obstacles);
    }

    /// Draws a band through the intervals of points that follow each other, and a whisker for a
    /// point whose neighbours have no interval.
    fn intervals(&self, canvas: &mut Canvas, trace: &Trace) {
        for run in trace.points.split(|(_, y)| y.interval.is_none()) {
            let ends = |pick: fn((f64, f64)) -> f64| {
                run.iter().filter_map(move |(x, y)| Some(self.place(*x, pick(y.interval?))))
            };
            let (low, high) = (ends(|(low, _)| low), ends(|(_, high)| high));
            let class = trace.look.class();
            match run.len() {
                0 => {}
                1 => low.zip(high).for_each(|(low, high)| whisker(canvas, low, high, &class)),
                _ => {
                    let outline: Vec<Place> = low.rev().chain(high).collect();
                    canvas.path(&(polyline(&outline) + "Z"), &format!("band {class}"), "");
                }
            }
        }
    }

    /// Draws the markers of a line, but skips a marker that would touch the last one drawn.
    fn markers(&self, canvas: &mut Canvas, trace: &Trace, lines: &Lines) {
        let mut last: Option<Place> = None;
        for ((x, y), place) in trace.points.iter().zip(self.places(trace)) {
            let near = |last: Place| (place.0 - last.0).hypot(place.1 - last.1) < 8.0;
            if last.is_some_and(near) {
                continue;
            }
            last = Some(place);
            let name = format!("{}, {}", trace.name, told_x(*x, &lines.x));
            trace.look.marker(canvas, place, &tooltip(&name, *y, &lines.y.unit));
        }
    }

    /// Draws levels, each with its label.
    fn levels(&self, canvas: &mut Canvas, levels: &[(String, f64)], mut obstacles: Obstacles) {
        for (label, level) in levels {
            if !scale::fits(*level, self.y.scale) {
                continue;
            }
            let y = self.place(self.x.low, *level).1;
            canvas.line((self.area.left, y), (self.area.right, y), "level");
            let free = self.beside_level(y, words::width(label, TEXT), &obstacles);
            canvas.text((free.left, free.bottom - 3.0), "start", "label halo", label);
            obstacles.label(free);
        }
    }

    /// The area of a level's label inside of the plot: where it covers no line and no other label,
    /// if there is such a place, or else no other label. It is just above or below the level, or
    /// farther away where other labels are in the way.
    fn beside_level(&self, y: f64, wide: f64, obstacles: &Obstacles) -> Area {
        let at = |left: f64, top: f64| Area { left, top, right: left + wide, bottom: top + 14.0 };
        let columns = [1.0, 0.0, 0.5, 0.75, 0.25]
            .map(|part| self.area.left + 4.0 + part * (self.area.width() - wide - 8.0));
        let most = (self.area.height() / 16.0) as u32;
        let rows = (0..most).map(|row| f64::from(row) * 16.0).map(|far| [-16.0 - far, 2.0 + far]);
        let places: Vec<Area> = rows
            .flat_map(|rows| columns.into_iter().flat_map(move |x| rows.map(|row| (x, y + row))))
            .map(|(x, top)| at(x, top))
            .collect();
        let inside = || places.iter().filter(|area| self.area.contains(area));
        let near = inside().take(30).find(|area| obstacles.leave(area));
        *near.or_else(|| inside().find(|area| obstacles.leave_labels(area))).unwrap_or(&places[0])
    }
}

/// A place on the x axis as text.
fn told_x(x: f64, axis: &Axis) -> String {
    match (axis.scale, axis.unit.as_str()) {
        (crate::Scale::Log2, "B") => crate::number::bytes(x),
        (_, unit) => format!("{} {unit}", crate::number::shortest(x)).trim_end().to_owned(),
    }
}

fn line(canvas: &mut Canvas, places: &[Place], look: &Look) {
    let path = polyline(places);
    let class = format!("line {}", look.class());
    canvas
        .markup
        .leaf("path", &[("d", &path), ("class", &class), ("stroke-dasharray", &look.dash())]);
}

fn whisker(canvas: &mut Canvas, low: Place, high: Place, class: &str) {
    let class = format!("whisker {class}");
    canvas.line(low, high, &class);
    for (x, y) in [low, high] {
        canvas.line((x - 4.0, y), (x + 4.0, y), &class);
    }
}

/// A place for the label of each line: beside its last point or, for a line that ends earlier than
/// the plot, wherever there is room near an end. `None` if a label has no place.
fn direct(plot: &Plot, traces: &[Trace]) -> Option<Vec<Label>> {
    let mut obstacles = Obstacles::default();
    for trace in traces {
        obstacles.line(&plot.places(trace));
    }
    let ends: Vec<Place> =
        traces.iter().map(|trace| plot.places(trace)[trace.points.len() - 1]).collect();
    let outside = |end: &Place| end.0 > plot.area.right - 16.0;
    let wanted: Vec<f64> = ends.iter().filter(|end| outside(end)).map(|end| end.1).collect();
    let mut heights = spread(&wanted, 16.0).into_iter();
    let mut labels = Vec::new();
    for (trace, end) in traces.iter().zip(&ends) {
        let wide = words::width(trace.name, TEXT);
        let at = |x: f64, y: f64| Area { left: x, top: y - 8.0, right: x + wide, bottom: y + 8.0 };
        let label = match outside(end) {
            true => {
                let height = heights.next()?;
                let moved = (height - end.1).abs();
                let place = at(plot.area.right + 14.0, height);
                let bounds = plot.area.top - 10.0..=plot.area.bottom + 10.0;
                if moved > 40.0 || !bounds.contains(&height) {
                    return None;
                }
                Label { area: place, from: (moved > 3.0).then_some(*end) }
            }
            false => {
                let (x, y) = *end;
                let beside = [
                    (10.0, 0.0),
                    (-wide / 2.0, -16.0),
                    (-wide / 2.0, 16.0),
                    (8.0, -12.0),
                    (8.0, 12.0),
                ];
                let mut places = beside.iter().map(|(dx, dy)| at(x + dx, y + dy));
                let free = |area: &Area| plot.area.contains(area) && obstacles.leave(area);
                Label { area: places.find(free)?, from: None }
            }
        };
        obstacles.label(label.area);
        labels.push(label);
    }
    Some(labels)
}

impl Label {
    fn draw(&self, canvas: &mut Canvas, trace: &Trace) {
        let middle = (self.area.top + self.area.bottom) / 2.0;
        if let Some((x, y)) = self.from {
            let class = format!("leader {}", trace.look.class());
            canvas.line((x + 5.0, y), (self.area.left - 2.0, middle), &class);
        }
        let class = format!("label halo {}", trace.look.class());
        canvas.text((self.area.left, middle + 4.5), "start", &class, trace.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Levels anywhere, or near each other at the lower end of the axis as where one measurement
    /// took long, with labels as wide as in small drawings beside each other.
    #[test]
    fn labels_of_levels_never_cover_each_other() {
        let range = || Range {
            scale: crate::Scale::Linear,
            low: 0.0,
            high: 1.0,
            ticks: Vec::new(),
            minor: Vec::new(),
            decimals: 2,
        };
        let area = Area { left: 40.0, top: 50.0, right: 230.0, bottom: 240.0 };
        let plot = Plot { x: range(), y: range(), area };
        let shares = || [0.0, 0.02, 0.05, 0.08, 0.11, 0.15, 0.5, 0.9, 1.0].into_iter();
        let each = || shares().flat_map(|one| shares().map(move |other| (one, other)));
        for (first, (second, third)) in shares().flat_map(|one| each().map(move |two| (one, two))) {
            let mut obstacles = Obstacles::default();
            let falls = [plot.place(0.0, 0.6), plot.place(0.2, 0.1), plot.place(1.0, 0.05)];
            obstacles.line(&falls);
            for (level, wide) in [(first, 55.0), (second, 45.0), (third, 130.0)] {
                let label = plot.beside_level(plot.place(0.0, level).1, wide, &obstacles);
                assert!(plot.area.contains(&label), "{first} {second} {third}");
                assert!(obstacles.leave_labels(&label), "{first} {second} {third}");
                obstacles.label(label);
            }
        }
    }
}

//! Small multiples: drawings with lines on the same axes.

use super::axes;
use super::canvas::{Area, Canvas, HEADING_TEXT, SMALL};
use super::lines::{self, Plot, Trace};
use super::marker::Look;
use crate::scale::Range;
use crate::words;
use crate::{Lines, Panels};

/// The space between two drawings, and above and below each for its heading and its ticks.
const SPACE: f64 = 18.0;
const HEADING: f64 = 28.0;
const TICKS: f64 = 26.0;

/// Draws the panels of a figure as small drawings on the same axes. Returns false, and draws nothing, if no point has a place.
pub fn draw(panels: &Panels, canvas: &mut Canvas) -> bool {
    let panels = coloured(panels);
    let Some((_, first)) = panels.first() else { return false };
    let all = Lines {
        series: panels.iter().flat_map(|(_, lines)| lines.series.clone()).collect(),
        levels: panels.iter().flat_map(|(_, lines)| lines.levels.clone()).collect(),
        ..first.clone()
    };
    let traces = lines::traces(&all);
    let columns = columns(&panels, canvas.width);
    let height = if columns > 1 { 190.0 } else { 210.0 };
    let Some(y) = lines::range_of_y(&all, &traces, height) else { return false };
    let left = axes::widest(&y) + 9.0;
    let width = (canvas.width - left - SPACE * (columns - 1) as f64) / columns as f64;
    let Some(x) = lines::range_of_x(&all, &traces, 1.15 * width) else { return false };
    let top = explain(canvas, &traces) + 22.0;
    canvas.text((0.0, top), "start", "title", &axes::title(&first.y));
    let spare = words::width(x.ticks.last().map_or("", |(_, label)| label), SMALL) / 2.0;
    let (mut bottom, mut right) = (top, canvas.width);
    for (number, (heading, panel)) in panels.iter().enumerate() {
        let (row, column) = (number / columns, number % columns);
        let from = left + column as f64 * (width + SPACE);
        let begin = top + HEADING + row as f64 * (height + TICKS + HEADING);
        let area =
            Area { left: from, top: begin, right: from + width - spare, bottom: begin + height };
        (bottom, right) = (area.bottom, area.right);
        let labelled = if column == 0 { y.clone() } else { blank(&y) };
        let plot = Plot { x: x.clone(), y: labelled, area };
        canvas.text(
            (from, begin - 9.0),
            "start",
            "group",
            &words::fitted(heading, HEADING_TEXT, width),
        );
        plot.draw(canvas, panel, &lines::traces(panel), &[]);
    }
    let right = right.max(canvas.width - spare);
    canvas.text((right, bottom + 37.0), "end", "title", &axes::title(&first.x));
    canvas.height = bottom + 44.0;
    true
}

/// How many drawings stand beside each other.
fn columns(panels: &[(String, Lines)], width: f64) -> usize {
    let has_levels = panels.iter().any(|(_, lines)| !lines.levels.is_empty());
    let most = match (width > 500.0, panels.len()) {
        (true, 4) => 2,
        (true, _) => 3,
        (false, _) if has_levels => 1,
        (false, _) => 2,
    };
    panels.len().clamp(1, most)
}

/// An axis without labels at its ticks.
fn blank(range: &Range) -> Range {
    let ticks = range.ticks.iter().map(|(value, _)| (*value, String::new())).collect();
    Range { ticks, ..range.clone() }
}

/// The drawings, in which lines of one name have one colour.
fn coloured(panels: &Panels) -> Vec<(String, Lines)> {
    let mut names: Vec<String> = Vec::new();
    let mut panels = panels.panels.clone();
    for series in panels.iter_mut().flat_map(|(_, lines)| &mut lines.series) {
        if series.colour.is_none() && series.published.is_none() {
            let known = names.iter().position(|name| *name == series.name);
            series.colour = Some(known.unwrap_or_else(|| {
                names.push(series.name.clone());
                names.len() - 1
            }));
        }
    }
    panels
}

/// Draws the legend of all lines, each name once, and returns the height below the legend. A name
/// that has several colours is grey there.
fn explain(canvas: &mut Canvas, traces: &[Trace]) -> f64 {
    let mut each: Vec<(&str, Look)> = Vec::new();
    for trace in traces {
        match each.iter_mut().find(|(name, _)| *name == trace.name) {
            Some((_, look)) if *look != trace.look => *look = look.in_grey(),
            Some(_) => {}
            None => each.push((trace.name, trace.look)),
        }
    }
    lines::explain(canvas, &each)
}

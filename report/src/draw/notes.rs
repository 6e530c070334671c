//! What must be said under a figure: values that are left out, and where numbers were published.

use crate::scale;
use crate::{Arrangement, Axis, Figure, Lines, Plot, Scale, Value};

/// The notes of a figure, a sentence each.
pub fn notes(figure: &Figure) -> Vec<String> {
    let (left_out, logarithmic) = match &figure.plot {
        Plot::Lines(lines) => lost_of_lines(lines),
        Plot::Panels(panels) => panels
            .panels
            .iter()
            .map(|(_, lines)| lost_of_lines(lines))
            .fold((0, 0), |(lost, below), (one, other)| (lost + one, below + other)),
        Plot::Bars(bars) => {
            let scale = match bars.arrangement {
                Arrangement::Grouped => bars.axis.scale,
                Arrangement::Stacked => Scale::Linear,
            };
            lost(bars.bars.iter().flat_map(|bar| &bar.values).flatten(), scale)
        }
        Plot::Dots(dots) => {
            lost(dots.dots.iter().filter_map(|dot| dot.value.as_ref()), dots.axis().scale)
        }
        Plot::Spans(spans) => (spans.spans.iter().filter(|span| !span.is_drawable()).count(), 0),
    };
    let mut notes = Vec::new();
    if logarithmic > 0 {
        notes.push(format!(
            "{} zero or negative, for which a logarithmic axis has no place.",
            counted(logarithmic, "is left out that is", "are left out that are")
        ));
    }
    if left_out > logarithmic {
        notes.push(format!(
            "{} not a finite number.",
            counted(left_out - logarithmic, "is left out that is", "are left out that are")
        ));
    }
    notes.extend(published(figure));
    notes
}

/// How many of the values have no place on a scale, and how many of these are too low for it.
fn lost<'a>(values: impl Iterator<Item = &'a Value> + Clone, scale: Scale) -> (usize, usize) {
    let lost = values.clone().filter(|value| !scale::fits(value.value, scale)).count();
    (lost, values.filter(|value| low(value.value, scale)).count())
}

/// How many of the points of lines have no place, and how many of these are too low for an axis.
fn lost_of_lines(lines: &Lines) -> (usize, usize) {
    let points = || lines.series.iter().flat_map(|series| &series.points);
    let lost = points()
        .filter(|(x, y)| !scale::fits(*x, lines.x.scale) || !scale::fits(y.value, lines.y.scale));
    let low = |value: f64, axis: &Axis| low(value, axis.scale);
    let below = points().filter(|(x, y)| low(*x, &lines.x) || low(y.value, &lines.y));
    (lost.count(), below.count())
}

/// Whether a finite number is too low for a scale.
fn low(value: f64, scale: Scale) -> bool {
    value.is_finite() && value <= 0.0 && scale != Scale::Linear
}

fn counted(count: usize, single: &str, several: &str) -> String {
    match count {
        1 => format!("1 value {single}"),
        count => format!("{count} values {several}"),
    }
}

/// A sentence for each citation, with the names of what it is cited for.
fn published(figure: &Figure) -> Vec<String> {
    let sources: Vec<(&str, &String)> = match &figure.plot {
        Plot::Lines(lines) => cited(lines),
        Plot::Panels(panels) => panels.panels.iter().flat_map(|(_, lines)| cited(lines)).collect(),
        Plot::Bars(bars) => bars
            .bars
            .iter()
            .filter_map(|bar| Some((bar.label.as_str(), bar.published.as_ref()?)))
            .collect(),
        Plot::Dots(dots) => dots
            .dots
            .iter()
            .filter_map(|dot| Some((dot.label.as_str(), dot.published.as_ref()?)))
            .collect(),
        Plot::Spans(_) => Vec::new(),
    };
    let mut citations: Vec<(&String, Vec<&str>)> = Vec::new();
    for (name, citation) in sources {
        match citations.iter_mut().find(|(known, _)| *known == citation) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => citations.push((citation, vec![name])),
        }
    }
    let sentence =
        |(citation, names): (&String, Vec<&str>)| format!("{}: {citation}", names.join(", "));
    citations.into_iter().map(sentence).collect()
}

/// The published lines, each with its name and its citation.
fn cited(lines: &Lines) -> Vec<(&str, &String)> {
    let series = lines.series.iter();
    series.filter_map(|series| Some((&*series.name, series.published.as_ref()?))).collect()
}

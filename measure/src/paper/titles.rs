//! Titles of figures, made of the numbers that the figures show.

use doorbell_report::{Dot, Dots, Lines, Scale, Series, brief};

/// A title that begins with what a figure is of, and says what the measured lines have at a place of
/// the axis from left to right. A line without a point there is left out, and without any such point
/// the beginning is all.
pub fn at(begin: &str, lines: &Lines, place: f64) -> String {
    let found = |series: &Series| {
        let (_, value) = series.points.iter().find(|(x, _)| *x == place)?;
        let is_shown = series.published.is_none() && value.value.is_finite();
        let unit = &lines.y.unit;
        is_shown.then(|| format!("{} {unit} ({})", brief(value.value), series.name))
    };
    let found: Vec<_> = lines.series.iter().filter_map(found).collect();
    match found.is_empty() {
        true => begin.to_owned(),
        false => format!("{begin}. At {}: {}", told(place, lines), found.join(", ")),
    }
}

/// The least and the greatest measured number of a dot plot, each with its name; `None` without any.
pub fn range(dots: &Dots) -> Option<String> {
    let of = |dot: &'_ Dot| dot.value.filter(|_| dot.published.is_none()).map(|it| it.value);
    let mut measured: Vec<(f64, &Dot)> =
        dots.dots.iter().filter_map(|dot| Some((of(dot)?, dot))).collect();
    measured.retain(|(value, _)| value.is_finite());
    measured.sort_by(|one, other| one.0.total_cmp(&other.0));
    let told = |(value, dot): &(f64, &Dot)| {
        let group = if dot.group.is_empty() { "" } else { ", " };
        format!("{} {} ({}{group}{})", brief(*value), dots.unit, dot.label, dot.group)
    };
    match &measured[..] {
        [] => None,
        [only] => Some(told(only)),
        [least, .., most] => Some(format!("{} to {}", told(least), told(most))),
    }
}

/// A place on the axis from left to right.
fn told(place: f64, lines: &Lines) -> String {
    let unit = &lines.x.unit;
    match (lines.x.scale, unit.as_str()) {
        (Scale::Log2, "B") if place >= f64::from(1 << 20) => {
            format!("{} MiB", place / f64::from(1 << 20))
        }
        (Scale::Log2, "B") if place >= 1024.0 => format!("{} KiB", place / 1024.0),
        _ => format!("{place} {unit}").trim_end().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use doorbell_report::Axis;

    use super::*;

    #[test]
    fn a_title_says_what_measured_lines_have_at_a_place() {
        let lines = Lines::new(Axis::bytes("Length"), Axis::log("Throughput", "MB/s"))
            .series(Series::new("TCP", [(4.0, 1.0), (65_536.0, 812.0)]))
            .series(Series::new("EMP", [(4.0, 2.0)]))
            .series(Series::new("then", [(65_536.0, 75.0)]).published("somewhere"));
        assert_eq!(at("Figure 5", &lines, 65_536.0), "Figure 5. At 64 KiB: 812 MB/s (TCP)");
        let short = "Figure 5. At 4 B: 1.0 MB/s (TCP), 2.0 MB/s (EMP)";
        assert_eq!(at("Figure 5", &lines, 4.0), short);
        assert_eq!(at("Figure 5", &lines, 5.0), "Figure 5");
    }
}

//! Titles of figures, made of the numbers that the figures show.

use doorbell_report::{Lines, Scale, Series, brief};

/// A title that begins with what a figure is of, and says what the measured lines have at a place of
/// the axis from left to right. A line without a point there is left out, and without any such point
/// the beginning is all.
pub fn at(begin: &str, lines: &Lines, place: f64) -> String {
    let found = |series: &Series| {
        let (_, value) = series.points.iter().find(|(x, _)| *x == place)?;
        let is_shown = series.published.is_none() && value.value.is_finite();
        is_shown.then(|| format!("{} {}", series.name, brief(value.value)))
    };
    let found: Vec<_> = lines.series.iter().filter_map(found).collect();
    match found.is_empty() {
        true => begin.to_owned(),
        false => {
            let (unit, x) = (&lines.y.unit, told(place, lines));
            format!("{begin}. At {x}: {} {unit}", found.join(", "))
        }
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
        assert_eq!(at("Figure 5", &lines, 65_536.0), "Figure 5. At 64 KiB: TCP 812 MB/s");
        assert_eq!(at("Figure 5", &lines, 4.0), "Figure 5. At 4 B: TCP 1.0, EMP 2.0 MB/s");
        assert_eq!(at("Figure 5", &lines, 5.0), "Figure 5");
    }
}

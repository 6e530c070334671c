//! The sentences under figures, each made of the numbers that the figure shows. Where a figure shows
//! a parameter of the table, its sentence names the parameter only if both are about the same, and
//! otherwise says how many times the parameter the figure shows.

use doorbell_measure::logp::line::{
    GAP, GAP_PER_BYTE, HALF_ROUND_TRIP, Line, Parameter, Point, SEND_OVERHEAD,
};

/// Up to which share of a parameter a number of a figure is about the same.
const SAME: f64 = 0.1;

/// Returns the sentence under half a round trip: what Active Messages cost above verbs on each
/// device.
pub fn parts(lines: &[Line]) -> String {
    let mut said = Vec::new();
    for verbs in lines.iter().filter(|line| line.is_of("verbs")) {
        let device = verbs.device();
        let is_beside = |line: &&Line| line.is_of("am") && line.device() == device;
        let am = lines.iter().find(is_beside).and_then(|line| line.get(HALF_ROUND_TRIP));
        let (Some(am), Some(verbs)) = (am, verbs.get(HALF_ROUND_TRIP)) else { continue };
        let (ours, above) = (am.value, am.value - verbs.value);
        said.push(match am.overlaps(&verbs) {
            true => format!("over {device} {ours:.3} µs, which cannot be told from that of verbs"),
            false => format!("over {device} {ours:.3} µs, {above:+.3} µs against verbs"),
        });
    }
    match &said[..] {
        [] => "Half a round trip is o_s + L + o_r.".to_owned(),
        said => format!("Half a round trip of Active Messages takes {}.", said.join("; ")),
    }
}

/// Returns the sentence under the gaps: how many of them the processor makes.
pub fn gaps(lines: &[Line]) -> String {
    let busy = lines.iter().filter(|line| line.gap_is_of_the_processor()).count();
    format!(
        "Of {} measurements, {busy} have the processor's own time for a message, o_s + o_r, as their \
         gap: there the network by itself may be faster.",
        lines.len()
    )
}

/// Returns the sentence under the bursts of several layers: the first and the last point of each
/// line.
pub fn bursts<'a>(lines: impl IntoIterator<Item = &'a Line>) -> String {
    let said =
        lines.into_iter().filter_map(|line| Some(format!("{} {}", line.layer(), span(line)?)));
    sentence("In µs for a request: ", said)
}

/// Returns the sentence under the bursts of one layer.
pub fn signature(line: &Line) -> String {
    sentence("Without a computation, a request takes, in µs, ", span(line))
}

/// The times of a request in the shortest and in the longest burst, in microseconds, and whether
/// these are o_s and g.
fn span(line: &Line) -> Option<String> {
    let points = line.curve("bursts");
    let plain = || points.iter().filter(|point| point.gaps == 0);
    let least = plain().min_by(|one, other| one.burst.total_cmp(&other.burst))?;
    let most = plain().max_by(|one, other| one.burst.total_cmp(&other.burst))?;
    let shown = |point: &Point, parameter| {
        let Point { us, burst, .. } = point;
        format!("{us:.3} in bursts of {burst:.0}{}", named(*us, line, parameter))
    };
    Some(format!("{}, and {}", shown(least, SEND_OVERHEAD), shown(most, GAP)))
}

/// Compares a number of a figure with a parameter, for a reader: nothing in words where the
/// parameter is not above zero.
fn named(shown: f64, line: &Line, parameter: Parameter) -> String {
    let Some(value) = line.get(parameter).map(|it| it.value).filter(|value| *value > 0.0) else {
        return String::new();
    };
    let Parameter { name, unit, .. } = parameter;
    let times = shown / value;
    match (1.0 - SAME..=1.0 + SAME).contains(&times) {
        true => format!(" ({name})"),
        false => format!(" ({times:.1} times {name}, which is {value:.3} {unit})"),
    }
}

/// Returns the sentence under longer messages of several layers: the rate at which further bytes
/// follow each other.
pub fn long<'a>(lines: impl IntoIterator<Item = &'a Line>) -> String {
    let said = lines.into_iter().filter_map(|line| {
        let points = line.curve("long");
        let (first, last) = (points.first()?, points.last()?);
        let nanos_a_byte = 1e3 * (last.us - first.us) / (last.bytes - first.bytes);
        let is_steady = nanos_a_byte.is_finite() && nanos_a_byte > 0.0;
        let slope = is_steady.then(|| {
            format!("{} {:.1}{}", line.layer(), 1.0 / nanos_a_byte, steady(nanos_a_byte, line))
        });
        Some(slope.unwrap_or_else(|| format!("{} no more for longer ones", line.layer())))
    });
    sentence("The bytes that a longer request has more take, in gigabytes a second: ", said)
}

/// Compares the slope of a line with G, for a reader.
fn steady(nanos_a_byte: f64, line: &Line) -> String {
    let Some(gap) = line.get(GAP_PER_BYTE).map(|gap| gap.value).filter(|gap| *gap > 0.0) else {
        return String::new();
    };
    match (1.0 - SAME..=1.0 + SAME).contains(&(nanos_a_byte / gap)) {
        true => " (1/G)".to_owned(),
        false => format!(" (1/G is {:.1})", 1.0 / gap),
    }
}

/// A sentence of several pieces; nothing without any.
fn sentence(begin: &str, pieces: impl IntoIterator<Item = String>) -> String {
    match &pieces.into_iter().collect::<Vec<_>>()[..] {
        [] => String::new(),
        pieces => format!("{begin}{}.", pieces.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn line(bursts: &[(u32, f64)], long: &[(u32, f64)]) -> Line {
        let point = |burst: u32, bytes: u32, us: f64| -> Value {
            json!({ "burst": burst, "gaps": 0, "computation_us": 0.0, "bytes": bytes, "us": us })
        };
        let mut line = json!({
            "layer": "am", "device": "shm",
            "bursts": bursts.iter().map(|(burst, us)| point(*burst, 0, *us)).collect::<Vec<_>>(),
            "long": long.iter().map(|(bytes, us)| point(128, *bytes, *us)).collect::<Vec<_>>(),
        });
        for (key, value) in [("o_s_us", 0.05), ("g_us", 0.2), ("g_big_ns_per_byte", 0.1)] {
            for end in ["", "_low", "_high"] {
                line[format!("{key}{end}")] = value.into();
            }
        }
        Line::from_json(line).expect("it has parameters")
    }

    /// "From o_s to g: 0.050 to 0.200", it said, beside a curve that began at eight times o_s.
    #[test]
    fn the_sentence_of_bursts_says_what_is_shown_and_names_a_parameter_only_if_it_is_that() {
        let found = bursts([&line(&[(1, 0.4), (16, 0.25), (128, 0.21)], &[])]);
        let expected = "In µs for a request: Active Messages 0.400 in bursts of 1 (8.0 times o_s, \
                        which is 0.050 µs), and 0.210 in bursts of 128 (g).";
        assert_eq!(found, expected);
        let found = signature(&line(&[(1, 0.051), (128, 0.4)], &[]));
        let expected = "Without a computation, a request takes, in µs, 0.051 in bursts of 1 (o_s), \
                        and 0.400 in bursts of 128 (2.0 times g, which is 0.200 µs).";
        assert_eq!(found, expected);
        assert_eq!(signature(&line(&[], &[])), "");
    }

    #[test]
    fn the_sentence_of_longer_messages_is_of_the_slope_that_is_shown() {
        let begin = "The bytes that a longer request has more take, in gigabytes a second: ";
        let found = long([&line(&[], &[(1000, 0.3), (11_000, 1.3)])]);
        assert_eq!(found, format!("{begin}Active Messages 10.0 (1/G)."));
        let found = long([&line(&[], &[(1000, 0.3), (11_000, 4.3)])]);
        assert_eq!(found, format!("{begin}Active Messages 2.5 (1/G is 10.0)."));
        let found = long([&line(&[], &[(1000, 0.3), (11_000, 0.3)])]);
        assert_eq!(found, format!("{begin}Active Messages no more for longer ones."));
    }
}

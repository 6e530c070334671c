//! The summary at the end of `doorbell logp`: a line for each layer and device, and what the numbers
//! mean, all of which a screen of 24 lines and 80 columns shows at once.

use doorbell_measure::logp::line::{
    GAP, GAP_PER_BYTE, HALF_ROUND_TRIP, LATENCY, Line, Parameter, RECEIVE_OVERHEAD, SEND_OVERHEAD,
};
use doorbell_measure::out::{HEAD, styled, wrapped};

/// The columns: heads, and parameters.
const COLUMNS: [(&str, Parameter); 6] = [
    ("one way", HALF_ROUND_TRIP),
    ("o_s", SEND_OVERHEAD),
    ("o_r", RECEIVE_OVERHEAD),
    ("L", LATENCY),
    ("g", GAP),
    ("G", GAP_PER_BYTE),
];
/// How wide the columns of the device, of the layer, and of a number are.
const DEVICE: usize = 10;
const LAYER: usize = 19;
const NUMBER: usize = 8;
/// The widest line.
const WIDEST: usize = 80;

/// The summary of some lines, for a terminal of `width` characters. `is_busy` tells whether something
/// else kept the machine busy.
pub fn text(lines: &[Line], is_busy: bool, width: usize) -> String {
    let width = width.min(WIDEST);
    let shown = customary(lines);
    let columns = &COLUMNS[..(width.saturating_sub(DEVICE + LAYER) / NUMBER).clamp(1, 6)];
    let title = "Summary: times in µs, G in ns for each byte";
    let mut text = styled(title, HEAD) + "\n";
    let heads = columns.iter().map(|(head, _)| format!("{head:>NUMBER$}"));
    text += &format!("{:DEVICE$}{:LAYER$}{}\n", "device", "layer", heads.collect::<String>());
    for line in &shown {
        let numbers = columns.iter().map(|(_, one)| format!("{:>NUMBER$}", number(line, *one)));
        let numbers: String = numbers.collect();
        text += &format!("{:DEVICE$}{:LAYER$}{numbers}\n", line.device(), line.layer());
    }
    let is_wide = |line: &&Line| columns.iter().any(|(_, one)| line.is_wide(*one));
    let mut legend = "one way = o_s + L + o_r: half a round trip. o_s, o_r: a processor's time to \
                      send and to receive; L: the rest. g, G: time a message and a byte at a steady \
                      rate."
        .to_owned();
    if shown.iter().any(is_wide) {
        legend += " ~: uncertain by more than a fifth.";
    }
    let prose = format!("{legend}\n{}\n", meaning(&shown, is_busy));
    text + &wrapped(&prose, width, "")
}

/// Of each layer on each device one line: of Split-C the first, which is of the carrier that programs
/// get without asking.
fn customary(lines: &[Line]) -> Vec<&Line> {
    let mut shown: Vec<&Line> = Vec::new();
    for line in lines {
        let is_same = |one: &&Line| one.device() == line.device() && one.is_of(line.layer_key());
        if !shown.iter().any(is_same) {
            shown.push(line);
        }
    }
    shown
}

/// A parameter for the table, with a mark if its interval is wide.
fn number(line: &Line, parameter: Parameter) -> String {
    let mark = if line.is_wide(parameter) { "~" } else { "" };
    line.get(parameter).map_or("–".to_owned(), |one| format!("{mark}{}", compact(one.value)))
}

/// A number with three digits, or all those before the point.
fn compact(value: f64) -> String {
    let decimals = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    format!("{value:.decimals$}").replace('-', "−")
}

/// What the numbers mean, in sentences.
fn meaning(shown: &[&Line], is_busy: bool) -> String {
    let mut said: Vec<_> = fastest(shown).into_iter().chain(above_verbs(shown)).collect();
    let is_below = |line: &&Line| line.get(LATENCY).is_some_and(|latency| latency.value < 0.0);
    if shown.iter().any(is_below) {
        said.push("Where L is below zero, o_s and o_r overlap.".to_owned());
    }
    if is_busy {
        said.push("Something else kept this machine busy: don't rely on these numbers.".to_owned());
    }
    said.join(" ")
}

/// How long a message of the lowest layer takes, and how many can follow each other: over the device
/// that is fastest, and over the fastest network.
fn fastest(shown: &[&Line]) -> Option<String> {
    let layer = shown.first()?;
    let time = |line: &Line| line.get(HALF_ROUND_TRIP).map_or(f64::INFINITY, |half| half.value);
    let of_layer = shown.iter().filter(|line| line.is_of(layer.layer_key()));
    let network = of_layer.clone().filter(|line| line.device() != "shm");
    let least = |one: &&&Line, other: &&&Line| time(one).total_cmp(&time(other));
    let (first, network) = (of_layer.min_by(least)?, network.min_by(least));
    let told = |line: &&Line| {
        let (time, device) = (compact(time(line)), line.device());
        let rate = line.get(GAP).filter(|gap| gap.value > 0.0).map(|gap| rate(1.0 / gap.value));
        format!("{time} µs one way over {device}{}", rate.unwrap_or_default())
    };
    let network = network.filter(|line| line.device() != first.device()).map(told);
    let network = network.map_or(String::new(), |told| format!("; {told}"));
    Some(format!("A message of {} takes {}{network}.", first.layer(), told(first)))
}

/// How many millions of messages follow each other in a second, in words.
fn rate(millions: f64) -> String {
    let (count, unit) = match millions {
        1.0.. => (millions, "million"),
        _ => (1e3 * millions, "thousand"),
    };
    format!(", {} {unit} of them a second", compact(count))
}

/// Returns sentences on what Active Messages add to the one-way time of verbs, device by device.
fn above_verbs(shown: &[&Line]) -> Option<String> {
    let time = |layer: &str, device: &str| {
        let line = shown.iter().find(|line| line.is_of(layer) && line.device() == device)?;
        line.get(HALF_ROUND_TRIP)
    };
    let (mut told, mut open) = (Vec::new(), Vec::new());
    for device in shown.iter().filter(|line| line.is_of("verbs")).map(|line| line.device()) {
        let Some((verbs, messages)) = time("verbs", device).zip(time("am", device)) else {
            continue;
        };
        match messages.overlaps(&verbs) {
            true => open.push(device),
            false => {
                told.push(format!("{} µs over {device}", compact(messages.value - verbs.value)));
            }
        }
    }
    let told = (!told.is_empty()).then(|| format!("Active Messages add {}.", told.join(", ")));
    let open = (!open.is_empty()).then(|| {
        let devices = open.join(" and ");
        format!("What Active Messages add over {devices} is less than this run can tell.")
    });
    let both: Vec<_> = told.into_iter().chain(open).collect();
    (!both.is_empty()).then(|| both.join(" "))
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use serde_json::json;

    use super::*;

    fn line(layer: &str, carrier: Option<&str>, device: &str, times: [f64; 6]) -> Line {
        let mut line = json!({ "layer": layer, "carrier": carrier, "device": device });
        let keys = ["rtt_us", "o_s_us", "o_r_us", "l_us", "g_us", "g_big_ns_per_byte"];
        for (key, time) in keys.into_iter().zip(times) {
            for (end, part) in [("_low", 0.98), ("", 1.0), ("_high", 1.02)] {
                line[format!("{key}{end}")] = json!(time * part);
            }
        }
        Line::from_json(line).expect("it has parameters")
    }

    /// All layers, and all carriers of Split-C, on four devices.
    fn everything() -> Vec<Line> {
        let devices = [("shm", 0.1), ("udp", 10.0), ("packet", 4.0), ("packet-v2", 5.0)];
        let lines = devices.iter().flat_map(|&(device, time)| {
            let times = |above: f64| [2.0 * above * time, 0.3 * time, time, -0.3 * time, time, 0.1];
            let carriers = ["mixed", "one-sided", "messages"];
            let of_split_c = carriers.map(|one| line("splitc", Some(one), device, times(2.0)));
            let others = [("verbs", 1.0), ("am", 1.5)];
            let others = others.map(|(layer, above)| line(layer, None, device, times(above)));
            others.into_iter().chain(of_split_c)
        });
        lines.collect()
    }

    fn plain(lines: &[Line], width: usize) -> String {
        strip_str(&text(lines, true, width)).to_string()
    }

    #[test]
    fn a_screen_of_24_lines_shows_all_layers_on_all_devices_and_what_they_mean() {
        let text = plain(&everything(), 80);
        let row = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
        assert_eq!(["shm ", "udp ", "packet ", "packet-v2 "].map(row), [3; 4], "{text}");
        let verbs = text.lines().find(|line| line.starts_with("udp       verbs"));
        let verbs: Vec<_> = verbs.expect("a row").split_whitespace().skip(2).collect();
        assert_eq!(verbs, ["10.0", "3.00", "10.0", "−3.00", "10.0", "0.100"]);
        for sentence in [
            "A message of verbs takes 0.100 µs one way over shm, 10.0 million of them a second; \
             4.00 µs one way over packet, 250 thousand of them a second.",
            "Active Messages add 0.050 µs over shm, 5.00 µs over udp,",
            "Where L is below zero, o_s and o_r overlap.",
        ] {
            assert!(text.replace('\n', " ").contains(sentence), "{sentence}: {text}");
        }
        // A line tells where the report is, and the shell's prompt follows.
        assert!(text.lines().count() <= 22, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn a_difference_within_the_intervals_is_not_told_as_nothing() {
        let times = |half: f64| [2.0 * half, 0.3, 0.3, 0.4, 0.5, 0.1];
        let lines = [line("verbs", None, "shm", times(1.0)), line("am", None, "shm", times(1.02))];
        let text = plain(&lines, 80).replace('\n', " ");
        let told = "What Active Messages add over shm is less than this run can tell.";
        assert!(text.contains(told) && !text.contains("Active Messages add 0"), "{text}");
    }

    #[test]
    fn a_narrow_terminal_shows_fewer_columns_and_an_uncertain_number_is_marked() {
        let text = plain(&everything(), 60);
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        assert!(text.contains("one way     o_s     o_r\n"), "{text}");
        let mut line = line("am", None, "shm", [2.0, 0.3, 0.3, 0.4, 0.5, 0.1]).json().clone();
        line["o_s_us_high"] = json!(0.6);
        let text = plain(&[Line::from_json(line).expect("it has parameters")], 80);
        assert!(text.contains("  ~0.300   0.300"), "{text}");
        assert!(text.contains("~: uncertain by more than a fifth"), "{text}");
    }
}

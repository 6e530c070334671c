//! The sentence at the head of the report and the titles of its figures, each made of the numbers
//! that are shown.

use doorbell_measure::logp::line::{GAP, HALF_ROUND_TRIP, Line};
use doorbell_report::brief;

/// Returns one sentence that says what was found: what a message takes on each device, and what
/// Active Messages add. `between` is between which ends was measured, as in "two processes on this
/// machine".
pub fn finding(lines: &[Line], between: &str) -> String {
    let Some(layer) = ["verbs", "am", "splitc"].into_iter().find(|layer| has(lines, layer)) else {
        return String::new();
    };
    let mut floor: Vec<&Line> = Vec::new();
    for line in lines.iter().filter(|line| line.is_of(layer)) {
        if floor.iter().all(|known| known.device() != line.device()) {
            floor.push(line);
        }
    }
    let takes = floor.iter().filter_map(|line| {
        let half = line.get(HALF_ROUND_TRIP)?.value;
        Some(format!("{} µs through {}", brief(half), medium(line.device())))
    });
    let what = match layer {
        "verbs" => "A message",
        "am" => "An Active Message",
        _ => "A get of Split-C",
    };
    let added = if layer == "verbs" { added(lines) } else { String::new() };
    format!("{what} between {between} takes {}{added}.", listed(takes))
}

fn has(lines: &[Line], layer: &str) -> bool {
    lines.iter().any(|line| line.is_of(layer) && line.get(HALF_ROUND_TRIP).is_some())
}

/// Returns the end of a sentence on what Active Messages add to half a round trip of verbs; empty if
/// either was not measured.
fn added(lines: &[Line]) -> String {
    let mut above = Vec::new();
    let mut compared = 0;
    for verbs in lines.iter().filter(|line| line.is_of("verbs")) {
        let is_beside = |line: &&Line| line.is_of("am") && line.device() == verbs.device();
        let am = lines.iter().find(is_beside).and_then(|line| line.get(HALF_ROUND_TRIP));
        let (Some(am), Some(verbs_half)) = (am, verbs.get(HALF_ROUND_TRIP)) else { continue };
        compared += 1;
        if !am.overlaps(&verbs_half) {
            above.push((am.value - verbs_half.value, verbs.device()));
        }
    }
    let ends = |pick: fn(f64, f64) -> f64, from| above.iter().map(|it| it.0).fold(from, pick);
    let (least, most) = (ends(f64::min, f64::INFINITY), ends(f64::max, f64::NEG_INFINITY));
    match (compared, above.len()) {
        (0, _) => String::new(),
        (_, 0) => "; Active Messages take as long, as far as the intervals tell".to_owned(),
        (_, 1) if least > 0.0 && compared > 1 => {
            format!("; Active Messages add {} µs over {}", brief(least), above[0].1)
        }
        _ if least > 0.0 && brief(least) == brief(most) => {
            format!("; Active Messages add {} µs", brief(least))
        }
        _ if least > 0.0 => format!("; Active Messages add {} to {} µs", brief(least), brief(most)),
        _ => {
            let each = above.iter().map(|(by, device)| {
                let than = if *by < 0.0 { "less" } else { "more" };
                format!("{} µs {than} over {device}", brief(by.abs()))
            });
            format!("; Active Messages take {}", listed(each))
        }
    }
}

/// A device in words.
fn medium(device: &str) -> &str {
    match device {
        "shm" => "shared memory",
        "udp" => "UDP",
        "packet" => "raw Ethernet",
        "packet-v2" => "raw Ethernet by RoCE v2",
        other => other,
    }
}

/// Pieces as a list within a sentence.
pub fn listed<S: Into<String>>(pieces: impl IntoIterator<Item = S>) -> String {
    let mut pieces: Vec<String> = pieces.into_iter().map(Into::into).collect();
    let Some(last) = pieces.pop() else { return String::new() };
    if pieces.is_empty() { last } else { format!("{} and {last}", pieces.join(", ")) }
}

/// A line within a sentence, as in "Split-C one-sided over shm".
fn named(line: &Line) -> String {
    line.to_string().replace(", ", " ")
}

/// Returns the title of the dot plot of one-way times: the shortest and the longest.
pub fn one_way(lines: &[Line]) -> String {
    let half = |line: &'_ Line| line.get(HALF_ROUND_TRIP).map(|half| half.value);
    let mut found: Vec<_> = lines.iter().filter_map(|line| Some((half(line)?, line))).collect();
    found.sort_by(|one, other| one.0.total_cmp(&other.0));
    match &found[..] {
        [] => "One-way times".to_owned(),
        [(half, line)] => format!("One way takes {} µs: {}", brief(*half), named(line)),
        [(least, first), .., (most, last)] => format!(
            "One way takes {} µs ({}) to {} µs ({})",
            brief(*least),
            named(first),
            brief(*most),
            named(last)
        ),
    }
}

/// Returns the title of half a round trip and its parts, each line with its L: where o_s and o_r
/// overlap, or how much of the way L is.
pub fn parts<'a>(lines: impl Iterator<Item = (&'a Line, f64)>) -> String {
    // Gets from mapped memory have no message that could be under way.
    let lines: Vec<_> = lines.filter(|(line, _)| !line.is_of_mapped_memory()).collect();
    let mut devices: Vec<&str> = Vec::new();
    for (line, _) in lines.iter().filter(|(_, between)| *between < 0.0) {
        if !devices.contains(&line.device()) {
            devices.push(line.device());
        }
    }
    let share =
        |(line, between): &(&Line, f64)| Some(100.0 * between / line.get(HALF_ROUND_TRIP)?.value);
    let shares = lines.iter().filter(|(_, between)| *between >= 0.0).filter_map(share);
    let most = shares.fold(f64::NEG_INFINITY, f64::max);
    match (devices.is_empty(), most.is_finite()) {
        (true, true) => format!("The network's own latency L is up to {most:.0} % of one way"),
        (false, _) => {
            format!("The sender's and the receiver's work overlap over {}", listed(devices))
        }
        (true, false) => "What one way consists of".to_owned(),
    }
}

/// Returns the title of the gaps: how often a processor sends, at the first layer that was measured
/// on several devices.
pub fn gaps(lines: &[Line]) -> String {
    let layer = ["am", "verbs", "splitc"].into_iter().find(|layer| has(lines, layer));
    let name = match layer {
        Some("am") => "an Active Message",
        Some("verbs") => "a message",
        _ => "a get",
    };
    let mut devices: Vec<&str> = Vec::new();
    let mut said = Vec::new();
    for line in lines.iter().filter(|line| layer.is_some_and(|layer| line.is_of(layer))) {
        if let Some(gap) = line.get(GAP).filter(|_| !devices.contains(&line.device())) {
            devices.push(line.device());
            said.push(format!("{} µs over {}", brief(gap.value), line.device()));
        }
    }
    match said.is_empty() {
        true => "The gap between messages".to_owned(),
        false => format!("A steady stream sends {name} every {}", listed(said)),
    }
}

/// Returns the sentence under the gaps: how many of them the processor makes.
pub fn whose_gaps(lines: &[Line]) -> String {
    let busy = lines.iter().filter(|line| line.gap_is_of_the_processor()).count();
    format!(
        "Of {} measurements, {busy} have the processor's own time for a message, o_s + o_r, as their \
         gap: there the network by itself may be faster.",
        lines.len()
    )
}

/// The times of a request in bursts of two or more without a computation, by the length of the
/// burst.
pub fn bursts_of(line: &Line) -> Vec<(f64, f64)> {
    let points = line.curve("bursts").into_iter();
    let points = points.filter(|point| point.gaps == 0 && point.burst >= 2.0);
    points.map(|point| (point.burst, point.us)).collect()
}

/// Returns the title of the bursts of several lines: what the longest bursts take beside bursts of
/// two.
pub fn bursts(lines: &[Line]) -> String {
    let share = |line: &Line| {
        let points = bursts_of(line);
        Some(points.last()?.1 / points.first()?.1).filter(|share| share.is_finite())
    };
    let shares: Vec<f64> = lines.iter().filter_map(share).collect();
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let most = shares.iter().copied().fold(0.0, f64::max);
    match shares.len() {
        0 => "Bursts by their length".to_owned(),
        1 => {
            format!("In long bursts a request takes {} times as long as in short ones", brief(most))
        }
        _ => format!(
            "In long bursts a request takes {} to {} times as long as in bursts of two",
            brief(least),
            brief(most)
        ),
    }
}

/// Returns the title of the curves that the parameters come from: how near to g the longest bursts
/// end.
pub fn signatures(lines: &[&Line]) -> String {
    let Some(device) = lines.first().map(|line| line.device()) else { return String::new() };
    let off = |line: &&Line| {
        let gap = line.get(GAP)?.value;
        Some(100.0 * (bursts_of(line).last()?.1 / gap - 1.0).abs())
    };
    let most = lines.iter().filter_map(off).filter(|off| off.is_finite()).fold(0.0, f64::max);
    format!("Over {device}, the longest bursts end within {:.0} % of g", most.ceil())
}

/// The bytes of a request and the gigabytes a second of a stream of such requests.
pub fn rates_of(line: &Line) -> Vec<(f64, f64)> {
    let points = line.curve("long").into_iter();
    points.map(|point| (point.bytes, point.bytes / point.us / 1e3)).collect()
}

/// Returns the title of longer requests: the highest rate on each device.
pub fn bulk(lines: &[Line]) -> String {
    let mut best: Vec<(&str, f64)> = Vec::new();
    for line in lines {
        let Some((_, rate)) = rates_of(line).pop().filter(|(_, rate)| rate.is_finite()) else {
            continue;
        };
        match best.iter_mut().find(|(device, _)| *device == line.device()) {
            Some((_, known)) => *known = known.max(rate),
            None => best.push((line.device(), rate)),
        }
    }
    let said = best.iter().map(|(device, rate)| format!("{} GB/s over {device}", brief(*rate)));
    match best.is_empty() {
        true => "Longer messages".to_owned(),
        false => format!("Long messages move at up to {}", listed(said)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn line(layer: &str, device: &str, half: f64, gap: f64) -> Line {
        let point = |burst: u32, bytes: u32, us: f64| -> Value {
            json!({ "burst": burst, "gaps": 0, "computation_us": 0.0, "bytes": bytes, "us": us })
        };
        let mut line = json!({
            "layer": layer, "device": device,
            "bursts": [point(1, 0, 9.0), point(2, 0, 0.4), point(128, 0, 0.22)],
            "long": [point(128, 1000, 0.3), point(128, 8000, 1.0)],
        });
        for (key, value) in [("rtt_us", 2.0 * half), ("g_us", gap)] {
            for (end, factor) in [("", 1.0), ("_low", 0.99), ("_high", 1.01)] {
                line[format!("{key}{end}")] = (factor * value).into();
            }
        }
        Line::from_json(line).expect("it has parameters")
    }

    #[test]
    fn the_finding_says_what_a_message_takes_and_what_active_messages_add() {
        let verbs = || [line("verbs", "shm", 0.2, 0.1), line("verbs", "udp", 2.9, 1.0)];
        let [shm, udp] = verbs();
        let lines = [shm, udp, line("am", "shm", 0.26, 0.1)];
        assert_eq!(
            finding(&lines, "two processes"),
            "A message between two processes takes 0.20 µs through shared memory and 2.9 µs through \
             UDP; Active Messages add 0.060 µs."
        );
        let [shm, udp] = verbs();
        let lines = [shm, udp, line("am", "shm", 0.26, 0.1), line("am", "udp", 2.5, 0.1)];
        let found = finding(&lines, "two processes");
        let expected = "take 0.060 µs more over shm and 0.40 µs less over udp.";
        assert!(found.ends_with(expected), "{found}");
        let lines = [line("verbs", "shm", 0.2, 0.1), line("am", "shm", 0.2, 0.1)];
        assert!(finding(&lines, "a and b").ends_with("as far as the intervals tell."));
        let found = finding(&lines[1..], "a and b");
        assert_eq!(found, "An Active Message between a and b takes 0.20 µs through shared memory.");
        assert_eq!(finding(&[], "a and b"), "");
    }

    #[test]
    fn titles_are_of_the_numbers_that_are_shown() {
        let lines = [line("am", "shm", 0.26, 0.2), line("am", "udp", 2.5, 0.21)];
        assert_eq!(
            one_way(&lines),
            "One way takes 0.26 µs (Active Messages over shm) to 2.5 µs (Active Messages over \
             udp)"
        );
        assert_eq!(
            gaps(&lines),
            "A steady stream sends an Active Message every 0.20 µs over shm and 0.21 µs over udp"
        );
        assert_eq!(
            bursts(&lines[..1]),
            "In long bursts a request takes 0.55 times as long as in short ones"
        );
        assert_eq!(signatures(&[&lines[0]]), "Over shm, the longest bursts end within 10 % of g");
        assert_eq!(
            bulk(&lines),
            "Long messages move at up to 8.0 GB/s over shm and 8.0 GB/s over udp"
        );
        let overlapping = parts([(&lines[0], 0.1), (&lines[1], -0.1)].into_iter());
        assert_eq!(overlapping, "The sender's and the receiver's work overlap over udp");
        let apart = parts([(&lines[0], 0.13), (&lines[1], 1.0)].into_iter());
        assert_eq!(apart, "The network's own latency L is up to 50 % of one way");
    }

    /// Curves began at a burst of one request, which is followed by a look for its answer.
    #[test]
    fn bursts_begin_with_two_requests() {
        assert_eq!(bursts_of(&line("am", "shm", 0.2, 0.2)), [(2.0, 0.4), (128.0, 0.22)]);
    }
}

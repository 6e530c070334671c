//! The report: what a message costs here, in tables and figures, with the machine described.

use doorbell_logp::Estimate;
use doorbell_measure::logp::devices;
use doorbell_measure::logp::line::{
    GAP, HALF_ROUND_TRIP, LATENCY, Line, PARAMETERS, Parameter, RECEIVE_OVERHEAD, SEND_OVERHEAD,
};
use doorbell_measure::machine::Machine;
use doorbell_report::{
    Axis, Bar, Bars, Cell, Column, Figure, Lines, Note, Report, Section, Series, Table, Value,
};
use serde_json::json;

use super::captions;
use super::published::{PAPER, TABLE_2};

/// The results that a report is made of.
pub struct Findings<'a> {
    pub machine: &'a Machine,
    /// The description of the other end's machine, if that is another one.
    pub there: &'a [(String, String)],
    pub lines: &'a [Line],
    /// Steps that failed, and why.
    pub failures: &'a [(String, String)],
    /// Between which ends was measured, as in "two processes on this machine".
    pub between: &'a str,
    /// The warning at the head if only a part was measured.
    pub partial: Option<&'a str>,
}

/// The whole report, for people who look at it in a browser.
pub fn report(findings: &Findings<'_>) -> Report {
    let lines: Vec<_> = findings.lines.iter().map(|line| line.json().clone()).collect();
    let raw = json!({ "machine": findings.machine.json(), "lines": lines });
    let mut report = summary(findings).json(raw.to_string());
    report = report.section(gaps(findings.lines)).section(bursts(findings.lines));
    report = report.section(long(findings.lines)).section(method());
    let facts = findings.machine.facts().into_iter().chain(devices::facts(findings.lines));
    report = report.section(Section::new("This machine").facts(facts.collect::<Vec<_>>()));
    match findings.there {
        [] => report,
        facts => report.section(Section::new("The other machine").facts(facts.to_vec())),
    }
}

/// The part of the report that a terminal shows: the parameters, the parts of half a round trip,
/// and the curves that the parameters of each layer on the first device come from.
pub fn summary(findings: &Findings<'_>) -> Report {
    let subtitle = format!(
        "LogP parameters of verbs, Active Messages and Split-C, measured between {}",
        findings.between
    );
    let mut section = Section::new("Parameters").table(table(findings.lines));
    for note in notes(findings) {
        section = section.note(note);
    }
    let figure =
        Figure::new("parts", "Half a round trip, and what it consists of", parts(findings.lines))
            .sentence(captions::parts(findings.lines));
    let report = Report::new("What a message costs").subtitle(subtitle);
    let notes = findings.partial.map(Note::warning);
    notes
        .into_iter()
        .fold(report, Report::note)
        .section(section)
        .section(Section::new("Where the time goes").figure(figure))
        .section(signatures(findings.lines))
}

fn value(estimate: Estimate) -> Value {
    Value::within(estimate.value, estimate.low, estimate.high)
}

fn table(lines: &[Line]) -> Table {
    let mut table =
        Table::new("parameters", "Parameters with intervals of 95 %; published ones below")
            .column(Column::text("Layer and device"));
    for Parameter { name, unit, .. } in PARAMETERS {
        table = table.column(Column::number(name, unit));
    }
    for line in lines {
        let values = PARAMETERS.iter().map(|one| Cell::from(line.get(*one).map(value)));
        table = table.row([Cell::from(line.to_string())].into_iter().chain(values));
    }
    for row in &TABLE_2 {
        let values = row.values.iter().map(|value| Cell::published(*value, PAPER));
        table = table.row([Cell::from(row.name)].into_iter().chain(values));
    }
    table
}

/// The notes that tell a reader how far to trust the numbers.
fn notes(findings: &Findings<'_>) -> Vec<Note> {
    let mut notes: Vec<_> = findings.machine.warning().map(Note::warning).into_iter().collect();
    let wide: Vec<_> = findings.lines.iter().filter_map(Line::too_wide).collect();
    if !wide.is_empty() {
        notes.push(Note::warning(format!(
            "Too uncertain to rely on, with intervals wider than a fifth of the value and than 10 \
             ns: {}.",
            wide.join("; ")
        )));
    }
    notes.extend(below_zero(findings.lines).map(Note::warning));
    let failures = findings.failures.iter();
    notes.extend(failures.map(|(step, why)| Note::missing(format!("{step}: {why}"))));
    notes
}

/// Why L is below zero for some lines, if it is.
fn below_zero(lines: &[Line]) -> Option<String> {
    let is_below = |line: &&Line| line.get(LATENCY).is_some_and(|latency| latency.value < 0.0);
    let (mapped, others): (Vec<_>, Vec<_>) =
        lines.iter().filter(is_below).partition(|line| line.is_of_mapped_memory());
    let mut text = String::new();
    if !others.is_empty() {
        let devices = devices_of(others).join(", ");
        text += &format!(
            "L is what remains of half a round trip without o_s and o_r. It is below zero over \
             {devices}: the sender's processor carries a message all the way into the receiver's \
             queue, and still works when the receiver already handles the message, so o_s and o_r \
             overlap."
        );
    }
    if !mapped.is_empty() {
        let gap = if text.is_empty() { "" } else { " " };
        text += gap;
        text += "Gets from mapped memory are loads of the processor that sends: there is no message \
                 whose latency L could be.";
    }
    (!text.is_empty()).then_some(text)
}

fn parts(lines: &[Line]) -> Bars {
    let mut bars =
        Bars::stacked(Axis::linear("Half a round trip", "µs"), ["o_s", "L", "o_r"]).total("RTT/2");
    for line in lines {
        let [send, latency, receive, half] =
            [SEND_OVERHEAD, LATENCY, RECEIVE_OVERHEAD, HALF_ROUND_TRIP]
                .map(|one| line.get(one).map(value));
        // The median of differences is not the difference of medians, and the parts are to add up.
        let rest = |latency: Value| match (send, receive, half) {
            (Some(send), Some(receive), Some(half)) => {
                moved(latency, half.value - send.value - receive.value)
            }
            _ => latency,
        };
        let values = [send, latency.map(rest), receive];
        bars = bars.bar(Bar::new(line.layer(), values).group(line.device()));
    }
    bars
}

/// A value at another place, with an interval as wide as before.
fn moved(value: Value, to: f64) -> Value {
    let by = to - value.value;
    let interval = value.interval.map(|(low, high)| (low + by, high + by));
    Value { value: to, interval }
}

fn gaps(lines: &[Line]) -> Section {
    let mut bars = Bars::grouped(Axis::log("Time between messages at a steady rate", "µs"), ["g"]);
    for line in lines {
        bars = bars.bar(Bar::new(line.layer(), [line.get(GAP).map(value)]).group(line.device()));
    }
    for row in &TABLE_2 {
        bars = bars.bar(
            Bar::new(row.name, [Value::exact(row.values[3])]).group("Published").published(PAPER),
        );
    }
    let figure = Figure::new("gaps", "The gap g", bars).sentence(captions::gaps(lines));
    Section::new("How often a message can be sent").figure(figure)
}

/// The devices, in the order of the lines.
fn devices_of<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Vec<&'a str> {
    let mut devices: Vec<&str> = Vec::new();
    for line in lines {
        if !devices.contains(&line.device()) {
            devices.push(line.device());
        }
    }
    devices
}

/// The section with a curve for each layer on the first device (Split-C by the first carrier), and
/// with the levels that the method finds in the curve.
fn signatures(lines: &[Line]) -> Section {
    let mut section = Section::new("What the method sees").paragraph(
        "The time of a request by the length of its burst, where answers are handled as they come. \
         In a long burst a request takes g, or with a computation Δ of two gaps behind each \
         request o_s + Δ + o_r. The level o_s is that of a burst in which no answer is looked for; \
         here each request is followed by a look, so that a short burst takes longer than o_s.",
    );
    let first = |layer: &str| lines.iter().find(|line| line.is_of(layer));
    let device = lines.first().map(Line::device);
    for line in ["verbs", "am", "splitc"].into_iter().filter_map(first) {
        if Some(line.device()) == device {
            section = section.figure(signature(line));
        }
    }
    section
}

/// The time of a request by the length of its burst, without a computation behind each request and
/// with one of two gaps.
fn signature(line: &Line) -> Figure {
    let axes = (Axis::log2("Requests in a burst", ""), Axis::linear("Time for a request", "µs"));
    let mut curves = Lines::new(axes.0, axes.1);
    let points = line.curve("bursts");
    for (name, gaps) in [("Δ = 0", 0), ("Δ = 2 g", 2)] {
        let points = points.iter().filter(|point| point.gaps == gaps);
        curves = curves.series(Series::new(name, points.map(|point| (point.burst, point.us))));
    }
    let get = |parameter| line.get(parameter).map(|estimate| estimate.value);
    let [send, receive, gap] = [SEND_OVERHEAD, RECEIVE_OVERHEAD, GAP].map(get);
    let computation = points.iter().find(|point| point.gaps == 2).map(|one| one.computation_us);
    let busy =
        send.zip(receive).zip(computation).map(|((send, receive), time)| send + time + receive);
    let levels = [("o_s", send), ("g", gap), ("o_s + Δ + o_r", busy)];
    let levels = levels.into_iter().filter_map(|(name, level)| Some((name, level?)));
    let levels: Vec<_> =
        levels.map(|(name, level)| (format!("{name} {level:.3}"), level)).collect();
    curves = levels.into_iter().fold(curves, |curves, (name, level)| curves.level(name, level));
    let id = format!("signature-{}", line.json()["layer"].as_str().unwrap_or_default());
    Figure::new(id, line.to_string(), curves).sentence(captions::signature(line))
}

fn bursts(lines: &[Line]) -> Section {
    let mut section = Section::new("How a burst becomes steady").paragraph(
        "Requests are sent in bursts, each followed by a look for answers. In a short burst no \
         answer has come yet, and a request takes o_s and that look; in a long one each answer must \
         be taken, too, and a request takes g.",
    );
    for device in devices_of(lines) {
        let axes = (Axis::log2("Requests in a burst", ""), Axis::log("Time for a request", "µs"));
        let mut curves = Lines::new(axes.0, axes.1);
        for line in lines.iter().filter(|line| line.device() == device) {
            let points = line.curve("bursts");
            let points = points.iter().filter(|point| point.gaps == 0);
            curves = curves
                .series(Series::new(line.layer(), points.map(|point| (point.burst, point.us))));
        }
        let title = format!("Bursts over {device}");
        let sentence = captions::bursts(lines.iter().filter(|line| line.device() == device));
        let id = format!("bursts-{device}");
        section = section.figure(Figure::new(id, title, curves).sentence(sentence));
    }
    section
}

fn long(lines: &[Line]) -> Section {
    let mut section = Section::new("Longer messages").paragraph(
        "At a steady rate of longer requests each further byte takes G, the gap per byte of the \
         LogGP model.",
    );
    for device in devices_of(lines) {
        let axes = (Axis::bytes("Length of a request"), Axis::log("Time for a request", "µs"));
        let mut curves = Lines::new(axes.0, axes.1);
        for line in lines.iter().filter(|line| line.device() == device) {
            let points = line.curve("long");
            let points = points.iter().map(|point| (point.bytes, point.us));
            curves = curves.series(Series::new(line.layer(), points));
        }
        let title = format!("Longer requests over {device}");
        let sentence = captions::long(lines.iter().filter(|line| line.device() == device));
        let id = format!("long-{device}");
        section = section.figure(Figure::new(id, title, curves).sentence(sentence));
    }
    section
}

fn method() -> Section {
    Section::new("How it is measured")
        .paragraph(
            "By the method of D. E. Culler, L. T. Liu, R. P. Martin and C. Yoshikawa (Assessing \
             Fast Network Interfaces, IEEE Micro 16 (1), 1996). One end sends requests, the other \
             answers each. In a burst that is over before the first answer has come, a request \
             takes o_s. At a steady rate a request takes g; with a computation of a length Δ above g \
             behind each request, o_s + Δ + o_r. A request alone is answered after the round-trip \
             time, and L = RTT/2 − o_s − o_r is what remains. At a steady rate of longer requests, \
             each further byte takes G.",
        )
        .paragraph(
            "Everything is timed in many short pieces, of which the median counts, in many rounds, \
             of which again the median counts. A value is the mean of several runs, each by \
             processes of its own and far apart from the others, and the interval beside it is that \
             of Student's distribution, in which the value lies with a probability of 95 %. Of a \
             single run (--quick), it is the median and its interval. The time that reading the \
             clock takes is subtracted.",
        )
        .paragraph(
            "At verbs, a request and its answer are sends of 16 bytes; at Active Messages, requests \
             and replies with one word; at Split-C, split-phase gets of 8 bytes, each sent by \
             itself: from mapped memory, by RDMA reads (one-sided), or by messages that the other \
             process answers.",
        )
}

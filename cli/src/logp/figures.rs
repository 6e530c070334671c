//! The figures of the report.

use doorbell_logp::Estimate;
use doorbell_measure::logp::line::{
    GAP, HALF_ROUND_TRIP, LATENCY, Line, RECEIVE_OVERHEAD, SEND_OVERHEAD,
};
use doorbell_report::{
    Axis, Dot, Dots, Figure, Lines, Panels, Section, Series, Span, Spans, Value,
};

use super::captions;
use super::published::{HEADING, PAPER_IN_SHORT, Row, TABLE_2};

/// An estimate as reports have it.
pub fn value(estimate: Estimate) -> Value {
    Value::within(estimate.value, estimate.low, estimate.high)
}

/// The devices, in the order of the lines.
pub fn devices_of<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Vec<&'a str> {
    let mut devices: Vec<&str> = Vec::new();
    for line in lines {
        if !devices.contains(&line.device()) {
            devices.push(line.device());
        }
    }
    devices
}

/// A dot for each line, and one for each published row. `of` takes the value from a line, and `then`
/// that from a row.
fn dots(
    lines: &[Line],
    dots: Dots,
    of: impl Fn(&Line) -> Option<Estimate>,
    then: impl Fn(&Row) -> f64,
) -> Dots {
    let dots = lines.iter().fold(dots, |dots, line| {
        let dot = Dot::new(line.layer(), of(line).map(value)).group(line.device());
        dots.dot(dot.colour(line.colour()))
    });
    TABLE_2.iter().fold(dots, |dots, row| {
        let dot = Dot::new(row.name, Value::exact(then(row))).group(HEADING);
        dots.dot(dot.published(PAPER_IN_SHORT))
    })
}

/// The dot plot at the head of the report: half a round trip by device and layer.
pub fn one_way(lines: &[Line]) -> Figure {
    let plot = Dots::new("Half a round trip", "µs");
    let plot = dots(lines, plot, |line| line.get(HALF_ROUND_TRIP), |row| row.values[4]);
    Figure::new("one-way", captions::one_way(lines), plot)
}

/// The gaps between messages by device and layer.
pub fn gaps(lines: &[Line]) -> Figure {
    let plot = Dots::new("Gap g between messages", "µs");
    let plot = dots(lines, plot, |line| line.get(GAP), |row| row.values[3]);
    Figure::new("gaps", captions::gaps(lines), plot).sentence(captions::whose_gaps(lines))
}

/// Half a round trip with what it begins and ends with.
pub fn parts(lines: &[Line]) -> Figure {
    let mut spans = Spans::new("Half a round trip", "µs", ["o_s", "L", "o_r", "RTT/2"]);
    let mut found = Vec::new();
    for line in lines {
        let all = [SEND_OVERHEAD, RECEIVE_OVERHEAD, HALF_ROUND_TRIP].map(|one| line.get(one));
        let [Some(first), Some(last), Some(whole)] = all.map(|one| one.map(value)) else {
            continue;
        };
        let (label, group, colour) = (line.layer(), line.device().to_owned(), line.colour());
        let span = Span { label, group, colour, first, last, whole };
        found.push((line, span.between()));
        spans = spans.span(span);
    }
    let overlaps =
        found.iter().any(|(line, between)| *between < 0.0 && !line.is_of_mapped_memory());
    let is_mapped = found.iter().any(|(line, _)| line.is_of_mapped_memory());
    let mut sentence =
        "Half a round trip begins with o_s, the sender's work, and ends with o_r, the \
                        receiver's. L is what is left between."
            .to_owned();
    if overlaps {
        sentence += " Where they overlap, L is below zero: the sender's processor carries the \
                     message all the way into the receiver's queue, and still works when the \
                     receiver already handles the message.";
    }
    if is_mapped {
        sentence += " Gets from mapped memory are loads of the processor that sends: there is no \
                     message whose latency L could be.";
    }
    Figure::new("parts", captions::parts(found.into_iter()), spans).sentence(sentence)
}

/// The curves that the parameters come from, on each device: those of each layer, of Split-C by the
/// first carrier.
pub fn signatures(lines: &[Line]) -> Vec<Figure> {
    let figure = |device: &str| {
        let of = |layer| lines.iter().find(|line| line.is_of(layer) && line.device() == device);
        let lines: Vec<&Line> = ["verbs", "am", "splitc"].into_iter().filter_map(of).collect();
        let panels = lines
            .iter()
            .fold(Panels::new(), |panels, line| panels.panel(line.layer(), signature(line)));
        Figure::new(format!("signature-{device}"), captions::signatures(&lines), panels)
    };
    devices_of(lines).into_iter().map(figure).collect()
}

/// The time of a request by the length of its burst, without a computation behind each request and
/// with one of two gaps, and the levels that the method finds.
fn signature(line: &Line) -> Lines {
    let axes = (Axis::log2("Requests in a burst", ""), Axis::linear("Time for a request", "µs"));
    let points = line.curve("bursts");
    let computing = points.iter().filter(|point| point.gaps == 2 && point.burst >= 2.0);
    let computing = computing.map(|point| (point.burst, point.us));
    // Both lines of a layer have its colour.
    let series =
        |name, points, pattern| Series::new(name, points).colour(line.colour()).pattern(pattern);
    let curves = Lines::new(axes.0, axes.1)
        .series(series("Δ = 0", captions::bursts_of(line), 0))
        .series(series("Δ = 2 g", computing.collect(), 1));
    let get = |parameter| line.get(parameter).map(|estimate| estimate.value);
    let [send, receive, gap] = [SEND_OVERHEAD, RECEIVE_OVERHEAD, GAP].map(get);
    let computation = points.iter().find(|point| point.gaps == 2).map(|one| one.computation_us);
    let busy =
        send.zip(receive).zip(computation).map(|((send, receive), time)| send + time + receive);
    let levels = [("o_s", send), ("g", gap), ("o_s + Δ + o_r", busy)];
    let levels = levels.into_iter().filter_map(|(name, level)| Some((name, level?)));
    levels.fold(curves, |curves, (name, level)| curves.level(format!("{name} {level:.3}"), level))
}

/// A drawing for each device, with a line for each layer.
fn by_device(
    lines: &[Line],
    axes: impl Fn() -> (Axis, Axis),
    of: impl Fn(&Line) -> Vec<(f64, f64)>,
) -> Panels {
    devices_of(lines).into_iter().fold(Panels::new(), |panels, device| {
        let (x, y) = axes();
        let layers = lines.iter().filter(|line| line.device() == device);
        let drawn = layers.fold(Lines::new(x, y), |drawn, line| {
            drawn.series(Series::new(line.layer(), of(line)).colour(line.colour()))
        });
        panels.panel(device, drawn)
    })
}

/// The time of a request by the length of its burst, on each device.
pub fn bursts(lines: &[Line]) -> Figure {
    let axes = || (Axis::log2("Requests in a burst", ""), Axis::log("Time for a request", "µs"));
    let panels = by_device(lines, axes, captions::bursts_of);
    Figure::new("bursts", captions::bursts(lines), panels)
}

/// The rate of longer requests by their length, on each device.
pub fn bulk(lines: &[Line]) -> Figure {
    let axes = || (Axis::bytes("Length of a request"), Axis::log("Throughput", "GB/s"));
    let panels = by_device(lines, axes, captions::rates_of);
    Figure::new("bulk", captions::bulk(lines), panels)
}

/// Why L is below zero for some lines, if it is.
pub fn below_zero(lines: &[Line]) -> Option<String> {
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

/// The section with the curves that the parameters come from.
pub fn method_sees(figures: impl IntoIterator<Item = Figure>) -> Section {
    let section = Section::new("What the method sees").paragraph(
        "The time of a request by the length of its burst, where answers are handled as they come. \
         In a long burst a request takes g, or with a computation Δ of two gaps behind each \
         request o_s + Δ + o_r. The level o_s is that of a burst in which no answer is looked for; \
         here each request is followed by a look, so that a short burst takes longer than o_s.",
    );
    figures.into_iter().fold(section, Section::figure)
}

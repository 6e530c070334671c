//! Figure 5: latency and bandwidth of streams.

use doorbell_report::{Axis, Cell, Column, Figure, Lines, Note, Section, Series, Table, Value};

use super::curves::{Curve, LONGEST, SIZES, half_length, peak};
use super::published::{HALF_LENGTH, LATENCY, PEAK, cited};
use crate::judging::{claim, is_between, told};
use crate::paper::bench::{Bench, Run};
use crate::paper::titles;

pub const TESTS: usize = 1;

/// Makes the section, of curves that were measured, each with its device.
pub fn section(bench: &mut Bench, curves: &[(String, Curve)]) -> Section {
    let mut table =
        Table::new("figure-5", "Latency, peak bandwidth, and the length of half of that")
            .column(Column::text("Streams"))
            .column(Column::number("Latency, 16 B", "µs"))
            .column(Column::number("Peak bandwidth", "MB/s").decimals(0))
            .column(Column::number("N½", "B").decimals(0));
    let mut lines = Lines::new(Axis::bytes("Length of a message"), Axis::log("Bandwidth", "MB/s"));
    let mut notes = Vec::new();
    for (colour, (device, curve)) in curves.iter().enumerate() {
        let latency = bench.latency(Run { test: "stream_lat", device, arguments: &[] });
        let half = half_length(curve);
        let cells = [latency.into(), peak(curve).into(), Cell::from(half)];
        table = table.row([format!("Doorbell over {device}").into()].into_iter().chain(cells));
        lines = lines.series(Series::new(device, curve.iter().copied()).colour(colour));
        notes.extend(peak(curve).map(|_| short_messages(device, half)));
    }
    let published = [LATENCY, PEAK, HALF_LENGTH].map(|it| Cell::published(it, cited("figure 5")));
    let name = Cell::from("Fast Messages 2.1, 200 MHz Pentium Pro (N½ is below that)");
    table = table.row([name].into_iter().chain(published));
    lines = lines.level(format!("Fast Messages 2.1: {PEAK} MB/s (1998)"), PEAK);
    let title = titles::at("The paper's figure 5: bandwidth of streams", &lines, LONGEST);
    let figure = Figure::new("bandwidth", title, lines);
    let figure = figure.sentence(format!(
        "Messages of one piece, of {} to {} bytes.",
        SIZES[0],
        SIZES[SIZES.len() - 1]
    ));
    let mut section = Section::new("Figure 5: streams").paragraph(
        "A message is begun, sent in one piece, and ended; its handler receives it. The peak is the \
         bandwidth of the longest messages, and N½ is the length of messages that have half of that.",
    );
    section = section.table(table).figure(figure);
    notes.into_iter().fold(section, Section::note)
}

fn short_messages(device: &str, half: Option<Value>) -> Note {
    claim(
        is_between(half, 0.0, HALF_LENGTH),
        format!(
            "Short messages get much of the bandwidth: N½ < {HALF_LENGTH} bytes (§4.2). Over \
             {device}: {}.",
            told(half, 0, "bytes")
        ),
    )
}

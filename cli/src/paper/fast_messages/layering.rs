//! Figure 6: what part of the bandwidth of streams a layer above them gets.

use doorbell_report::{Axis, Cell, Column, Figure, Lines, Note, Section, Series, Table, Value};

use super::curves::{Curve, peak};
use super::published::{LAYER_LATENCY, LAYER_PEAK, SHARE_AT_BEST, SHARE_OF_SHORT, cited};
use crate::paper::bench::{Bench, Run};
use crate::paper::judging::{claim, is_between, ratio};

pub const TESTS: usize = 1;

/// Makes the section, of the curves of streams and of the layer above, by devices.
pub fn section(bench: &mut Bench, curves: &[(String, [Curve; 2])]) -> Section {
    let mut table = Table::new("figure-6", "Tagged matching on streams")
        .column(Column::text("Layer"))
        .column(Column::number("Latency, 16 B", "µs"))
        .column(Column::number("Peak bandwidth", "MB/s").decimals(0))
        .column(Column::number("Share at 16 B", "%").decimals(0))
        .column(Column::number("Share at best", "%").decimals(0));
    let axis = Axis::linear("Share of the bandwidth of streams", "%");
    let mut lines = Lines::new(Axis::bytes("Length of a message"), axis);
    let mut notes = Vec::new();
    for (device, [streams, layer]) in curves {
        let latency = bench.latency(Run { test: "stream_tag_lat", device, arguments: &[] });
        let shares = shares(streams, layer);
        let (short, best) = (shares.first().map(|(_, share)| *share), peak(&shares));
        let cells: [Cell; 4] = [latency.into(), peak(layer).into(), short.into(), best.into()];
        let name = format!("Tags on streams over {device}");
        table = table.row([name.into()].into_iter().chain(cells));
        notes.extend(notes_on(device, short, best));
        lines = lines.series(Series::new(device, shares));
    }
    let published = [LAYER_LATENCY, LAYER_PEAK, SHARE_OF_SHORT, SHARE_AT_BEST];
    let published = published.map(|it| Cell::published(it, cited("figure 6, §1, §4.2")));
    table = table.row([Cell::from("MPI-FM 2.0 on Fast Messages")].into_iter().chain(published));
    lines = lines.level("MPI-FM at best: 90 % (1998)", SHARE_AT_BEST);
    let figure = Figure::new(
        "shares",
        "The paper's figure 6: bandwidth as a share of that below",
        lines,
    )
    .sentence(
        "A layer that adds no copy gets nearly all of what is below it, but for short messages.",
    );
    let mut section = Section::new("Figure 6: a layer on streams").paragraph(
        "Tagged matching that was written for this, in the place of MPI: it sends a header of 24 \
         bytes as a piece before each message, and its handler receives the header, finds the \
         receive that was posted for the tag, and receives the rest straight into that buffer.",
    );
    section = section.table(table).figure(figure);
    notes.into_iter().fold(section, Section::note)
}

/// The bandwidth of the layer in per cent of that of streams, by the length of messages.
fn shares(streams: &Curve, layer: &Curve) -> Curve {
    let below = |bytes: f64| streams.iter().find(|(length, _)| *length == bytes);
    let share = |(bytes, rate): &(f64, Value)| {
        let (_, below) = below(*bytes)?;
        let Value { value, interval } = ratio(*rate, *below);
        let interval = interval.map(|(low, high)| (100.0 * low, 100.0 * high));
        Some((*bytes, Value { value: 100.0 * value, interval }))
    };
    layer.iter().filter_map(share).collect()
}

/// The paper's claim, and whether it holds.
fn notes_on(device: &str, short: Option<Value>, best: Option<Value>) -> Vec<Note> {
    let of = |value: Value, least: f64| is_between(value, least, f64::INFINITY);
    let mut notes = Vec::new();
    if let Some(short) = short {
        notes.push(claim(
            of(short, SHARE_OF_SHORT),
            format!(
                "Even of messages of 16 bytes a layer gets over 70 % of the bandwidth (§1). Over \
                 {device}: {:.0} %.",
                short.value
            ),
        ));
    }
    if let Some(best) = best {
        notes.push(claim(
            of(best, SHARE_AT_BEST),
            format!(
                "Streams deliver 90 % of their bandwidth to the layer above (§1, §4.2). Over {device}: \
                 up to {:.0} %.",
                best.value
            ),
        ));
    }
    notes
}

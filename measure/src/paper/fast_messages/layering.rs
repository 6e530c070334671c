//! Figure 6: what part of the bandwidth of streams a layer above them gets.

use doorbell_report::{Axis, Cell, Column, Figure, Lines, Note, Section, Series, Table, Value};

use super::curves::{Curve, LONGEST, at, peak};
use super::published::{LAYER_LATENCY, LAYER_PEAK, SHARE_AT_BEST, SHARE_OF_SHORT, cited};
use crate::judging::{claim, is_between, ratio, times, told};
use crate::paper::bench::{Bench, Run};
use crate::paper::titles;

pub const TESTS: usize = 1;
/// The length of short messages, in bytes.
const SHORT: f64 = 16.0;

/// Makes the section, of the curves of streams and of the layer above, by devices.
pub fn section(bench: &mut Bench, curves: &[(String, [Curve; 2])]) -> Section {
    let mut table = Table::new("figure-6", "Tagged matching on streams")
        .column(Column::text("Layer"))
        .column(Column::number("Latency, 16 B", "µs"))
        .column(Column::number("Peak bandwidth", "MB/s").decimals(0))
        .column(Column::number("Share at 16 B", "%").decimals(0))
        .column(Column::number("Share at peak", "%").decimals(0));
    let axis = Axis::linear("Share of the bandwidth of streams", "%");
    let mut lines = Lines::new(Axis::bytes("Length of a message"), axis);
    let (mut notes, mut said) = (Vec::new(), Vec::new());
    for (colour, (device, [streams, layer])) in curves.iter().enumerate() {
        let latency = bench.latency(Run { test: "stream_tag_lat", device, arguments: &[] });
        let shares = shares(streams, layer);
        let share = |length| ratio(at(layer, length)?, at(streams, length)?);
        let [short, best] =
            [SHORT, LONGEST].map(|length| share(length).map(|share| times(100.0, share)));
        if let (Some(short), Some(best)) = (short, best) {
            let (short, best) = (short.value, best.value);
            said.push(format!("over {device} {short:.0} % at 16 B and {best:.0} % at 64 KiB"));
        }
        let cells: [Cell; 4] = [latency.into(), peak(layer).into(), short.into(), best.into()];
        let name = format!("Tags on streams over {device}");
        table = table.row([name.into()].into_iter().chain(cells));
        if peak(layer).is_some() && at(layer, SHORT).is_some() {
            notes.extend(notes_on(device, short, best));
        }
        lines = lines.series(Series::new(device, shares).colour(colour));
    }
    let published = [LAYER_LATENCY, LAYER_PEAK, SHARE_OF_SHORT, SHARE_AT_BEST];
    let published = published.map(|it| Cell::published(it, cited("figure 6, §1, §4.2")));
    table = table.row([Cell::from("MPI-FM 2.0 on Fast Messages")].into_iter().chain(published));
    lines = lines.level("MPI-FM at best: 90 % (1998)", SHARE_AT_BEST);
    let title =
        titles::at("The paper's figure 6: bandwidth as a share of that below", &lines, LONGEST);
    let figure = Figure::new("shares", title, lines).sentence(match &said[..] {
        [] => String::new(),
        said => format!("Of the bandwidth below it, the layer gets {}.", said.join("; ")),
    });
    let mut section = Section::new("Figure 6: a layer on streams").paragraph(
        "Tagged matching that was written for this, in the place of MPI: it sends a header of 24 \
         bytes as a piece before each message, and its handler receives the header, finds the \
         receive that was posted for the tag, and receives the rest straight into that buffer.",
    );
    section = section.table(table).figure(figure);
    notes.into_iter().fold(section, Section::note)
}

/// The bandwidth of the layer in per cent of that of streams, by the length of messages; without an
/// interval where the ratio's is not known.
fn shares(streams: &Curve, layer: &Curve) -> Curve {
    let share = |(bytes, rate): &(f64, Value)| {
        let below = at(streams, *bytes)?;
        let share = ratio(*rate, below).unwrap_or(Value::exact(rate.value / below.value));
        Some((*bytes, times(100.0, share)))
    };
    layer.iter().filter_map(share).collect()
}

/// The paper's claims, and whether they hold.
fn notes_on(device: &str, short: Option<Value>, best: Option<Value>) -> [Note; 2] {
    let of = |value: Option<Value>, least: f64| is_between(value, least, f64::INFINITY);
    [
        claim(
            of(short, SHARE_OF_SHORT),
            format!(
                "Even of messages of 16 bytes a layer gets over 70 % of the bandwidth (§1). Over \
                 {device}: {}.",
                told(short, 0, "%")
            ),
        ),
        claim(
            of(best, SHARE_AT_BEST),
            format!(
                "Streams deliver 90 % of their bandwidth to the layer above (§1, §4.2). Over {device}, \
                 of messages of 64 KiB: {}.",
                told(best, 0, "%")
            ),
        ),
    ]
}

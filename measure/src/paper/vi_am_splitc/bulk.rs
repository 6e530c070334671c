//! Figure 5 and table 5: bulk transfers of verbs, Active Messages and Split-C.

use std::hint::black_box;
use std::time::Instant;

use doorbell_logp::Estimate;
use doorbell_report::{Axis, Cell, Column, Figure, Lines, Note, Section, Series, Table, Value};

use super::colours::colour;
use super::published::{BULK_DIFFERENCE, KNEE, NATIVE, SHORT_STREAM, cited};
use super::{claim, difference, is_between, ratio, sum};
use crate::paper::bench::{Bench, Run};
use crate::paper::titles;

/// The lengths of messages, from 4 bytes to a mebibyte.
const SIZES: [&str; 7] = ["4", "32", "256", "1024", "4096", "65536", "1048576"];
/// The layers that are compared: a name, the test, and the fewest bytes that the test takes.
const LAYERS: [(&str, &str, u32); 3] =
    [("verbs", "send_bw", 1), ("Active Messages", "am_bulk_bw", 8), ("Split-C", "put_bw", 1)];
pub const TESTS: usize = SIZES.len() * LAYERS.len();

/// A layer's times from one message to the next, in microseconds, by the length in bytes.
type Times = Vec<(f64, Value)>;

pub fn section(bench: &mut Bench) -> Section {
    let mut section = Section::new("Figure 5 and table 5: bulk transfers").paragraph(
        "Verbs send; Active Messages place their payload in the receiver's segment and run a \
         handler there; Split-C puts, and hears of each put when the target has it.",
    );
    let (mut tables, mut notes) = (table(), Vec::new());
    for device in bench.devices() {
        let layers = LAYERS.map(|(_, test, least)| times(bench, test, &device, least));
        section = section.figure(figure(&device, &layers));
        let tables_here = tables.group(&*device, format!(" over {device}"));
        let (with, found) = compared(tables_here, &device, &layers);
        tables = with;
        notes.extend(found);
    }
    let [copy, receive, both] =
        BULK_DIFFERENCE.map(|value| Cell::published(value, cited("table 5")));
    let name = Cell::from("Myrinet, LANai 7: Active Messages or Split-C");
    tables = tables.group("Published", "").row([name, both, copy, receive]);
    section = section.table(tables);
    notes.into_iter().fold(section, Section::note)
}

fn times(bench: &mut Bench, test: &str, device: &str, least: u32) -> Times {
    let mut times = Vec::new();
    for size in SIZES {
        let bytes: u32 = size.parse().expect("sizes are numbers");
        let bytes = bytes.max(least);
        let size = bytes.to_string();
        let time = bench.interval(Run { test, device, arguments: &["--size", &size] });
        times.extend(time.map(|time| (f64::from(bytes), time)));
    }
    times
}

/// Gigabytes a second, by the time of a message; without an interval where that of the time reaches
/// zero, since the rate has no upper bound then.
fn rate((bytes, time): (f64, Value)) -> (f64, Value) {
    let kilobytes = bytes / 1e3;
    let uncertain = ratio(Value::exact(kilobytes), time);
    (bytes, uncertain.unwrap_or_else(|| Value::exact(kilobytes / time.value)))
}

/// A published rate in gigabytes a second.
fn in_gigabytes((bytes, megabytes): (f64, f64)) -> (f64, f64) {
    (bytes, megabytes / 1e3)
}

fn figure(device: &str, layers: &[Times; 3]) -> Figure {
    let mut lines = Lines::new(Axis::bytes("Length of a message"), Axis::log("Throughput", "GB/s"));
    for ((name, ..), times) in LAYERS.iter().zip(layers) {
        lines =
            lines.series(Series::new(*name, times.iter().copied().map(rate)).colour(colour(name)));
    }
    let short = Series::new("VI, LANai 7 (2001)", [in_gigabytes(SHORT_STREAM)]);
    lines = lines.series(short.published(cited("§7.4")));
    let (_, _, most) = NATIVE[1];
    lines = lines.level(format!("VI, LANai 7: {most} MB/s (2001, table 1)"), most / 1e3);
    let knee = Series::new("AMVIAv3 and Split-C (2001)", [in_gigabytes(KNEE)]);
    lines = lines.series(knee.published(cited("figure 5, §7.4")));
    let begin = format!("The paper's figure 5: bulk transfers over {device}");
    let title = titles::at(&begin, &lines, f64::from(1 << 20));
    Figure::new(format!("figure-5-{device}"), title, lines)
}

fn table() -> Table {
    Table::new("table-5", "The paper's table 5: what a message of 1 KiB takes longer than at verbs")
        .column(Column::text("Layer"))
        .column(Column::number("Difference", "µs"))
        .column(Column::number("Memory copy", "µs"))
        .column(Column::number("Short network receive", "µs"))
}

fn at(times: &Times, bytes: f64) -> Option<Value> {
    times.iter().find(|(length, _)| *length == bytes).map(|(_, time)| *time)
}

/// Adds a device's rows: the measured difference beside the two components that explain it in the
/// paper.
fn compared(mut table: Table, device: &str, layers: &[Times; 3]) -> (Table, Vec<Note>) {
    let [verbs, others @ ..] = layers;
    let (copy, receive) = (copied(1024), at(verbs, 32.0));
    let mut notes = Vec::new();
    for (times, (name, ..)) in others.iter().zip(&LAYERS[1..]) {
        let (Some(time), Some(floor)) = (at(times, 1024.0), at(verbs, 1024.0)) else { continue };
        let above = difference(time, floor);
        table = table.row([(*name).into(), above.into(), copy.into(), receive.into()]);
        let name = format!("{name} over {device}");
        let Some(explained) = receive.map(|receive| sum(copy, receive)) else { continue };
        notes.push(claim(
            is_between(ratio(above, explained), 0.5, 2.0),
            format!(
                "The difference is a copy and the reception of a short message (§7.4: 4 + 14.5 of \
                 18 µs; here judged as between half of their sum and twice their sum). {name}: {:.3} \
                 µs, beside {:.3} µs.",
                above.value, explained.value
            ),
        ));
    }
    (table, notes)
}

/// How many microseconds it takes to copy `bytes` bytes that are in the first cache.
fn copied(bytes: usize) -> Value {
    const TIMES: u32 = 1000;
    let (from, mut to) = (vec![7_u8; bytes], vec![0_u8; bytes]);
    let mut once = || {
        let begin = Instant::now();
        for _ in 0..TIMES {
            black_box(&mut to).copy_from_slice(black_box(&from));
        }
        begin.elapsed().as_secs_f64() * 1e6 / f64::from(TIMES)
    };
    let times = (0..31).map(|_| once()).collect();
    let Estimate { value, low, high } = Estimate::of(times).expect("there are 31");
    Value::within(value, low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The upper end of the rate's interval was below zero, and the band beside its line.
    #[test]
    fn the_rate_of_a_time_that_may_be_zero_has_no_interval() {
        let (_, found) = rate((4096.0, Value::within(2.0, -1.0, 5.0)));
        assert_eq!(found, Value::exact(2.048));
        let (_, found) = rate((4096.0, Value::within(2.0, 1.0, 4.0)));
        let (low, high) = found.interval.expect("the time is above zero");
        assert!((low - 1.024).abs() < 1e-9 && (high - 4.096).abs() < 1e-9, "{found:?}");
    }
}

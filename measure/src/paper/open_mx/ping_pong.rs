//! Figures 9 and 12: ping-pongs by size, and by MTU.

use doorbell_report::{Axis, Cell, Column, Figure, Lines, Note, Section, Series, Table, Value};
use serde_json::json;

use super::devices::{TCP, colour, name, rows_of_each};
use super::published::{LATENCY, LATENCY_TCP, WIRE, cited};
use crate::judging::{claim, is_below, is_between, ratio};
use crate::paper::bench::Bench;
use crate::paper::length::Of;
use crate::paper::rows::Rows;
use crate::paper::titles;

/// The MTUs of the figures.
const MTUS: [&str; 2] = ["9000", "1500"];
pub const TESTS: usize = MTUS.len();
/// For how long a run measures.
const SECONDS: Of<f64> = Of { full: 1.2, quick: 0.3, brief: 0.03 };
/// The length of large messages, in bytes.
const LARGE: u64 = 4 << 20;

pub fn section(bench: &mut Bench) -> Section {
    let mut section = Section::new("Figures 9 and 12: ping-pongs").paragraph(
        "A message from one member of a group to the other and one back, as the Intel MPI \
         Benchmarks have it, over tagged messages and, by the same program, over TCP sockets. Both \
         poll. The cable passes frames for segmentation whole, to TCP and to packet-v2; packet \
         sends each packet in a frame of its own, as Open-MX does.",
    );
    let [jumbo, small] =
        MTUS.map(|mtu| rows_of_each(bench, "group_pingpong", &["--mtu", mtu], SECONDS));
    section = section.table(table(&jumbo)).figure(by_size(&jumbo)).figure(by_mtu(&jumbo, &small));
    let notes = notes_on_tcp(&jumbo).into_iter().chain(notes_on_mtu(&jumbo, &small));
    notes.fold(section, Section::note)
}

fn at(rows: &Rows, size: u64, field: &str) -> Option<Value> {
    rows.get(&[("size", json!(size))], field)
}

fn table(jumbo: &[(String, Rows)]) -> Table {
    let mut table = Table::new("figure-9-table", "Half a round trip, and the throughput of 4 MiB")
        .column(Column::text("Messages"))
        .column(Column::number("0 bytes", "µs"))
        .column(Column::number("16 bytes", "µs"))
        .column(Column::number("4 MiB", "MiB/s").decimals(0));
    for (device, rows) in jumbo {
        let cells = [at(rows, 0, "us"), at(rows, 16, "us"), at(rows, LARGE, "mib_per_s")];
        table = table.row([Cell::from(name(device))].into_iter().chain(cells.map(Cell::from)));
    }
    let published = |value| Cell::published(value, cited("§5.2"));
    table.row(["TCP, tuned 10G".into(), published(LATENCY_TCP)]).row([
        "Open-MX, tuned 10G".into(),
        published(LATENCY),
        Cell::Empty,
        published(WIRE),
    ])
}

fn lines() -> Lines {
    Lines::new(Axis::bytes("Length of a message"), Axis::log("Throughput", "MiB/s"))
        .level("10G wire: 1186 MiB/s (2011)", WIRE)
}

/// The throughput of messages that have bytes.
fn curve(rows: &Rows) -> Vec<(f64, Value)> {
    let all = rows.curve("size", "mib_per_s").into_iter();
    all.filter(|(size, _)| *size > 0.0).collect()
}

fn by_size(jumbo: &[(String, Rows)]) -> Figure {
    let lines = jumbo.iter().fold(lines(), |lines, (device, rows)| {
        let name = name(device);
        let colour = colour(&name);
        lines.series(Series::new(name, curve(rows)).colour(colour))
    });
    let begin = "The paper's figure 9: throughput of ping-pongs, MTU 9000";
    Figure::new("figure-9", titles::at(begin, &lines, LARGE as f64), lines)
        .sentence("The paper's figure has no numbers in its text but for the latencies.")
}

fn by_mtu(jumbo: &[(String, Rows)], small: &[(String, Rows)]) -> Figure {
    let mut lines = lines();
    for (pattern, (mtu, all)) in MTUS.iter().zip([jumbo, small]).enumerate() {
        for (device, rows) in all {
            let name = name(device);
            let series = Series::new(format!("{name}, MTU {mtu}"), curve(rows));
            lines = lines.series(series.colour(colour(&name)).pattern(pattern));
        }
    }
    let begin = "The paper's figure 12: throughput of ping-pongs by MTU";
    Figure::new("figure-12", titles::at(begin, &lines, LARGE as f64), lines)
        .sentence("InfiniBand's packets have up to 4096 bytes, and up to 1024 at an MTU of 1500.")
}

fn notes_on_tcp(jumbo: &[(String, Rows)]) -> Vec<Note> {
    let mut notes = Vec::new();
    let Some((_, tcp)) = jumbo.iter().find(|(device, _)| device == TCP) else { return notes };
    for (device, rows) in jumbo.iter().filter(|(device, _)| device != TCP) {
        if let (Some(ours), Some(theirs)) = (at(rows, 0, "us"), at(tcp, 0, "us")) {
            notes.push(claim(
                is_below(ours, theirs),
                format!(
                    "Bypassing TCP/IP reduces the latency, from {LATENCY_TCP} to {LATENCY} µs on the \
                     tuned 10G network (§5.2). Over {device}: from {:.2} to {:.2} µs.",
                    theirs.value, ours.value
                ),
            ));
        }
        let rates = (at(rows, LARGE, "mib_per_s"), at(tcp, LARGE, "mib_per_s"));
        if let (Some(ours), Some(theirs)) = rates {
            notes.push(claim(
                is_below(theirs, ours),
                format!(
                    "Large messages are faster than over TCP, by up to 50 % on the tuned 10G network \
                     (§5.4). Over {device}, 4 MiB: {:.0} beside {:.0} MiB/s, {:+.0} %.",
                    ours.value,
                    theirs.value,
                    100.0 * (ours.value / theirs.value - 1.0)
                ),
            ));
            notes.push(claim(
                is_between(ours, WIRE, f64::INFINITY),
                format!(
                    "Large messages fill a 10G wire, {WIRE:.0} MiB/s (§5.2). Over {device}, whose \
                     cable has no rate of its own: {:.0} MiB/s.",
                    ours.value
                ),
            ));
        }
    }
    notes
}

fn notes_on_mtu(jumbo: &[(String, Rows)], small: &[(String, Rows)]) -> Vec<Note> {
    let mut notes = Vec::new();
    for ((device, jumbo), (_, small)) in jumbo.iter().zip(small) {
        let rates = (at(jumbo, LARGE, "mib_per_s"), at(small, LARGE, "mib_per_s"));
        let (Some(jumbo), Some(small)) = rates else { continue };
        let times = ratio(jumbo, small);
        let found = format!(
            "{:.0} and {:.0} MiB/s, {:.2} times",
            small.value,
            jumbo.value,
            jumbo.value / small.value
        );
        notes.push(match device.as_str() {
            TCP => claim(
                is_between(times, 0.8, 1.25),
                format!(
                    "The MTU makes no large difference to TCP, whose segments the adapter makes \
                     (§5.4; here judged as within 25 %). At 1500 and 9000 bytes: {found}."
                ),
            ),
            device => claim(
                is_between(times, 1.5, f64::INFINITY),
                format!(
                    "An MTU of 9000 bytes makes large messages twice as fast as one of 1500 (§5.4; \
                     here judged as half as fast again or more). Over {device}: {found}."
                ),
            ),
        });
    }
    notes
}

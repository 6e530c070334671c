//! Table 1: collectives beside the same algorithms over TCP.

use doorbell_report::{Cell, Column, Note, Section, Table, Value};
use serde_json::{Value as Json, json};

use super::devices::{TCP, rows_of_each};
use super::published::{BARRIER, COLLECTIVES, cited};
use crate::judging::{claim, difference, is_below, is_between, ratio, times};
use crate::paper::bench::Bench;
use crate::paper::length::Of;
use crate::paper::rows::Rows;

pub const TESTS: usize = 1;
/// For how long a run measures.
const SECONDS: Of<f64> = Of { full: 2.5, quick: 0.8, brief: 0.08 };
/// The sizes of the table.
const SIZES: [(u64, &str); 4] =
    [(16, "16 bytes"), (4 << 10, "4 KiB"), (64 << 10, "64 KiB"), (4 << 20, "4 MiB")];

pub fn section(bench: &mut Bench) -> Section {
    let mut section = Section::new("Table 1: collectives").paragraph(
        "The collectives of the Intel MPI Benchmarks among two members, over tagged messages and by \
         the same algorithms over TCP sockets. The speed-up is how much less time they take; \
         published are those of 16 processes on two hosts.",
    );
    let all = rows_of_each(bench, "collectives", &[], SECONDS);
    let Some((_, tcp)) = all.iter().find(|(device, _)| device == TCP) else { return section };
    for (device, rows) in all.iter().filter(|(device, _)| device != TCP) {
        section = section.table(table(device, rows, tcp));
        section = notes(device, rows, tcp).into_iter().fold(section, Section::note);
    }
    section
}

/// The times of a collective over a device and over TCP, in microseconds.
fn both(rows: &Rows, tcp: &Rows, operation: &str, size: u64) -> Option<(Value, Value)> {
    let row = row_of(operation, size);
    Some((rows.get(&row, "us")?, tcp.get(&row, "us")?))
}

/// The fields by which the row of a collective is known.
fn row_of(operation: &str, size: u64) -> [(&'static str, Json); 2] {
    [("operation", json!(operation)), ("size", json!(size))]
}

/// By how many per cent the first time is shorter than the second, as the paper counts; `None` if
/// an interval reaches zero.
fn speed_up((ours, theirs): (Value, Value)) -> Option<Value> {
    Some(difference(times(100.0, ratio(theirs, ours)?), Value::exact(100.0)))
}

fn table(device: &str, rows: &Rows, tcp: &Rows) -> Table {
    let title = format!("The paper's table 1: speed-up over TCP, over {device}");
    let mut table = Table::new(format!("table-1-{device}"), title)
        .column(Column::text("Operation and size"))
        .column(Column::number("TCP", "µs"))
        .column(Column::number("Messages", "µs"))
        .column(Column::number("Speed-up", "%").decimals(0))
        .column(Column::number("Published", "%"));
    for (operation, published) in COLLECTIVES {
        for ((size, text), published) in SIZES.into_iter().zip(published) {
            let found = both(rows, tcp, operation, size);
            table = table.row(row(format!("{operation}, {text}"), found, published));
        }
    }
    table.row(row("Barrier".to_owned(), both(rows, tcp, "Barrier", 0), BARRIER))
}

fn row(name: String, found: Option<(Value, Value)>, published: f64) -> [Cell; 5] {
    [
        name.into(),
        found.map(|(_, theirs)| theirs).into(),
        found.map(|(ours, _)| ours).into(),
        found.and_then(speed_up).into(),
        Cell::published(published, cited("table 1")),
    ]
}

fn notes(device: &str, rows: &Rows, tcp: &Rows) -> Vec<Note> {
    let mut notes = Vec::new();
    if let Some((ours, theirs)) = means(rows, tcp, SIZES[0].0) {
        notes.push(claim(
            is_between(ratio(theirs, ours), 1.5, f64::INFINITY),
            format!(
                "The lower latency improves operations with small messages by almost a factor of two \
                 (§5.2; here judged as half as fast again or more). Over {device}, 16 bytes: {:.2} \
                 times as fast on the mean.",
                theirs.value / ours.value
            ),
        ));
    }
    let large = SIZES[3].0;
    if let Some((ours, theirs)) = means(rows, tcp, large) {
        let all = COLLECTIVES.iter().filter_map(|(name, _)| both(rows, tcp, name, large));
        let faster = all.filter(|(ours, theirs)| is_below(*ours, *theirs) == Some(true)).count();
        notes.push(claim(
            is_below(ours, theirs),
            format!(
                "Most operations with large messages are improved, by about 50 %, and broadcasts and \
                 reductions are not (§5.2; here judged by the mean). Over {device}, 4 MiB: {:.2} \
                 times as fast on the mean, and certainly faster in {faster} of {}.",
                theirs.value / ours.value,
                COLLECTIVES.len()
            ),
        ));
    }
    notes
}

/// The geometric means of the times of all collectives over a device and over TCP.
fn means(rows: &Rows, tcp: &Rows, size: u64) -> Option<(Value, Value)> {
    let all = COLLECTIVES.map(|(name, _)| row_of(name, size));
    let all: Vec<_> = all.iter().map(|row| &row[..]).collect();
    Some((rows.geometric_mean(&all, "us")?, tcp.geometric_mean(&all, "us")?))
}

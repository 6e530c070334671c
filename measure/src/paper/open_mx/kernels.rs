//! Table 3: kernels of the NAS Parallel Benchmarks.

use doorbell_report::{Cell, Column, Note, Section, Table, Value};
use serde_json::json;

use super::devices::{TCP, name, rows_of_each};
use super::published::{KERNELS, cited};
use crate::judging::{claim, is_below, is_between, ratio};
use crate::paper::bench::Bench;
use crate::paper::length::Of;
use crate::paper::rows::Rows;

pub const TESTS: usize = 1;
/// The runs take the time that they need.
const SECONDS: Of<f64> = Of { full: 1.0, quick: 1.0, brief: 1.0 };
/// The classes that are run here.
const CLASSES: [&str; 2] = ["S", "W"];

pub fn section(bench: &mut Bench) -> Section {
    let section = Section::new("Table 3: kernels of the NAS Parallel Benchmarks").paragraph(
        "Integer sort (IS), which communicates much, and random numbers (EP), which do not, in two \
         processes and in the classes S and W; the paper has class C and 16 processes. Each result \
         is verified as the benchmarks have it.",
    );
    let all = rows_of_each(bench, "nas", &[], SECONDS);
    let mut table = Table::new("table-3", "The paper's table 3: execution times in seconds");
    table = table.column(Column::text("Kernel and class"));
    for (device, _) in &all {
        table = table.column(Column::number(name(device), "s").decimals(4));
    }
    for (kernel, ..) in KERNELS {
        for class in CLASSES {
            let times = all.iter().map(|(_, rows)| Cell::from(time(rows, kernel, class)));
            let name = Cell::from(format!("{kernel}.{class}.2"));
            table = table.row([name].into_iter().chain(times));
        }
    }
    for (kernel, tcp, open_mx) in KERNELS {
        let published = [tcp, open_mx].map(|value| Cell::published(value, cited("table 3")));
        let name = Cell::from(format!("{kernel}.C.16: TCP, Open-MX"));
        table = table.row([name].into_iter().chain(published));
    }
    notes(&all).into_iter().fold(section.table(table), Section::note)
}

fn time(rows: &Rows, kernel: &str, class: &str) -> Option<Value> {
    rows.get(&[("kernel", json!(kernel)), ("class", json!(class))], "seconds")
}

fn notes(all: &[(String, Rows)]) -> Vec<Note> {
    let mut notes = Vec::new();
    let Some((_, tcp)) = all.iter().find(|(device, _)| device == TCP) else { return notes };
    for (device, rows) in all.iter().filter(|(device, _)| device != TCP) {
        let times = |kernel| Some((time(tcp, kernel, "W")?, time(rows, kernel, "W")?));
        if let Some((theirs, ours)) = times("is") {
            notes.push(claim(
                is_below(ours, theirs),
                format!(
                    "Integer sort, which communicates most, is faster than over TCP: 5.62 beside \
                     5.84 s (§5.6). Over {device}, class W: {:.2} times as fast.",
                    theirs.value / ours.value
                ),
            ));
        }
        if let Some((theirs, ours)) = times("ep") {
            notes.push(claim(
                is_between(ratio(theirs, ours), 0.9, 1.1),
                format!(
                    "EP, which uses almost no communication, is almost unchanged: 30.66 beside 30.40 \
                     s (§5.6; here judged as within 10 %). Over {device}, class W: {:.2} times as \
                     fast.",
                    theirs.value / ours.value
                ),
            ));
        }
    }
    notes
}

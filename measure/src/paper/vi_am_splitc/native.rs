//! Table 1: what the interface by itself does.

use doorbell_report::{Cell, Column, Note, Section, Table};

use super::published::{NATIVE, cited};
use crate::paper::bench::{Bench, Run};

pub const TESTS: usize = 2;

/// Half a round trip of a short message, and the throughput of long ones.
pub fn section(bench: &mut Bench) -> Section {
    let mut table = Table::new("table-1", "Sends and receives of the NIC alone")
        .column(Column::text("Interface"))
        .column(Column::number("RTT/2", "µs"))
        .column(Column::number("Throughput", "MB/s").decimals(0));
    let mut here = Vec::new();
    for device in bench.devices() {
        let run = |test, arguments| Run { test, device: &device, arguments };
        let half = bench.latency(run("send_lat", &[]));
        let rate = bench.rate(run("send_bw", &["--size", "65536"]));
        let name = format!("Doorbell over {device}");
        here.extend(half.map(|half| format!("{name} {:.3} µs", half.value)));
        table = table.row([name.into(), half.into(), rate.into()]);
    }
    for (name, half, rate) in NATIVE {
        let of = |value| Cell::published(value, cited("table 1"));
        table = table.row([name.into(), of(half), of(rate)]);
    }
    let mut section = Section::new("Table 1: the native interface").paragraph(
        "The floor under everything else: a message of 16 bytes from program to program by send \
         and receive, and a stream of messages of 64 KiB. ServerNet II's numbers are based on \
         simulations.",
    );
    section = section.table(table);
    if !here.is_empty() {
        let (interface, best, _) = NATIVE[3];
        section = section.note(Note::undecided(format!(
            "An interface emulated in software is slower than one in hardware (§3.3). The hardware \
             to compare with would be today's, which is not here: the fastest of the paper's, \
             {interface}, takes {best} µs, and the software here {}.",
            here.join(", ")
        )));
    }
    section
}

//! Table 1: what the interface by itself does.

use doorbell_report::{Cell, Column, Section, Table, Value};

use super::published::{NATIVE, cited};
use crate::paper::bench::{Bench, Run};

pub const TESTS: usize = 2;

/// Half a round trip of a short message, and the throughput of long ones.
pub fn section(bench: &mut Bench) -> Section {
    let mut table = Table::new("table-1", "Sends and receives of the NIC alone")
        .column(Column::text("Interface"))
        .column(Column::number("RTT/2", "µs"))
        .column(Column::number("Throughput", "MB/s").decimals(0));
    let mut fastest: Option<(String, Value)> = None;
    for device in bench.devices() {
        let run = |test, arguments| Run { test, device: &device, arguments };
        let half = bench.latency(run("send_lat", &[]));
        let rate = bench.rate(run("send_bw", &["--size", "65536"]));
        let name = format!("Doorbell over {device}");
        if let Some(half) = half
            && fastest.as_ref().is_none_or(|(_, least)| half.value < least.value)
        {
            fastest = Some((name.clone(), half));
        }
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
    if let Some((name, half)) = fastest {
        let (interface, best, _) = NATIVE[3];
        section = section.note(super::claim(
            half.value > best,
            format!(
                "An interface emulated in software is slower than native hardware (§3.3). {name} \
                 takes {:.3} µs beside {best} µs of {interface}, the fastest of the hardware then; \
                 today's hardware is not here to compare with.",
                half.value
            ),
        ));
    }
    section
}

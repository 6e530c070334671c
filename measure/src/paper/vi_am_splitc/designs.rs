//! The designs that the paper compares: AMVIA's first and third version, and credits of messages
//! against credits of the NIC (§5.2, §8.1, §8.2).

use doorbell_report::{Cell, Column, Note, Section, Table, Value};

use super::{claim, is_below};
use crate::paper::bench::{Bench, Run};

/// A design of Active Messages: its name, and the arguments that choose it.
const DESIGNS: [(&str, &[&str]); 4] = [
    ("Doorbell: short messages share sends", &[]),
    ("v3: a send for each message", &["--policy", "apart"]),
    ("v1: a connection for each size", &["--policy", "per-size"]),
    ("Credits of the NIC", &["--policy", "apart", "--nic-credits", "17"]),
];
pub const TESTS: usize = 3 * DESIGNS.len();

/// The measurements of one design on one device.
struct Figures {
    half_round_trip: Option<Value>,
    gap: Option<Value>,
    bulk: Option<Value>,
}

impl Figures {
    fn of(bench: &mut Bench, device: &str, chosen: &[&str]) -> Self {
        let bulk = [chosen, &["--size", "65536"]].concat();
        let run = |test, arguments| Run { test, device, arguments };
        Self {
            half_round_trip: bench.latency(run("am_lat", chosen)),
            gap: bench.interval(run("am_bw", chosen)),
            bulk: bench.rate(run("am_bulk_bw", &bulk)),
        }
    }
}

pub fn section(bench: &mut Bench) -> Section {
    let mut table = Table::new("designs", "Designs of Active Messages; eight credits")
        .column(Column::text("Design"))
        .column(Column::number("RTT/2", "µs"))
        .column(Column::number("Gap of short messages", "µs"))
        .column(Column::number("Bulk of 64 KiB", "MB/s").decimals(0));
    let mut notes = Vec::new();
    for device in bench.devices() {
        let all = DESIGNS.map(|(_, chosen)| Figures::of(bench, &device, chosen));
        table = table.group(&*device, format!(", over {device}"));
        for ((name, _), figures) in DESIGNS.iter().zip(&all) {
            let Figures { half_round_trip, gap, bulk } = figures;
            let name = Cell::from(*name);
            table = table.row([name, (*half_round_trip).into(), (*gap).into(), (*bulk).into()]);
        }
        notes.extend(notes_on(&device, &all));
    }
    let section = Section::new("Designs: v1, v3, and who counts credits").paragraph(
        "The paper's first version has a connection with credits of its own for each size of \
         message, and no RDMA writes; the third has one connection for all. With credits of the \
         NIC, Active Messages count nothing: a peer has 17 receives, and the NIC holds a sender up \
         whose message finds none (receiver not ready).",
    );
    notes.into_iter().fold(section.table(table), Section::note)
}

fn notes_on(device: &str, all: &[Figures; 4]) -> Vec<Note> {
    let [_, third, first, nic] = all;
    let mut notes = Vec::new();
    if let (Some(third), Some(first)) = (third.gap, first.gap) {
        notes.push(claim(
            is_below(third, first),
            format!(
                "A simple, unified scheme of credits is better for short messages than one for each \
                 size (§8.1). Gap over {device}: v3 {:.3}, v1 {:.3} µs.",
                third.value, first.value
            ),
        ));
    }
    if let (Some(credits), Some(nic)) = (third.half_round_trip, nic.half_round_trip) {
        notes.push(claim(
            is_below(nic, credits),
            format!(
                "Flow control of the NIC makes up for that of the software, if its cost does not \
                 harm latency or gap (§8.2). Half a round trip over {device}: {:.3} µs with the \
                 NIC's credits, {:.3} µs with those of Active Messages.",
                nic.value, credits.value
            ),
        ));
    }
    notes
}

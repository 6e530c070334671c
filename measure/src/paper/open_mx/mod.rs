//! "High-Performance Message Passing over generic Ethernet Hardware with Open-MX", 2011: its
//! figures 9, 11, 12 and 14 and its tables 1 and 3, each beside TCP.

mod blocks;
mod collectives;
mod devices;
mod kernels;
mod ping_pong;
mod published;
mod receiving;

use doorbell_report::{Note, Report, Section};

use super::bench::Bench;
use super::head::Head;
use super::sections;
use crate::machine::Machine;

/// How many tests all sections run on a device, for the progress bar.
const TESTS: usize =
    ping_pong::TESTS + collectives::TESTS + receiving::TESTS + blocks::TESTS + kernels::TESTS;

/// The head of the report: half a round trip of messages without bytes, by device.
pub const HEAD: Head = Head {
    blocks: &["figure-9-table"],
    columns: &["0 bytes"],
    at: 0.0,
    title: "Half a round trip of 0 bytes",
    unit: "µs",
    what: "One way takes",
    colour: devices::colour,
};

/// Measures everything, and makes the report of it.
pub fn report(bench: &mut Bench, machine: &Machine) -> Report {
    bench.expect(TESTS);
    let mut report = Report::new("Tagged messages beside TCP");
    for measure in [
        ping_pong::section,
        collectives::section,
        receiving::section,
        blocks::section,
        kernels::section,
    ] {
        report = sections::measure(report, bench, |bench| vec![measure(bench)]);
    }
    let here = Section::new("This machine").facts(machine.facts());
    report.section(beyond()).section(here)
}

/// The section on what of the paper this machine can't show.
fn beyond() -> Section {
    Section::new("What can't be measured here")
        .note(Note::missing(
            "The paper has two hosts and a wire between them. Here two processes on two cores have \
             a virtual cable, which has no rate of its own and no interrupts: all figures are of \
             the processors.",
        ))
        .note(Note::missing(
            "Table 1 and table 3 have 16 processes on two nodes. Here a group has two members, one \
             on each core: with more, they would wait for each other's processors.",
        ))
        .note(Note::missing(
            "Figures 10 and 13 and table 2 are of Myrinet's own adapter, and of a copy engine in the \
             chipset (I/OAT), which this machine does not have. Processors copy faster today: the \
             paper says so of its own successors (§5.3).",
        ))
}

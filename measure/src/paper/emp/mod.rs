//! "EMP: Zero-copy OS-bypass NIC-driven Gigabit Ethernet Message Passing", 2001: its figures 5 and
//! 6, its table 2, and frames that arrive out of order.

mod calls;
mod carriers;
mod out_of_order;
mod published;
mod share;
mod simulated;
mod sizes;

use doorbell_report::{Note, Report, Section};

use super::exchange::Exchanges;
use super::head::Head;
use super::sections;
use crate::machine::Machine;

/// The head of the report: half a round trip of four bytes, by carrier.
pub const HEAD: Head = Head {
    blocks: &["figure-5-latency-"],
    columns: &[],
    at: 4.0,
    title: "Half a round trip of 4 bytes",
    unit: "µs",
    what: "One way takes",
    colour: |name| {
        carriers::CARRIERS.iter().position(|(known, _)| *known == name).unwrap_or_default()
    },
};

/// Measures everything, and makes the report of it.
pub fn report(exchanges: &mut Exchanges, devices: &[String], machine: &Machine) -> Report {
    exchanges.expect(devices.len() * (sizes::RUNS + calls::RUNS + share::RUNS));
    let report = Report::new("EMP: messages as frames, acknowledged by collections");
    let measures = [sizes::section, calls::section, share::section];
    let report = exchanges.sections(report, devices, measures);
    let report = sections::simulate(report, exchanges, out_of_order::section);
    let here = Section::new("This machine").facts(machine.facts());
    report.section(beyond(machine)).section(here)
}

/// The section on what of the paper this machine can't show.
fn beyond(machine: &Machine) -> Section {
    let section = Section::new("What can't be measured here").note(Note::missing(
        "GM over Myrinet stands in the tables as published: there is no such network here.",
    ));
    if machine.processors() >= 4 {
        return section;
    }
    section.note(Note::missing(format!(
        "The paper's adapters have processors of their own. A thread that does all of the protocol's \
         work stands in for them. With the two programs that takes three processors or four, and \
         this process may use {}: so the thread shares the processor of the other program. It can't \
         spin there, and each message waits until the kernel has woken it. What it takes off the \
         program's processor can be seen; how fast it could be can't.",
        machine.processors()
    )))
}

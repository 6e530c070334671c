//! "Experience in Offloading Protocol Processing to a Programmable NIC", 2002: its figures 7, 8, 10
//! and 11, and its table 2.

mod arguments;
mod available;
mod early;
mod published;
mod simulated;
mod steps;

use doorbell_report::{Note, Report, Section};

use super::exchange::Exchanges;
use super::head::Head;
use crate::machine::Machine;

/// The head of the report: the bandwidth of long messages, by step.
pub const HEAD: Head = Head {
    blocks: &["figure-7-longest-"],
    columns: &["NIC with a thread", "NIC run by the program", "Published"],
    at: 0.0,
    title: "Bandwidth of 256 KiB",
    unit: "MB/s",
    what: "Long messages move at",
    colour: |name| {
        arguments::STEPS.iter().position(|(known, _)| *known == name).unwrap_or_default()
    },
};

/// Measures everything, and makes the report of it.
pub fn report(exchanges: &mut Exchanges, devices: &[String], machine: &Machine) -> Report {
    exchanges.expect(devices.len() * (steps::RUNS + early::RUNS + available::RUNS));
    let report = Report::new("RMPP: request to send, clear to send, and what NICs take over");
    let measures = [steps::section, early::section, available::section];
    let report = exchanges.sections(report, devices, measures);
    let here = Section::new("This machine").facts(machine.facts());
    report.section(beyond(machine)).section(here)
}

/// The section on what of the paper this machine can't show.
fn beyond(machine: &Machine) -> Section {
    let section = Section::new("What can't be measured here").note(Note::missing(
        "Interrupts: frames are polled for here, and the paper's host had one for each frame or two.",
    ));
    if machine.processors() >= 4 {
        return section;
    }
    section.note(Note::missing(format!(
        "The paper's adapters have processors of their own. A thread that runs the NIC stands in for \
         them. With the two programs that takes three processors or four, and this process may use \
         {}: so the thread shares the processor of the other program, and both wait for each other. \
         Steps 1 and 2 are slower for it than they would be.",
        machine.processors()
    )))
}

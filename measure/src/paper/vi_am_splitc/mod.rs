//! "An Analysis of VI Architecture Primitives in Support of Parallel and Distributed
//! Communication", 2001: its tables 1 to 5 and figures 2 to 5, and the designs that it compares.

mod breakdown;
mod bulk;
mod colours;
mod designs;
mod native;
mod parameters;
mod published;
mod single;

use doorbell_report::{Note, Report, Section};

use super::bench::Bench;
use super::head::Head;
use super::sections;
use crate::judging::{claim, difference, is_below, is_between, ratio, sum, times};
use crate::logp::devices;
use crate::machine::Machine;
use colours::colour;

/// How many tests all sections run on a device, for the progress bar.
const TESTS: usize = native::TESTS
    + parameters::TESTS
    + breakdown::TESTS
    + single::TESTS
    + bulk::TESTS
    + designs::TESTS;

/// The head of the report: half a round trip by layer and device.
pub const HEAD: Head = Head {
    blocks: &["table-2"],
    columns: &["RTT/2"],
    at: 0.0,
    title: "Half a round trip",
    unit: "µs",
    what: "One way takes",
    colour,
};

/// Measures everything, and makes the report of it.
pub fn report(bench: &mut Bench, machine: &Machine) -> Report {
    bench.expect(TESTS);
    let mut report = Report::new("VI, Active Messages and Split-C");
    for measure in [
        native::section,
        parameters::section,
        breakdown::section,
        single::section,
        bulk::section,
        designs::section,
    ] {
        report = sections::measure(report, bench, |bench| vec![measure(bench)]);
    }
    let facts = machine.facts().into_iter().chain(devices::facts(&bench.lines()));
    let here = Section::new("This machine").facts(facts.collect::<Vec<_>>());
    report.section(beyond(machine)).section(here)
}

/// The section on figures of the paper that this machine can't show.
fn beyond(machine: &Machine) -> Section {
    let mut section = Section::new("What can't be measured here").note(Note::missing(
        "The paper's adapters do the protocol's work on a processor of their own (LANai 4 and 7). \
         Here the processor that sends does that work, too, and o_s contains it.",
    ));
    if machine.processors() < 4 {
        section = section.note(Note::missing(format!(
            "A NIC run by a thread of its own (--dedicated) stands in for such an adapter. With the \
             two programs that takes four processors, and this process may use {}.",
            machine.processors()
        )));
    }
    section
}

//! "An Analysis of VI Architecture Primitives in Support of Parallel and Distributed Communication",
//! 2001: its tables 1 to 5 and figures 2 to 5, and the designs that it compares.

mod breakdown;
mod bulk;
mod designs;
mod native;
mod parameters;
mod published;
mod single;

use doorbell_report::{Note, Report, Section, Value};

use super::bench::Bench;
use crate::machine::Machine;

/// How many tests all sections run on a device, for the progress bar.
const TESTS: usize = native::TESTS
    + parameters::TESTS
    + breakdown::TESTS
    + single::TESTS
    + bulk::TESTS
    + designs::TESTS;

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
        let mut section = measure(bench);
        for note in bench.missing() {
            section = section.note(note);
        }
        report = report.section(section);
    }
    report.section(beyond(machine)).section(Section::new("This machine").facts(machine.facts()))
}

/// What the paper has and this machine can't show.
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

/// A claim of the paper, and whether it holds here.
fn claim(holds: bool, text: String) -> Note {
    if holds { Note::holds(text) } else { Note::does_not_hold(text) }
}

/// Whether one value is below another by more than chance: their intervals have nothing in common.
fn is_below(one: Value, other: Value) -> bool {
    let (_, high) = ends(one);
    let (low, _) = ends(other);
    high < low
}

fn ends(value: Value) -> (f64, f64) {
    value.interval.unwrap_or((value.value, value.value))
}

/// The difference of two values, as uncertain as both together.
fn difference(one: Value, other: Value) -> Value {
    let ((low, high), (from, to)) = (ends(one), ends(other));
    Value::within(one.value - other.value, low - to, high - from)
}

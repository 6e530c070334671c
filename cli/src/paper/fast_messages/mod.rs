//! "Efficient Layering for High Speed Communication: Fast Messages 2.x", 1998: its figures 5 and 6.

mod curves;
mod layering;
mod published;
mod streams;

use doorbell_report::{Note, Report, Section};

use super::bench::Bench;
use crate::machine::Machine;
use curves::{SIZES, measure};

/// How many tests all sections run on a device, for the progress bar.
const TESTS: usize = 2 * SIZES.len() + streams::TESTS + layering::TESTS;

/// Measures everything, and makes the report of it.
pub fn report(bench: &mut Bench, machine: &Machine) -> Report {
    bench.expect(TESTS);
    let both: Vec<_> = bench
        .devices()
        .into_iter()
        .map(|device| {
            let curves = ["stream_bw", "stream_tag_bw"].map(|test| measure(bench, test, &device));
            (device, curves)
        })
        .collect();
    let below: Vec<_> =
        both.iter().map(|(device, [streams, _])| (device.clone(), streams.clone())).collect();
    let mut sections = [streams::section(bench, &below), layering::section(bench, &both)];
    for note in bench.troubles() {
        let [_, last] = &mut sections;
        *last = last.clone().note(note);
    }
    let beyond = Section::new("What can't be measured here").note(Note::missing(
        "The paper's processors and Myrinet adapters. What is compared is how much of its floor a \
         layer gets, here and there.",
    ));
    let here = Section::new("This machine").facts(machine.facts());
    let report = Report::new("Fast Messages: streams, and a layer on them");
    sections.into_iter().fold(report, Report::section).section(beyond).section(here)
}

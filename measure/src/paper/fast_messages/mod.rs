//! "Efficient Layering for High Speed Communication: Fast Messages 2.x", 1998: its figures 5 and 6.

mod curves;
mod layering;
mod published;
mod streams;

use doorbell_report::{Note, Report, Section};

use super::bench::Bench;
use super::head::Head;
use super::sections;
use crate::machine::Machine;
use curves::{SIZES, measure};

/// How many tests all sections run on a device, for the progress bar.
const TESTS: usize = 2 * SIZES.len() + streams::TESTS + layering::TESTS;

/// The head of the report: the latency of streams and of the layer on them, by device.
pub const HEAD: Head = Head {
    blocks: &["figure-5", "figure-6"],
    columns: &["Latency, 16 B"],
    at: 0.0,
    title: "Latency of 16 bytes",
    unit: "µs",
    what: "One way takes",
    colour: |name| usize::from(!name.starts_with("Doorbell")),
};

/// Measures everything, and makes the report of it.
pub fn report(bench: &mut Bench, machine: &Machine) -> Report {
    bench.expect(TESTS);
    let report = Report::new("Fast Messages: streams, and a layer on them");
    let report = sections::measure(report, bench, |bench| {
        let both: Vec<_> = bench
            .devices()
            .into_iter()
            .map(|device| {
                let tests = ["stream_bw", "stream_tag_bw"];
                let curves = tests.map(|test| measure(bench, test, &device));
                (device, curves)
            })
            .collect();
        let below = both.iter().map(|(device, [streams, _])| (device.clone(), streams.clone()));
        let below: Vec<_> = below.collect();
        vec![streams::section(bench, &below), layering::section(bench, &both)]
    });
    let beyond = Section::new("What can't be measured here").note(Note::missing(
        "The paper's processors and Myrinet adapters. What is compared is how much of its floor a \
         layer gets, here and there.",
    ));
    let here = Section::new("This machine").facts(machine.facts());
    report.section(beyond).section(here)
}

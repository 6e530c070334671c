//! Figure 11: the processor's share of receiving a stream of large messages.

use doorbell_report::{Axis, Bar, Bars, Figure, Note, Section, Value};
use serde_json::json;

use super::devices::{TCP, name, rows_of_each};
use super::published::{RECEIVING, cited};
use crate::judging::{claim, is_between, sum, times};
use crate::paper::bench::Bench;
use crate::paper::length::Of;
use crate::paper::rows::Rows;

pub const TESTS: usize = 1;
/// For how long a run measures.
const SECONDS: Of<f64> = Of { full: 1.6, quick: 0.4, brief: 0.04 };
/// The sizes that are shown.
const SIZES: [(u64, &str); 3] = [(32 << 10, "32 KiB"), (1 << 20, "1 MiB"), (4 << 20, "4 MiB")];

pub fn section(bench: &mut Bench) -> Section {
    let section = Section::new("Figure 11: processor use of receiving").paragraph(
        "One member sends large messages one after the other, and the other receives them and sleeps \
         in between: how much of its core the receiver's process takes, in the program and in the \
         kernel for it. Over TCP, the receiver sleeps in the kernel. The kernel's own work for \
         arriving frames is done on the core of whoever sends them, and is not counted here.",
    );
    let all = rows_of_each(bench, "receive_cpu", &["--spin", "0"], SECONDS);
    let axis = Axis::linear("Share of the receiver's core", "%");
    let mut bars = Bars::stacked(axis, ["program", "kernel"]);
    for (device, rows) in &all {
        for (size, text) in SIZES {
            let shares = ["user_share", "system_share"].map(|field| share(rows, size, field));
            bars = bars.bar(Bar::new(text, shares).group(name(device)));
        }
    }
    for (way, small, large) in RECEIVING {
        for (text, percent) in [("32 kB", small), ("megabytes", large)] {
            let bar = Bar::new(text, [Some(Value::exact(0.0)), Some(Value::exact(percent))]);
            let bar = bar.group(format!("Open-MX, {way} (2011)"));
            bars = bars.bar(bar.published(cited("§5.3, program and kernel together")));
        }
    }
    let figure =
        Figure::new("figure-11", "The paper's figure 11: processor use of receiving", bars);
    let section = section.figure(figure.sentence(
        "The paper's numbers are of the library, the driver and the interrupt handler together.",
    ));
    notes(&all).into_iter().fold(section, Section::note)
}

/// A share in per cent.
fn share(rows: &Rows, size: u64, field: &str) -> Option<Value> {
    rows.get(&[("size", json!(size))], field).map(|found| times(100.0, found))
}

fn notes(all: &[(String, Rows)]) -> Vec<Note> {
    let mut notes = Vec::new();
    for (device, rows) in all.iter().filter(|(device, _)| device != TCP) {
        let large = SIZES[2].0;
        let shares = ["user_share", "system_share"].map(|field| share(rows, large, field));
        let [Some(user), Some(system)] = shares else { continue };
        let both = sum(user, system);
        notes.push(claim(
            is_between(both, 90.0, f64::INFINITY),
            format!(
                "Without a copy engine, receiving large messages takes a whole core, 95 % of it \
                 (§5.3; here judged as 90 % or more). Over {device}, 4 MiB: {:.0} %.",
                both.value
            ),
        ));
    }
    notes
}

//! Figure 2: times of short operations, of a single sender.

use doorbell_report::{Dot, Dots, Figure, Note, Section, Value};

use super::colours::colour;
use super::{claim, is_below, is_between, ratio, times as multiplied};
use crate::paper::bench::{Bench, Run};
use crate::paper::titles;

/// The operations of Split-C: how the paper calls each, the test, and whether it is a stream.
const OPERATIONS: [(&str, &str, bool); 5] = [
    ("read", "get_lat", false),
    ("write", "put_lat", false),
    ("get", "get_bw", true),
    ("put", "put_bw", true),
    ("store", "store_bw", true),
];
pub const TESTS: usize = OPERATIONS.len() + 2;

pub fn section(bench: &mut Bench) -> Section {
    let mut section = Section::new("Figure 2: short messages of a single sender").paragraph(
        "Accesses of 8 bytes by messages, as in the paper: reads and writes are awaited one by one; \
         gets, puts and stores follow each other, and the time is that from one to the next. Beside \
         them Active Messages: the whole round trip of a request and its reply, and the time from \
         one request of a stream to the next. The paper's figure has no numbers in its text.",
    );
    let mut dots = Dots::new("Time of an operation", "µs");
    let mut notes = Vec::new();
    for device in bench.devices() {
        let run =
            |test, arguments: &'static [&'static str]| Run { test, device: &device, arguments };
        let times = OPERATIONS.map(|(_, test, is_stream)| {
            let arguments = &["--carrier", "messages"];
            match is_stream {
                true => bench.interval(run(test, arguments)),
                false => bench.latency(run(test, arguments)),
            }
        });
        let round_trip = bench.latency(run("am_lat", &[])).map(|half| multiplied(2.0, half));
        let gap = bench.interval(run("am_bw", &[]));
        for ((name, ..), time) in OPERATIONS.iter().zip(times) {
            let dot = Dot::new(format!("Split-C {name}"), time).group(&*device);
            dots = dots.dot(dot.colour(colour("Split-C")));
        }
        for (name, time) in [("AM request and reply", round_trip), ("AM request in a stream", gap)]
        {
            let dot = Dot::new(name, time).group(&*device);
            dots = dots.dot(dot.colour(colour("Active Messages")));
        }
        notes.extend(notes_on(&device, times, round_trip));
    }
    let title = match titles::range(&dots) {
        Some(range) => format!("The paper's figure 2: a short operation takes {range}"),
        None => "The paper's figure 2: times of short operations".to_owned(),
    };
    let figure = Figure::new("figure-2", title, dots).sentence(
        "Of an operation that is awaited, the time until its answer has come; of a stream, the time \
         from one operation to the next.",
    );
    section = section.figure(figure);
    notes.into_iter().fold(section, Section::note)
}

fn notes_on(device: &str, times: [Option<Value>; 5], round_trip: Option<Value>) -> Vec<Note> {
    let [read, _, get, put, store] = times;
    let mut notes = Vec::new();
    if let (Some(read), Some(round_trip)) = (read, round_trip) {
        notes.push(claim(
            is_between(ratio(read, round_trip), 1.0 / 1.25, 1.25),
            format!(
                "A read takes about the round trip of an Active Message (§7.2; here judged as within \
                 25 %). Over {device}: {:.3} beside {:.3} µs.",
                read.value, round_trip.value
            ),
        ));
    }
    if let (Some(read), Some(get)) = (read, get) {
        notes.push(claim(
            is_below(get, read),
            format!(
                "A get that is not waited for takes the gap, less than a read (§7.2). Over {device}: \
                 {:.3} beside {:.3} µs.",
                get.value, read.value
            ),
        ));
    }
    if let (Some(put), Some(store)) = (put, store) {
        notes.push(claim(
            is_below(store, put),
            format!(
                "Stores, which are not acknowledged one by one, are substantially faster than puts \
                 (§7.2). Over {device}: {:.3} beside {:.3} µs.",
                store.value, put.value
            ),
        ));
    }
    notes
}

//! What tshark reads in frames, field by field.

use std::collections::BTreeSet;

use doorbell_kit::judges::Scratch;
use doorbell_kit::judges::tshark::{ABOUT, complaints, dissect};

use crate::judges::frames::Frame;
use crate::judges::reading::{Reading, readings};

/// Has tshark read `frames`, and compares everything that it reads with what was put in.
pub fn check(frames: &[Frame], scratch: &Scratch) {
    let capture = scratch.capture(frames.iter().map(|frame| &frame.bytes[..]));
    let expected: Vec<_> = frames.iter().map(readings).collect();
    let fields: BTreeSet<_> = expected.iter().flatten().map(|(field, _)| *field).collect();
    let columns: Vec<_> = ABOUT.into_iter().chain(fields).collect();
    let lines = dissect(&capture, &columns, scratch);
    assert_eq!(lines.len(), frames.len(), "tshark gives a line for each frame");
    let mut disagrees = Vec::new();
    for ((frame, expected), line) in frames.iter().zip(&expected).zip(&lines) {
        let shown: Vec<_> = columns.iter().copied().zip(line.split('\t')).collect();
        assert_eq!(shown.len(), columns.len(), "{line:?}");
        for complaint in judge(expected, &shown) {
            disagrees.push(format!("{complaint}\n    {:?}", frame.headers));
        }
    }
    let (count, disagrees) = (disagrees.len(), disagrees.join("\n"));
    assert!(disagrees.is_empty(), "tshark disagrees in {count} places:\n{disagrees}");
}

/// What is wrong with a frame in which `shown` was read.
fn judge(expected: &[Reading], shown: &[(&str, &str)]) -> Vec<String> {
    let mut wrong = complaints(shown);
    for &(field, text) in shown.iter().filter(|(column, _)| !ABOUT.contains(column)) {
        let wanted = expected.iter().find(|(name, _)| *name == field).map(|(_, value)| value);
        if !wanted.map_or(text.is_empty(), |value| value.is(text)) {
            let wanted = wanted.map_or("nothing".into(), |value| format!("{value:02x?}"));
            wrong.push(format!("{field} is {text:?}, where it should be {wanted}"));
        }
    }
    wrong
}

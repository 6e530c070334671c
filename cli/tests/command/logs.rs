//! `RUST_LOG`: spans and events of the library on standard error.

use serde_json::Value;

use super::{doorbell, said};

const TEST: &str = "perf am_lat --pair --device shm --iters 100 --json";

/// Runs a command with a value of `RUST_LOG`, or without. Returns what it says on standard error,
/// and checks that its standard output is JSON all the same.
fn logged(arguments: &str, asked: Option<&str>) -> String {
    let mut command = doorbell(arguments);
    match asked {
        Some(asked) => command.env("RUST_LOG", asked),
        None => command.env_remove("RUST_LOG"),
    };
    let output = command.output().expect("the command runs");
    assert!(output.status.success(), "{}", said(&output));
    serde_json::from_slice::<Value>(&output.stdout).expect("a line of JSON");
    said(&output)
}

#[test]
fn a_connect_is_seen_as_its_events_and_the_span_that_they_are_in() {
    let told = logged(TEST, Some("debug"));
    for (place, text) in [
        ("doorbell_verbs::nic::open:", "opened"),
        ("connect{", "doorbell_verbs::connect::connecting: connects"),
        ("connect{", "doorbell_verbs::connect::unconnected: close time.busy="),
        ("doorbell_verbs::control::connecting:", "connected qpn="),
        ("doorbell_am::endpoint::ending:", "a link is open peer="),
        ("doorbell_am::endpoint::ending:", "a link ended peer="),
        ("doorbell_verbs::progress::closing:", "closes address="),
    ] {
        let is_there = told.lines().any(|line| line.contains(place) && line.contains(text));
        assert!(is_there, "{place} {text}: {told}");
    }
    assert!(!told.contains('\u{1b}'), "{told}");
}

#[test]
fn what_is_shown_is_of_the_crates_that_were_asked_for_and_without_the_variable_nothing() {
    let told = logged(TEST, Some("doorbell_am=debug"));
    assert!(told.contains("DEBUG doorbell_am::endpoint::ending"), "{told}");
    assert!(!told.contains("doorbell_verbs"), "{told}");
    for asked in [None, Some(""), Some("warn")] {
        assert_eq!(logged(TEST, asked), "", "{asked:?}");
    }
}

#[test]
fn a_value_that_makes_no_sense_is_told_and_is_no_failure() {
    let told = logged(TEST, Some("doorbell_am=loud"));
    assert!(told.contains("doorbell: RUST_LOG is ignored: error parsing level filter"), "{told}");
}

/// Measurements of other commands are processes, of which only what they print was read.
#[test]
fn what_the_processes_of_a_measurement_say_is_passed_on() {
    let told =
        logged("logp --quick --device shm --layer verbs --json", Some("doorbell_verbs=debug"));
    assert!(told.contains("connected qpn="), "{told}");
}

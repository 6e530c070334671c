//! What spans measure. A test spends at least the time that it says, and relies on nothing else.

use std::time::{Duration, Instant};

use doorbell_am_costs::costs::{Cost, span, watch};

const SPELL: Duration = Duration::from_millis(2);
/// How much of a spell is found at least: the counter's rate is known to a thousandth or so.
const MOST: f64 = 0.98 * 2e6;

fn spend() {
    let begin = Instant::now();
    while begin.elapsed() < SPELL {}
}

/// Spends two spells on semantics, and one on the NIC between them.
fn program() {
    let _semantics = span(Cost::Semantics);
    spend();
    {
        let _base = span(Cost::Base);
        spend();
    }
    spend();
}

/// The nanoseconds of the program spent on a category, and on everything else.
fn watched(cost: Option<Cost>) -> (f64, f64) {
    let begin = Instant::now();
    let ((), spent) = watch(cost, program);
    (spent, begin.elapsed().as_nanos() as f64 - spent)
}

#[test]
fn a_span_within_another_is_no_part_of_the_outer_one() {
    let (inner, rest) = watched(Some(Cost::Base));
    assert!(inner >= MOST && rest >= 2.0 * MOST, "{inner} of base, {rest} of the rest");
    let (outer, rest) = watched(Some(Cost::Semantics));
    assert!(outer >= 2.0 * MOST && rest >= MOST, "{outer} of semantics, {rest} of the rest");
}

#[test]
fn a_category_without_spans_has_no_time_and_neither_has_none() {
    assert_eq!(watched(Some(Cost::FlowControl)).0, 0.0);
    assert_eq!(watched(None).0, 0.0);
}

#[test]
fn spans_of_one_category_within_each_other_are_one() {
    let begin = Instant::now();
    let ((), spent) = watch(Some(Cost::Base), || {
        let _outer = span(Cost::Base);
        program();
    });
    let rest = begin.elapsed().as_nanos() as f64 - spent;
    assert!(spent >= MOST && rest >= 2.0 * MOST, "{spent} of base, {rest} of the rest");
}

#[test]
fn spans_of_another_thread_are_not_counted() {
    let ((), spent) = watch(Some(Cost::Base), || {
        std::thread::spawn(program).join().expect("the program ends");
    });
    assert_eq!(spent, 0.0);
}

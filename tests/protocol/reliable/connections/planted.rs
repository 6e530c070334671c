//! A crowd must find these bugs of the connection manager, or it may be blind.

use std::panic::catch_unwind;

use doorbell_core::{Bug, plant};

use super::crowd::{BAD, Crowd, HASTY, QUIET};

const BUGS: [Bug; 7] = [
    Bug::SaysNothingAgain,
    Bug::RestsNoNames,
    Bug::TellsOfEachRtu,
    Bug::GrantsNoPatience,
    Bug::AnswersNoStranger,
    Bug::TakesRepetitionsForNew,
    Bug::RefusesInSilence,
];

#[test]
fn every_bug_planted_in_the_connection_manager_is_found() {
    let crowds = [Crowd { seed: 7, faults: BAD, ..QUIET }, Crowd { seed: 8, ..HASTY }];
    let survives = |bug: &Bug| {
        let _planted = plant(*bug);
        crowds.iter().all(|&crowd| catch_unwind(|| crowd.run()).is_ok())
    };
    let missed: Vec<Bug> = BUGS.into_iter().filter(survives).collect();
    assert!(missed.is_empty(), "crowds do not find {missed:?}");
}

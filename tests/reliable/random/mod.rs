//! Random programs on random fabrics, held against a model.
//!
//! Everything about a run follows from one number, its seed: the network and what goes wrong on
//! it, the queue pairs, the messages, and what programs do when. The model is a list of messages
//! for each direction of each connection. All requests must complete once and in order, with the
//! outcomes that the list calls for. Every read must bring what was there, or what may have been
//! written meanwhile; every atomic operation must find what those before it left. And every byte of
//! every node's memory must be as the messages that arrived leave it.
//!
//! | file | idea |
//! |---|---|
//! | `program`, `message` | what a run consists of, and how it is drawn |
//! | `spoil` | messages that must break their connection, and how they are drawn |
//! | `strategy` | programs as proptest draws them, and makes them smaller when they fail |
//! | `run` | a program run on a fabric |
//! | `model` | what must come of the messages of one direction |
//! | `memory` | registered memory, and beside it what its bytes must be |
//! | `coverage` | what has occurred |
//! | `failure` | a failing run told of |
//! | `planted` | bugs that all this must find |

mod coverage;
mod dice;
mod failure;
mod memory;
mod message;
mod model;
mod planted;
mod program;
mod run;
mod spoil;
mod strategy;

use std::cell::RefCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use coverage::Coverage;
use run::run;
use strategy::{Failed, check, program};

/// How many programs are run, unless `DOORBELL_SEQUENCES` says otherwise.
const SEQUENCES: u64 = 10_000;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text}, which is no number")))
}

/// Runs the programs of many seeds on all cores: what they covered, and the first that failed.
fn run_all(first: u64, count: u64) -> (Coverage, Option<(u64, Failed)>) {
    let next = AtomicU64::new(first);
    let found = Mutex::<(Coverage, Option<(u64, Failed)>)>::default();
    let work = || {
        let coverage = RefCell::new(Coverage::default());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first.saturating_add(count) {
                break;
            }
            let failed = check(seed, |report| coverage.borrow_mut().add(&report.coverage));
            if let Some(failed) = failed {
                // Those who are at it finish theirs, and nobody begins another.
                next.store(u64::MAX / 2, Ordering::Relaxed);
                let earliest = &mut found.lock().expect("nobody panicked").1;
                if earliest.as_ref().is_none_or(|(other, _)| seed < *other) {
                    *earliest = Some((seed, failed));
                }
            }
        }
        found.lock().expect("nobody panicked").0.add(&coverage.borrow());
    };
    let threads = thread::available_parallelism().map_or(1, |count| count.get());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    found.into_inner().expect("nobody panicked")
}

/// `DOORBELL_SEED` gives the first seed, and `DOORBELL_SEQUENCES` how many follow it.
#[test]
fn random_programs_agree_with_the_model() {
    let seed = number("DOORBELL_SEED");
    let count = number("DOORBELL_SEQUENCES").unwrap_or(if seed.is_some() { 1 } else { SEQUENCES });
    let began = Instant::now();
    let (coverage, failed) = run_all(seed.unwrap_or(0), count);
    if let Some((seed, failed)) = failed {
        panic!("{}", failure::tell(seed, &failed));
    }
    println!("{count} sequences in {:?}, in which there were\n{coverage}", began.elapsed());
    if count >= SEQUENCES {
        let gaps = coverage.gaps();
        assert!(gaps.is_empty(), "what the runs should cover, and do not: {gaps:#?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_gives_another() {
    let hash = |seed| run(&program(seed)).hash;
    let hashes: Vec<u64> = (0..200).map(hash).collect();
    assert_eq!(hashes, (0..200).map(hash).collect::<Vec<_>>());
    let mut different = hashes.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), hashes.len());
}

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
//! | `strategy`, `smaller` | programs as proptest draws them, and makes them smaller when they fail |
//! | `many` | the programs of many seeds |
//! | `run` | a program run on a fabric |
//! | `real` | programs run over real devices |
//! | `model` | what must come of the messages of one direction |
//! | `memory` | registered memory, and beside it what its bytes must be |
//! | `traps` | memory that is there to be named wrongly |
//! | `coverage`, `expected` | what has occurred, and what must |
//! | `failure` | a failing run told of |
//! | `services` | programs of the other services, and of receive queues that are shared |
//! | `planted` | bugs that all this must find |

pub mod coverage;
pub mod dice;
mod expected;
mod failure;
mod many;
mod memory;
mod message;
mod model;
#[cfg(feature = "planted-bugs")]
mod planted;
mod program;
mod queue;
mod real;
mod run;
mod services;
mod smaller;
mod spoil;
mod strategy;
mod traps;

use doorbell_kit::effort;
use many::{agree_with_the_model, are_told_apart_by_their_seeds};
use program::Program;

/// `DOORBELL_SEED` gives the first seed, and `DOORBELL_SEQUENCES` how many follow it: 4,000 if it
/// is not set, or 10,000 in a thorough run.
#[test]
fn random_programs_agree_with_the_model() {
    agree_with_the_model::<Program>(effort(4_000, 10_000), expected::RELIABLE);
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_gives_another() {
    are_told_apart_by_their_seeds::<Program>(200);
}

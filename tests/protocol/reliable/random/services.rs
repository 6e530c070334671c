//! Programs of every service: reliable and unreliable connections and datagrams, side by side, with
//! receive queues of their own and shared ones, and hosts that fall silent.
//!
//! The model is a list of messages for each end. All requests must complete once and in order. Of
//! what is sent without a promise, whatever arrives must be one of the messages, whole, from whom
//! it says, and with no copy that the network did not make; on an unreliable connection, in order.
//! If the network loses nothing and there is a receive for each message, then all must arrive. Each
//! receive is given out once; a shared queue says when it runs low, and a queue pair when it has
//! taken its last. Silent hosts are noticed, and others not taken for silent.
//!
//! Reads, atomic operations, and what breaks a reliable connection are left to the programs of
//! those.

mod draw;
mod message;
mod model;
mod program;
mod run;
mod smaller;
mod supply;

use doorbell_kit::effort;

use super::expected;
use super::many::{agree_with_the_model, are_told_apart_by_their_seeds};
pub use program::Program;

/// `DOORBELL_SEED` gives the first seed, and `DOORBELL_SEQUENCES` how many follow it: 2,000 if it
/// is not set, or 5,000 in a thorough run.
#[test]
fn programs_of_every_service_agree_with_the_model() {
    agree_with_the_model::<Program>(effort(2_000, 5_000), expected::SERVICES);
}

#[test]
fn programs_of_every_service_are_the_same_for_the_same_seed() {
    are_told_apart_by_their_seeds::<Program>(100);
}

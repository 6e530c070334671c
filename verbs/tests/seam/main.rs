//! Tests of verbs as programs use them: over every device, in both modes of progress, awaited or
//! polled.

mod adversary;
mod blocked;
mod causes;
mod clients;
mod common;
mod data;
mod datagrams;
mod dropping;
mod encrypted;
mod errors;
mod events;
mod exchange;
mod floods;
mod footprint;
mod giving_back;
mod grants;
mod killed;
mod lending;
mod loss;
mod mapped;
mod meddled;
mod meeting;
mod names;
mod opening;
mod operations;
mod packets;
mod parting;
mod progress;
mod restarts;
mod revoking;
#[cfg(feature = "serde")]
mod serialised;
mod spans;
mod threads;
mod types;
mod unsent;
mod virtual_time;
mod watched;

use doorbell_kit::Allocated;

/// Counts the memory of the process, for tests that have a process to themselves.
#[global_allocator]
static HELD: Allocated = Allocated::nothing();

//! Active Messages, as programs use them: real devices, both kinds of runtime.

mod cancelling;
mod clients;
mod collecting;
mod common;
mod deadlines;
mod flow;
mod footprint;
mod fuzz_bodies;
mod group;
mod killed;
mod links;
mod mapping;
mod messages;
mod panics;
mod passing;
mod polling;
mod promises;
mod resting;
mod tags;
mod together;
mod typed;
mod waiting;
mod wakers;

use doorbell_kit::Allocated;

/// Counts the memory of the process, for tests that have a process to themselves.
#[global_allocator]
static HELD: Allocated = Allocated::nothing();

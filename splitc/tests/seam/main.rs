//! Tests of the whole crate, in one program.

mod common;
mod ends;
mod errors;
mod footprint;
mod fuzz_bodies;
mod held_up;
mod litmus;
mod private;
mod programs;
mod progress;
mod stalls;

use doorbell_kit::Allocated;

/// Counts the memory of the process, for tests that have a process to themselves.
#[global_allocator]
static HELD: Allocated = Allocated::nothing();

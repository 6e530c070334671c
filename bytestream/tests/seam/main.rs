//! Byte streams as programs use them: every device, both kinds of progress, both kinds of runtime;
//! and a simulated network with faults.

mod closing;
mod common;
mod connecting;
mod ended;
mod everywhere;
mod fabric;
mod flow;
mod footprint;
mod fuzz_bodies;
mod held;
mod hostile;
mod killed;
mod played;
mod runtimes;
mod streams;

use doorbell_kit::Allocated;

/// Counts the memory of the process, for tests that have a process to themselves.
#[global_allocator]
static HELD: Allocated = Allocated::nothing();

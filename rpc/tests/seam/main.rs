//! RPC as programs use it: servers, channels and streams over each kind of device; peers that
//! misbehave, end or are killed.

#[macro_use]
mod common;
mod blocked;
mod bodies;
mod callers;
mod chaos;
mod devices;
mod discovery;
mod dropped;
mod ended;
mod endings;
mod fabric;
mod fuzz_bodies;
mod health;
mod hostile;
mod killed;
mod layers;
mod lines;
mod many;
mod memory;
#[allow(dead_code, reason = "the other program uses more")]
mod mixed;
mod overload;
mod peers;
mod retries;
mod rolling;
mod streams;
mod unary;
mod untraced;
mod virtual_time;

use doorbell_kit::Allocated;

/// Counts the memory that each thread allocates.
#[global_allocator]
static ALLOCATED: Allocated = Allocated::nothing();

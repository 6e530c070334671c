//! How calls end that cannot go on: because a runtime has ended, a stream has panicked, nobody
//! reads a stream any more, or time is over.

#[macro_use]
#[path = "../common/mod.rs"]
mod common;
#[allow(dead_code)] // The methods are wanted here, and not the load.
#[path = "../common/mixed.rs"]
mod mixed;

mod durations;
mod errors;
mod leaving;
mod panics;
mod runtimes;
mod shutdowns;
mod sources;

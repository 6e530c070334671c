//! How calls end that cannot go on: because a runtime has ended, a stream has panicked, nobody
//! reads a stream any more, or time is over.

mod durations;
mod errors;
mod leaving;
mod panics;
mod runtimes;
mod shutdowns;
mod sources;

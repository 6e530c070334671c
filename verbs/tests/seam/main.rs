//! Verbs as programs have them: over every device, run by whoever, awaited or polled.

mod common;
mod datagrams;
mod dropping;
mod errors;
mod exchange;
mod killed;
mod loss;
mod mapped;
mod operations;
mod progress;
mod revoking;
mod virtual_time;
mod watched;

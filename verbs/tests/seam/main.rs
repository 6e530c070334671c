//! Verbs as programs have them: over every device, run by whoever, awaited or polled.

mod common;
mod operations;

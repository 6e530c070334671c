//! Verbs as programs have them: over every device, run by whoever, awaited or polled.

mod causes;
mod common;
mod data;
mod datagrams;
mod dropping;
mod errors;
mod events;
mod exchange;
mod floods;
mod killed;
mod loss;
mod mapped;
mod meddled;
mod names;
mod opening;
mod operations;
mod packets;
mod progress;
mod restarts;
mod revoking;
#[cfg(feature = "serde")]
mod serialised;
mod spans;
mod threads;
mod types;
mod virtual_time;
mod watched;

//! Streams: pieces that go one after the other in one direction of a call, with flow control of
//! their own, so that a slow reader holds up nobody else.
//!
//! Whoever sends may have [`WINDOW`] bytes under way that the reader has not taken yet, with
//! [`OVERHEAD`] for each piece. Pieces that are there at the same time share a message. A piece longer
//! than a message goes in fragments; those but the last are granted anew as they come, if the reader
//! has taken the pieces before, and else with those. So a stream's memory is bounded by a window and
//! the longest body.

mod incoming;
mod pump;
mod table;
mod window;

pub use pump::pump;
pub use table::{Key, Streams};

/// How many bytes may be under way in a stream that were not taken yet.
pub const WINDOW: usize = 256 * 1024;

/// What each fragment counts beside its bytes, so that empty ones are bounded, too.
pub const OVERHEAD: usize = 64;

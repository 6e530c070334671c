//! Streams: pieces that go one after the other in one direction of a call, with flow control of
//! their own, so that a slow reader holds up nobody else.
//!
//! Whoever sends may have [`WINDOW`] bytes under way that the reader has not taken yet, with
//! [`OVERHEAD`] for each piece. Pieces that are there at the same time share a message.
//!
//! A piece longer than a message goes in fragments, each of which says how long the piece is. A piece
//! that is longer than a quarter of the window takes memory from the share that its sender's end has
//! of the memory for long bodies, as soon as the reader has taken all pieces before; its fragments
//! are granted anew from then on as they come. So a stream's memory is bounded by a window, and the
//! memory of all long pieces together by the pool of long bodies. The sender of a piece that has its
//! memory is to send all of it in a bounded time.

mod incoming;
mod partial;
mod pump;
mod table;
mod window;

pub use pump::pump;
pub use table::{Key, Streams};

/// How many bytes may be under way in a stream that were not taken yet.
pub const WINDOW: usize = 256 * 1024;

/// What each fragment counts beside its bytes, so that empty ones are bounded, too.
pub const OVERHEAD: usize = 64;

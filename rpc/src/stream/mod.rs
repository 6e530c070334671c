//! Streams: the pieces of one direction of a call, one after the other. Each stream has its own
//! flow control, so that a slow reader holds up nothing else.
//!
//! The sender may have [`WINDOW`] bytes under way that the reader has not taken yet, where each
//! piece counts [`OVERHEAD`] bytes more than it has. Pieces that are ready at the same time share a
//! message.
//!
//! A piece longer than a message is sent in fragments, of which all but the last carry the length of
//! the whole piece. A piece longer than a quarter of the window takes memory from its sender's share of
//! the memory for long bodies, as soon as the reader has taken all pieces before it. From then on,
//! its fragments are granted again as they arrive, so that the piece does not use up the window. So
//! the memory of one stream is bounded by its window, and the memory of all long pieces together by
//! the pool. A sender whose piece has reserved memory must send the whole piece within a bounded
//! time.
//!
//! `pump` sends a stream, within a `window`. `table` has the streams of all calls, and the handlers
//! of the messages about them. `incoming` is the reading end, and `partial` a piece that arrives in
//! fragments. The folder is given the pieces to send, and a peer to send them to; what arrives
//! becomes the body of a request or a response.

mod incoming;
mod partial;
mod pump;
mod table;
mod window;

pub use pump::pump;
pub use table::Streams;

/// How many bytes of a stream may be under way that the reader has not taken.
pub const WINDOW: usize = 256 * 1024;

/// The cost of each fragment beyond its bytes, so that empty fragments are bounded, too.
pub const OVERHEAD: usize = 64;

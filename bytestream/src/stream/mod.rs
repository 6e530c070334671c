//! Streams, as a program holds, reads, writes and drops them.
//!
//! | file | what it does |
//! |---|---|
//! | `io` | is the public stream and its halves, with Tokio's traits |
//! | `closing` | sends what is left after a stream was dropped, and then ends its connection |
//! | `halves` | reads from a link and writes to it, and waits while neither is possible |
//!
//! A stream is given the link of a connection that is established, and the owner of the hub that
//! serves the link. It calls both, and is called by the program alone.

mod closing;
mod halves;
mod io;

pub(crate) use closing::Open;
pub use io::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, Stream, WriteHalf};

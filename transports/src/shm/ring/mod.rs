//! One direction of a link: a ring of cache lines that one side writes and the other reads.
//!
//! A record takes as many consecutive lines as it needs. Its tag says how long it is and in which
//! lap of the ring it was written, so the reader looks at the record itself and at nothing else: a
//! small message costs the way of one cache line. Now and then the reader tells, in a line of its
//! own, how far it has come, and how far it had written in the other direction by then: the writer
//! believes that its records are answered for only after it has read the answers. In another line
//! the reader tells that it is going to sleep.
//!
//! A ring is as long as its reader is behind. While the reader keeps up, the writer turns back
//! early, and the same few lines stay in the caches: a quiet link takes 16 KiB for each of its
//! rings. To a reader that is behind, the writer leaves the whole ring, which may be longer than a
//! processor's own cache: lines that have left the writer's cache before the reader comes to them
//! reach the reader four times as fast. Memory beyond the first lines is taken when a writer first
//! goes there, if the system has it: up to 256 KiB always, and more if the device's [`Spare`]
//! allows it; else the ring stays as it is.
//!
//! Each word has one writer, except the one that says whether the reader sleeps. So nothing is ever
//! locked, and either side may die at any point. Either side may also write anything: what no
//! honest peer writes is [`Nonsense`].

mod layout;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

#[cfg(test)]
pub(super) use layout::own_bytes;
pub(super) use layout::{FEWEST, MOST, Nonsense, Spare, bytes, first_bytes};
pub(super) use reader::Reader;
pub(super) use writer::Writer;

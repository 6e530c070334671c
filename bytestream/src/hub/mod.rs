//! The hub of an endpoint, which serves all its streams: completions go to their links, doorbells
//! that were put off are rung, and peers are probed.
//!
//! The halves of streams call [`Hub::look`] while they wait, so that the thread of a waiting
//! program does the work itself; a background task does the work when no program waits. The hub
//! tells links what has arrived or ended, and links wake the tasks that wait for that.

mod poller;
mod serving;

pub(crate) use serving::{Hub, Owner};

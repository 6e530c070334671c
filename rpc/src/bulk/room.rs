//! Why there was no room for long data: what has used it up, and which setting to raise.

use std::time::Duration;

use crate::status::Status;

/// There was no room for long data, and none has come back for as long as patience lasts. All
/// lengths are in bytes.
#[derive(Clone, Copy, Debug)]
pub struct NoRoom {
    /// The length of what has found no room.
    pub len: usize,
    /// The time for which no room has come back.
    pub patience: Duration,
    /// What the peer uses, and what it may use.
    pub of_peer: (usize, usize),
    /// The whole memory for long data.
    pub all: usize,
    /// Memory that is lent to senders of bodies, which are on their way.
    pub lent: usize,
    /// Memory of bodies that handlers hold.
    pub held: usize,
    /// Memory of messages of streams that are on their way, or that nobody has read.
    pub streams: usize,
}

impl NoRoom {
    /// The status of a call whose body has found no room, such as "the request".
    #[cold]
    pub fn status(self, what: &str) -> Status {
        let Self { len, patience, of_peer: (used, most), all, lent, held, streams } = self;
        Status::resource_exhausted(format!(
            "there was no memory for the {len} bytes of {what}, and none has come back for {patience:?}: \
             of the {all} bytes of `body_memory`, handlers hold {held}, {lent} are lent to senders, and \
             {streams} are for messages of streams that were not read; of the {most} for this peer, \
             {used} are in use. Raise `body_memory`, or `patience_for_bodies`"
        ))
    }
}

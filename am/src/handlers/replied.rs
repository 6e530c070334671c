//! Replies, as their handlers see them.

use std::fmt;
use std::sync::Arc;

use crate::link::Link;
use crate::peer::Peer;
use crate::receives::Arrival;

/// A reply, as its handler gets it.
pub struct Replied<'r> {
    link: &'r Arc<Link>,
    arrival: &'r Arrival,
}

impl<'r> Replied<'r> {
    #[inline]
    pub(crate) fn new(link: &'r Arc<Link>, arrival: &'r Arrival) -> Self {
        Self { link, arrival }
    }

    /// Returns the peer that replied.
    pub fn peer(&self) -> Peer {
        Peer::of(self.link.clone())
    }

    /// Has other tasks run as soon as this handler has returned: see
    /// [`Request::note_woken`](crate::Request::note_woken).
    pub fn note_woken(&self) {
        self.link.endpoint.signals.note_woken();
    }

    /// Returns the payload, in the buffer in which it was received.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        self.arrival.payload()
    }
}

impl fmt::Debug for Replied<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replied")
            .field("peer", &self.link.peer_text())
            .field("payload", &self.payload().len())
            .finish()
    }
}

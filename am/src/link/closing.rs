//! The end of a link, and of the messages that come before it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Link;

impl Link {
    /// Notes that the peer is about to end the connection. It handles what was sent to it until
    /// now, since the answer to its question comes behind that.
    #[cold]
    pub fn peer_closes(&self) {
        let mut out = self.send_side();
        let Some(outbox) = &mut out.outbox else { return };
        outbox.flush();
        out.taken_by_closing = outbox.posted();
    }

    /// Returns whether the peer, which is about to end the connection, handles all that was sent to
    /// it.
    pub fn is_taken_by_closing(&self) -> bool {
        let out = self.send_side();
        let posted = out.outbox.as_ref().and_then(|outbox| outbox.posted());
        posted.is_some() && posted == out.taken_by_closing
    }

    /// Notes and tells that the link is over and all its messages are handled. Calls that are not
    /// answered by then have no answer.
    #[cold]
    pub fn departs(self: &Arc<Self>) {
        if self.departed.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut out = self.send_side();
        out.calls.end();
        self.changed(&mut out);
        drop(out);
        if let Some(owner) = self.endpoint.owner.upgrade() {
            owner.departs(self);
        }
    }

    /// Returns whether the link is over, and all its messages are handled.
    pub fn has_departed(&self) -> bool {
        self.departed.load(Ordering::Acquire)
    }
}

//! The end of a link, and of the messages that come before it.

use std::sync::atomic::Ordering;

use doorbell_verbs::{ConnectionState, Ending};

use super::Link;
use crate::wire::Parting;

impl Link {
    /// Notes that the peer is about to end the connection, and that its question was answered. It
    /// handles what was sent to it until now, since the answer comes behind that.
    #[cold]
    pub fn peer_closes(&self) {
        let mut out = self.send_side();
        let asked = out.asked;
        out.closing.get_or_insert_default().asked_at_answer = Some(asked);
    }

    /// Returns whether the peer, which is about to end the connection, handles all that was sent to
    /// it.
    pub fn is_taken_by_closing(&self) -> bool {
        let out = self.send_side();
        out.closing.as_ref().is_some_and(|closing| closing.asked_at_answer == Some(out.asked))
    }

    /// Notes that this side begins to close the link, which ends behind what was sent until now.
    pub fn begin_closing(&self) {
        let mut out = self.send_side();
        let asked = out.asked;
        out.closing.get_or_insert_default().asked_before = Some(asked);
    }

    /// Returns the last words with which this side ends the connection.
    pub(super) fn parting(&self) -> Parting {
        // Of the count, the lowest bits are enough.
        Parting { handled: self.received.load(Ordering::Relaxed) as u16 }
    }

    /// Returns whether the peer has said with the end of the connection that it has handled all
    /// requests that were sent before this side began to close the link.
    pub fn is_taken_at_end(&self) -> bool {
        let ConnectionState::Ended(Ending::PeerLeft { private }) = self.connection.state() else {
            return false;
        };
        let Some(last) = Parting::from_bytes(&private) else { return false };
        let out = self.send_side();
        let before = out.closing.as_ref().and_then(|closing| closing.asked_before);
        // Requests of others may be behind those, and have been handled, too.
        last.handled.wrapping_sub(before.unwrap_or(out.asked)).cast_signed() >= 0
    }

    /// Notes that the link is over and all its messages are handled. Calls that are not answered by
    /// then have no answer. Returns whether that is new, so that the program is to be told.
    #[cold]
    pub fn departs(&self) -> bool {
        if self.departed.swap(true, Ordering::AcqRel) {
            return false;
        }
        let mut out = self.send_side();
        out.calls.end();
        out.late.iter_mut().for_each(|late| late.end());
        self.changed(&mut out);
        true
    }

    /// Returns whether the link is over, and all its messages are handled.
    pub fn has_departed(&self) -> bool {
        self.departed.load(Ordering::Acquire)
    }
}

//! The end of a link, and of the messages that come before it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use doorbell_verbs::Ending;

use super::{Link, SendSide};
use crate::wire::Parting;

/// What a link knows of its end once one side is about to end the connection.
#[derive(Default)]
pub(super) struct Closing {
    /// The count of requests when the peer was told that this side has handled all that it sent,
    /// since the peer is about to end the connection. The peer handles those before.
    asked_at_answer: Option<u16>,
    /// The count of requests when this side began to close the link.
    asked_before: Option<u16>,
    /// Whether the peer has said with the end of the connection that it has handled all requests,
    /// above those of this side's own closing.
    is_taken: bool,
}

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
        self.send_side().closing.as_ref().is_some_and(|closing| closing.is_taken)
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

impl SendSide {
    /// Notes what the peer says with the end of the connection, if this side is closing the link.
    pub(super) fn note_last_words(&mut self, ending: &Ending) {
        if let Ending::PeerLeft { private } = ending
            && let Some(parting) = Parting::from_bytes(private)
            && let Some(closing) = &mut self.closing
        {
            closing.is_taken = closing.asked_before == Some(parting.handled);
        }
    }
}

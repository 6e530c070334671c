//! The engine: messages as frames between two hosts, without I/O.
//!
//! A [`Pair`] is what one host knows of another: the messages on their way there
//! ([`outgoing`]), and those on their way here ([`incoming`]). Time is an argument. A user gives it
//! the messages that are to be sent, and the frames that have come; it takes the frames that are to
//! be sent ([`Pair::poll_transmit`]), and what has happened ([`Pair::poll_event`]).
//!
//! The engine is the mechanism: headers, numbers, reassembly, time-outs, repetition. Where a
//! message goes is up to [`Receives`], and how much of a message may come to the
//! [`Policy`](super::policy::Policy).
//!
//! Messages of one sender are looked at in the order of their numbers. A message that finds no
//! receive is noted with its header alone, and its data stays at the sender, so that messages
//! behind it can meet their receives meanwhile.

mod bits;
mod common;
mod incoming;
mod outgoing;
#[cfg(test)]
mod tests;
mod timing;

use bytes::Bytes;

use super::policy::Policy;
use super::statistics::Statistics;
use super::wire::{Frame, Head, Kind, MessageHeader};
use common::Common;
pub use common::{Destination, Event, Lost, Place, Receives, Transmit};
use incoming::Incoming;
use outgoing::Outgoing;
pub use timing::{Time, Timing};

/// The messages between this host and one other host, in both directions. `S` stands for a message
/// that is sent, and `P` is the place of a message that comes.
#[derive(Debug)]
pub struct Pair<S, P> {
    common: Common<S, P>,
    outgoing: Outgoing<S>,
    incoming: Incoming<P>,
    /// When a frame of any kind last came from the peer.
    heard: Time,
}

impl<S, P: Place> Pair<S, P> {
    pub fn new(policy: Policy, timing: Timing) -> Self {
        let common = Common::new(policy, timing);
        let (outgoing, incoming) = (Outgoing::default(), Incoming::default());
        Self { common, outgoing, incoming, heard: Time::ZERO }
    }

    /// Returns the counts of the pair.
    pub fn statistics(&self) -> &Statistics {
        &self.common.statistics
    }

    /// Changes the policy for messages that begin from now on.
    pub fn set_policy(&mut self, policy: Policy) {
        self.common.policy = policy;
    }

    /// Sets whether frames can be placed at the peer by RDMA writes. If they can, later messages
    /// may be placed; if they can't, messages that are being sent are not placed any more, either.
    pub fn set_places(&mut self, places: bool) {
        self.outgoing.set_places(places);
    }

    /// Sends a message behind the others. Returns `message` if it would take too many frames.
    pub fn send(
        &mut self,
        (bits, body, stride): (u64, Bytes, u16),
        message: S,
        now: Time,
    ) -> Result<(), S> {
        let collection = self.common.policy.collection();
        let Some(header) = MessageHeader::new(body.len(), bits, stride, collection) else {
            return Err(message);
        };
        self.outgoing.send(&self.common.policy, header, body, message, now);
        Ok(())
    }

    /// Gives a message that was noted its place. Returns the place if the message is not noted.
    pub fn place(&mut self, number: u32, place: P, now: Time) -> Result<(), P> {
        self.incoming.place(&mut self.common, number, place, now)
    }

    /// Forgets a message that was noted, and whose data is not wanted.
    pub fn swallow(&mut self, number: u32) {
        self.incoming.swallow(&mut self.common, number);
    }

    /// Takes in a frame of the peer's.
    pub fn handle(&mut self, frame: &Frame<'_>, now: Time, receives: &mut impl Receives<P>) {
        let Self { common, outgoing, incoming, heard } = self;
        *heard = now;
        common.statistics.frames_received += 1;
        let Head { epoch, number, kind } = frame.head;
        let kept = match kind {
            Kind::Acknowledged { .. } | Kind::Clear(_) | Kind::Received => {
                outgoing.handle(common, epoch, number, kind, now)
            }
            Kind::Closed => {
                outgoing.fail(common, Lost::Closed);
                incoming.fail(common, Lost::Closed);
                common.events.push_back(Event::PeerGone(Lost::Closed));
                true
            }
            _ => incoming.handle(common, frame, now, receives),
        };
        if !kept {
            common.statistics.malformed += 1;
        }
    }

    /// Returns the next frame that is to be sent, if any is.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit<'_>> {
        let Self { common, outgoing, .. } = self;
        common.statistics.frames_sent += 1;
        if let Some(head) = common.controls.pop_front() {
            return Some(Transmit::Frame(head, &[]));
        }
        let transmit = outgoing.poll_transmit(common, now);
        if transmit.is_none() {
            common.statistics.frames_sent -= 1;
        }
        transmit
    }

    /// Returns the next thing that has happened, if any has.
    pub fn poll_event(&mut self) -> Option<Event<S, P>> {
        self.common.events.pop_front()
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is to be called, at the latest.
    pub fn next_timeout(&self) -> Option<Time> {
        let Self { common, outgoing, incoming, .. } = self;
        [outgoing.next_timeout(common), incoming.next_timeout(common)].into_iter().flatten().min()
    }

    /// Does what is due: frames are sent again, and messages of silent peers given up.
    pub fn handle_timeout(&mut self, now: Time) {
        let Self { common, outgoing, incoming, heard } = self;
        let has_failed = outgoing.handle_timeout(common, now);
        let has_failed = incoming.handle_timeout(common, now) || has_failed;
        // With EMP, a peer that has no receive for a message is silent about that message, but may
        // send messages of its own.
        if has_failed && *heard + common.timing.patience <= now {
            common.events.push_back(Event::PeerGone(Lost::Silent));
        }
    }

    /// Whether the pair has nothing under way.
    pub fn is_idle(&self) -> bool {
        self.common.controls.is_empty() && self.outgoing.is_empty() && self.incoming.is_empty()
    }

    /// Whether the peer has confirmed all that was sent to it.
    pub fn is_confirmed(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Gives up all messages of the pair, in both directions. The peer is told, and need not wait
    /// for this side.
    pub fn close(&mut self) {
        self.outgoing.fail(&mut self.common, Lost::Here);
        self.incoming.fail(&mut self.common, Lost::Here);
        self.common.controls.clear();
        self.common.control(0, 0, Kind::Closed);
    }
}

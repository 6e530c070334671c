//! A peer, and the messages to it and from it.

use std::sync::Arc;
use std::time::Duration;

use doorbell_verbs::{Destination, Ending, Name, Private};

use super::handle::SendSlot;
use super::lane::Lane;
use super::peer::Peer;
use super::posted::Posted;
use super::receive::Letter;
use super::wire::Wire;
use crate::frames::engine::{Event, Lost, Pair, Time, Timing, Transmit};
use crate::frames::error::{ReceiveError, SendError, Unsent, WhyGivenUp, WhyGone, closed};
use crate::frames::policy::Policy;

/// The most frames to one peer before it is the next one's turn.
const BURST: usize = 32;

/// A message that is sent: who waits, and its length.
#[derive(Debug)]
pub struct Outbound {
    pub slot: Arc<SendSlot>,
    pub len: usize,
}

/// The state of a peer: its handle, the messages to it and from it, and the ways there.
#[derive(Debug)]
pub struct Known {
    pub peer: Peer,
    pub pair: Pair<Outbound, Letter>,
    /// The way there, once it is found.
    pub destination: Option<Destination>,
    /// Whether the peer knows the name of this side: frames need not carry it.
    pub knows_us: bool,
    pub is_active: bool,
    pub lane: Lane,
}

/// The result of [`Known::look`]: whether any message had news for the program, and whether a
/// receive has got its message.
#[derive(Default, Debug)]
pub struct Looked {
    pub has_woken: bool,
    pub has_received: bool,
    /// Why the last message to the peer that was lost was given up, if one was.
    pub given_up: Option<WhyGivenUp>,
}

impl Known {
    pub fn new(peer: Peer, policy: Policy, timing: Timing) -> Self {
        Self {
            peer,
            pair: Pair::new(policy, timing),
            destination: None,
            knows_us: false,
            is_active: false,
            lane: Lane::default(),
        }
    }

    /// Tells the program what has happened with the peer's messages.
    pub fn look(&mut self, posted: &mut Posted, patience: Duration) -> Looked {
        let mut looked = Looked::default();
        while let Some(event) = self.pair.poll_event() {
            looked.has_woken = true;
            let peer = || self.peer.name().clone();
            match event {
                Event::Sent(outbound) => {
                    outbound.slot.fill(Ok(()));
                }
                Event::SendFailed(Outbound { slot, len }, lost) => {
                    looked.given_up = Some(why_given_up(lost, patience));
                    slot.fill(Err(unsent(self.peer.name(), len, lost, patience)));
                }
                Event::Received(letter) => {
                    looked.has_received = true;
                    letter.deliver();
                }
                Event::ReceiveFailed(letter, lost_by) => {
                    let (bits, len) = (letter.bits, letter.len());
                    let lost = |why| ReceiveError::Lost { peer: peer(), bits, len, why };
                    letter.slot.outcome.fill(Err(match lost_by {
                        Lost::Here => ReceiveError::Closed,
                        Lost::Silent => lost(WhyGone::Silent(patience)),
                        Lost::Anew => lost(WhyGone::Anew),
                        Lost::Closed => lost(WhyGone::Closed),
                    }));
                }
                Event::PeerGone(lost) => {
                    let why = match lost {
                        Lost::Closed => WhyGone::Closed,
                        _ => WhyGone::Silent(patience),
                    };
                    posted.gone(&self.peer, why);
                }
                Event::NotesVoid => posted.forget(self.peer.source()),
            }
        }
        looked
    }

    /// Sends a burst to the peer. Returns whether there is more that can be sent.
    pub fn transmit(&mut self, wire: &mut Wire, policy: Policy, now: Time) -> bool {
        let Some(destination) = &self.destination else { return false };
        for _ in 0..BURST {
            if !wire.has_room() || !self.lane.has_room() {
                return !wire.has_room();
            }
            match self.pair.poll_transmit(now) {
                None => return false,
                Some(Transmit::Frame(head, data)) => {
                    wire.put(&head, data, !self.knows_us, destination);
                }
                Some(Transmit::Place { memory, data, stride, notice }) => {
                    self.lane.place((memory, data, stride), &notice, policy.offload());
                }
            }
        }
        true
    }
}

/// Returns the error of a message of `len` bytes to a peer that was lost in this way.
#[cold]
fn unsent(peer: &Name, len: usize, lost: Lost, patience: Duration) -> SendError {
    let why = match lost {
        Lost::Here => return closed(peer, len),
        Lost::Closed => WhyGone::Closed,
        Lost::Silent | Lost::Anew => WhyGone::Unconfirmed(patience),
    };
    SendError::Gone { peer: peer.to_string().into(), what: Unsent::Bytes(len), why }
}

/// Returns why a message to a peer that was lost in this way is given up.
fn why_given_up(lost: Lost, patience: Duration) -> WhyGivenUp {
    match lost {
        Lost::Here => WhyGivenUp::RuntimeEnded,
        Lost::Closed => WhyGivenUp::Gone(Ending::PeerLeft { private: Private::default() }),
        _ => WhyGivenUp::Late(patience),
    }
}

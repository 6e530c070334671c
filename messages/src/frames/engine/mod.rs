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
mod incoming;
mod outgoing;
#[cfg(test)]
mod tests;
mod timing;

use std::collections::VecDeque;

use bytes::Bytes;
use doorbell_verbs::RemoteMemory;

use super::policy::Policy;
use super::statistics::Statistics;
use super::wire::{Flags, Frame, Head, Kind, MessageHeader};
use incoming::Incoming;
use outgoing::Outgoing;
use timing::RoundTrips;
pub use timing::{Time, Timing};

/// The receives of the program: where messages go.
pub trait Receives<P> {
    /// Returns where the message with this header goes. `remote` says that the message would be
    /// placed by RDMA writes.
    fn destination(&mut self, number: u32, header: &MessageHeader, remote: bool) -> Destination<P>;
}

/// Where a message goes.
#[derive(Debug)]
pub enum Destination<P> {
    /// To this place, which has room for the whole message.
    Place(P),
    /// Nowhere yet. The message was noted, and [`Pair::place`] tells later.
    Waits,
    /// Nowhere: a receive has taken note of the message, and does not want its data.
    Nowhere,
    /// Nowhere, because too many messages wait. The message will be asked about again.
    Full,
}

/// The place of a message at its receiver.
pub trait Place {
    /// Writes data of the message at an offset, within the length of the message.
    fn write(&mut self, at: usize, data: &[u8]);

    /// Returns the place as peers name it, if they may write there.
    fn memory(&self) -> Option<RemoteMemory>;
}

/// What has happened, for the user of a pair.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<S, P> {
    /// The peer has received the message.
    Sent(S),
    /// The message was given up.
    SendFailed(S, Lost),
    /// The message is complete.
    Received(P),
    /// The rest of the message will not come.
    ReceiveFailed(P, Lost),
    /// The messages that were noted will not come.
    NotesVoid,
}

/// Why messages were given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    /// The peer has not answered for as long as it may take.
    Silent,
    /// The peer has given up its messages, and begun anew.
    Anew,
    /// The peer has closed its endpoint.
    Closed,
    /// This endpoint has ended.
    Here,
}

/// What is to be sent.
#[derive(Debug)]
pub enum Transmit<'p> {
    /// A frame as a datagram.
    Frame(Head, &'p [u8]),
    /// Frames by RDMA writes, and then the notice of them.
    Place {
        /// The memory of the frames, as much as they have bytes.
        memory: RemoteMemory,
        /// The bytes of the frames.
        data: &'p [u8],
        /// The bytes of each frame but the last.
        stride: u16,
        /// The notice.
        notice: Head,
    },
}

/// What both directions of a pair share.
#[derive(Debug)]
struct Common<S, P> {
    policy: Policy,
    timing: Timing,
    trips: RoundTrips,
    /// Frames without data that are to be sent.
    controls: VecDeque<Head>,
    events: VecDeque<Event<S, P>>,
    statistics: Statistics,
}

/// The most frames without data that wait to be sent. Further ones are dropped, as the network may
/// drop them.
const MOST_CONTROLS: usize = 1024;

impl<S, P> Common<S, P> {
    fn control(&mut self, epoch: u32, number: u32, kind: Kind) {
        if self.controls.len() < MOST_CONTROLS {
            self.controls.push_back(Head { epoch, number, kind });
        }
    }
}

/// What one host knows of another: messages there and back. `S` stands for a message that is sent,
/// and `P` is the place of one that comes.
#[derive(Debug)]
pub struct Pair<S, P> {
    common: Common<S, P>,
    outgoing: Outgoing<S>,
    incoming: Incoming<P>,
}

impl<S, P: Place> Pair<S, P> {
    pub fn new(policy: Policy, timing: Timing) -> Self {
        let common = Common {
            policy,
            timing,
            trips: RoundTrips::new(timing),
            controls: VecDeque::new(),
            events: VecDeque::new(),
            statistics: Statistics::default(),
        };
        Self { common, outgoing: Outgoing::default(), incoming: Incoming::default() }
    }

    /// Returns the counts of the pair.
    pub fn statistics(&self) -> &Statistics {
        &self.common.statistics
    }

    /// Changes the policy for messages that begin from now on.
    pub fn set_policy(&mut self, policy: Policy) {
        self.common.policy = policy;
    }

    /// Says whether frames can be placed at the peer by RDMA writes, from now on.
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
        let Self { common, outgoing, incoming } = self;
        common.statistics.frames_received += 1;
        let Head { epoch, number, kind } = frame.head;
        let kept = match kind {
            Kind::Acknowledged { .. } | Kind::Clear(_) | Kind::Received => {
                outgoing.handle(common, epoch, number, kind, now)
            }
            Kind::Closed => {
                outgoing.fail(common, Lost::Closed);
                incoming.fail(common, Lost::Closed);
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
        let Self { common, outgoing, incoming } = self;
        [outgoing.next_timeout(common), incoming.next_timeout(common)].into_iter().flatten().min()
    }

    /// Does what is due: frames are sent again, and messages of silent peers given up.
    pub fn handle_timeout(&mut self, now: Time) {
        self.outgoing.handle_timeout(&mut self.common, now);
        self.incoming.handle_timeout(&mut self.common, now);
    }

    /// Whether the pair has nothing under way.
    pub fn is_idle(&self) -> bool {
        self.common.controls.is_empty() && self.outgoing.is_empty() && self.incoming.is_empty()
    }

    /// Ends everything. The peer is told, and need not wait for this side.
    pub fn close(&mut self) {
        self.outgoing.fail(&mut self.common, Lost::Here);
        self.incoming.fail(&mut self.common, Lost::Here);
        self.common.controls.clear();
        self.common.control(0, 0, Kind::Closed);
    }
}

/// The flags of a frame of a message in windows.
fn windowed(more: bool, end: bool, places: bool) -> Flags {
    Flags { windows: true, last: false, more, end, places }
}

//! What both directions of a pair share, and what a pair tells its user.

use std::collections::VecDeque;

use doorbell_verbs::RemoteMemory;

use super::timing::{RoundTrips, Timing};
use crate::frames::policy::Policy;
use crate::frames::statistics::Statistics;
use crate::frames::wire::{Flags, Head, Kind, MessageHeader};

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
    /// The message has no place yet, because no receive takes it. The message was noted, and
    /// [`Pair::place`](super::Pair::place) tells its place later.
    Waits,
    /// The message has met a receive that does not want its data, which is dropped.
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

/// An event that a pair reports to its user: what has become of a message, sent or received.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<S, P> {
    /// The peer has received the message.
    Sent(S),
    /// The message was given up.
    SendFailed(S, Lost),
    /// The message is complete.
    Received(P),
    /// The remaining frames of a message that was being received will not come.
    ReceiveFailed(P, Lost),
    /// The messages that were noted will not come.
    NotesVoid,
    /// The peer has closed its endpoint, or nothing has come from it for as long as it may take.
    PeerGone(Lost),
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
    /// The endpoint on this side has ended.
    Here,
}

/// Frames for the user of a pair to send: one as a datagram, or several by RDMA writes.
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
        /// The head of the notice, a frame that tells the peer which frames were placed.
        notice: Head,
    },
}

/// The state that the outgoing and the incoming messages of a pair share.
#[derive(Debug)]
pub struct Common<S, P> {
    pub policy: Policy,
    pub timing: Timing,
    pub trips: RoundTrips,
    /// Frames without data that are to be sent.
    pub controls: VecDeque<Head>,
    pub events: VecDeque<Event<S, P>>,
    pub statistics: Statistics,
}

/// The most frames without data that wait to be sent. Further ones are dropped, as the network may
/// drop them.
const MOST_CONTROLS: usize = 1024;

impl<S, P> Common<S, P> {
    pub fn new(policy: Policy, timing: Timing) -> Self {
        Self {
            policy,
            timing,
            trips: RoundTrips::new(timing),
            controls: VecDeque::new(),
            events: VecDeque::new(),
            statistics: Statistics::default(),
        }
    }

    /// Has a frame without data sent.
    pub fn control(&mut self, epoch: u32, number: u32, kind: Kind) {
        if self.controls.len() < MOST_CONTROLS {
            self.controls.push_back(Head { epoch, number, kind });
        }
    }
}

/// The flags of a frame of a message in windows.
pub fn windowed(more: bool, end: bool, places: bool) -> Flags {
    Flags { windows: true, last: false, more, end, places }
}

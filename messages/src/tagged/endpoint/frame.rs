//! What goes to a peer: messages and what is said about them, as packets.

use std::sync::Arc;

use bytes::Bytes;

use crate::matching::Pattern;
use crate::slot::Slot;
use crate::tagged::error::SendError;
use crate::tagged::pacing::{Answer, Offer, Order, Release, SearchId, Take};
use crate::tagged::wire::{Heading, Kind, Packet};

/// The place of a send's outcome.
pub type SendSlot = Slot<Result<(), SendError>>;

/// The one who waits until a message has left, if anybody does.
#[derive(Clone, Debug)]
pub enum Waits {
    Nobody,
    /// The holder of a slot.
    Slot(Arc<SendSlot>),
    /// The holder of the next ticket of the lane.
    Ticket,
}

/// A message to a peer, or something that the peer is told.
#[derive(Debug)]
pub enum Frame {
    Eager {
        bits: u64,
        last: bool,
        outbound: Outbound,
    },
    Taken {
        order: Order,
        last: bool,
        outbound: Outbound,
    },
    /// Tells that the receiver has the message whose offer was taken.
    Again {
        order: Order,
        last: bool,
    },
    /// Tells that all messages before one are gone.
    Passed {
        order: Order,
        last: bool,
    },
    More(Rest),
    /// Tells that messages are held.
    Holds,
    Answer(Answer),
    Freed(usize),
    Search {
        search: SearchId,
        pattern: Pattern,
    },
    Browse {
        search: SearchId,
        from: Order,
    },
    GivenUp(SearchId),
    /// Tells that a message which came ahead of held ones has no receive.
    Back {
        order: Order,
        bits: u64,
        len: usize,
    },
    Take(Order),
    Leave(Order),
    Done {
        number: u64,
        received: bool,
    },
    /// Asks the peer to make the connection for long bodies by a device, which has ended.
    Connect(usize),
}

/// A message that is sent, and who waits for that.
#[derive(Debug)]
pub struct Outbound {
    /// The length of the whole body.
    pub len: usize,
    /// Whether the receiver pulls the body.
    pub long: bool,
    /// The body, or where the receiver pulls it from.
    pub payload: Bytes,
    /// The number by which the receiver says that the message is done; zero if nobody waits for
    /// that.
    pub number: u64,
    /// The one who waits until the message has left.
    pub waits: Waits,
}

/// The part of a message that has not been sent yet.
#[derive(Debug)]
pub struct Rest {
    pub payload: Bytes,
    /// The length of the whole body.
    pub len: usize,
    pub waits: Waits,
}

impl Frame {
    /// A held message that is sent because its offer was taken.
    pub fn taken(order: Order, Take { message, last }: Take<Outbound>) -> Self {
        match message {
            Some(outbound) => Self::Taken { order, last, outbound },
            None => Self::Again { order, last },
        }
    }

    /// What is sent of held messages because the window has room.
    pub fn released(release: Release<Outbound>) -> Self {
        match release {
            Release::Sent { envelope, message: outbound, last } => {
                Self::Eager { bits: envelope.bits, last, outbound }
            }
            Release::Passed { order, last } => Self::Passed { order, last },
        }
    }

    /// Returns the packet of a frame, with as much of its payload as `part_of` says for the payload's
    /// length. Of a message, it returns the rest, too, which may be empty.
    pub fn into_packet(self, part_of: impl Fn(usize) -> usize) -> (Packet, Option<Rest>) {
        let packet = match self {
            Self::Eager { bits, last, outbound } => {
                return outbound.into_packet(Kind::Eager, bits, last, part_of);
            }
            Self::Taken { order, last, outbound } => {
                return outbound.into_packet(Kind::Taken, order, last, part_of);
            }
            Self::More(mut rest) => {
                let payload = rest.split(part_of);
                return (Packet { kind: Kind::More, words: [0; 3], payload }, Some(rest));
            }
            Self::Again { order, last } => Packet::of(Kind::Again, [order, last.into(), 0]),
            Self::Passed { order, last } => Packet::of(Kind::Passed, [order, last.into(), 0]),
            Self::Holds => Packet::of(Kind::Holds, [0; 3]),
            Self::Answer(Answer::Seen(search)) => Packet::of(Kind::Seen, [search, 0, 0]),
            Self::Answer(Answer::Offer(Offer { search, order, envelope, len })) => {
                let payload = Bytes::copy_from_slice(&(len as u64).to_be_bytes());
                Packet { kind: Kind::Offer, words: [search, order, envelope.bits], payload }
            }
            Self::Freed(cost) => Packet::of(Kind::Freed, [cost as u64, 0, 0]),
            Self::Search { search, pattern } => {
                Packet::of(Kind::Search, [search, pattern.bits(), pattern.mask()])
            }
            Self::Browse { search, from } => Packet::of(Kind::Browse, [search, from, 0]),
            Self::GivenUp(search) => Packet::of(Kind::GivenUp, [search, 0, 0]),
            Self::Back { order, bits, len } => Packet::of(Kind::Back, [order, bits, len as u64]),
            Self::Take(order) => Packet::of(Kind::Take, [order, 0, 0]),
            Self::Leave(order) => Packet::of(Kind::Leave, [order, 0, 0]),
            Self::Done { number, received } => {
                Packet::of(Kind::Done, [number, u64::from(received), 0])
            }
            Self::Connect(device) => Packet::of(Kind::Connect, [device as u64, 0, 0]),
        };
        (packet, None)
    }

    /// Returns whether the frame answers something that the peer has said, so that the peer decides
    /// how many there are.
    pub fn is_answer(&self) -> bool {
        use Frame::{Again, Answer, Done, Freed, Leave, Passed, Take};
        let is_of_offer = matches!(self, Take(_) | Leave(_) | Again { .. });
        is_of_offer || matches!(self, Answer(_) | Freed(_) | Done { .. } | Passed { .. })
    }

    /// Returns the message that the frame carries, or the rest of one.
    pub fn into_rest(self) -> Option<Rest> {
        match self {
            Self::Eager { outbound, .. } | Self::Taken { outbound, .. } => Some(outbound.into()),
            Self::More(rest) => Some(rest),
            _ => None,
        }
    }
}

impl Outbound {
    /// Returns whether the message is its body alone, whose end its sender does not wait for.
    pub fn is_plain(&self) -> bool {
        !self.long && self.number == 0
    }

    fn into_packet(
        self,
        kind: Kind,
        word: u64,
        last: bool,
        part_of: impl Fn(usize) -> usize,
    ) -> (Packet, Option<Rest>) {
        let Self { len, long, number, .. } = self;
        let words = [word, Heading { len, last, long }.word(), number];
        let mut rest = Rest::from(self);
        let payload = rest.split(part_of);
        (Packet { kind, words, payload }, Some(rest))
    }
}

impl From<Outbound> for Rest {
    fn from(Outbound { payload, len, waits, .. }: Outbound) -> Self {
        Self { payload, len, waits }
    }
}

impl Rest {
    /// Returns what is left of a message all of which was sent.
    pub fn sent(self) -> Self {
        Self { payload: Bytes::new(), ..self }
    }

    /// Splits off as much as one packet carries.
    fn split(&mut self, part_of: impl Fn(usize) -> usize) -> Bytes {
        self.payload.split_to(part_of(self.payload.len()))
    }
}

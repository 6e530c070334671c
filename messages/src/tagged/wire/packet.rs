//! A message between endpoints, as one message of Active Messages carries it.

use bytes::Bytes;
use doorbell_am::RequestId;

use super::description;

/// The kind of a packet, which is the place of its handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum Kind {
    Eager,
    Taken,
    More,
    Holds,
    Offer,
    Freed,
    Search,
    GivenUp,
    Take,
    Leave,
    Done,
    Passed,
    Back,
    Again,
    Browse,
    Seen,
    Connect,
}

impl Kind {
    /// The kinds of packets in the order of their numbers, which are the places of their handlers.
    pub const ALL: [Self; 17] = [
        Self::Eager,
        Self::Taken,
        Self::More,
        Self::Holds,
        Self::Offer,
        Self::Freed,
        Self::Search,
        Self::GivenUp,
        Self::Take,
        Self::Leave,
        Self::Done,
        Self::Passed,
        Self::Back,
        Self::Again,
        Self::Browse,
        Self::Seen,
        Self::Connect,
    ];

    /// Returns the handler that packets of this kind run.
    pub const fn id(self) -> RequestId<[u64; 3]> {
        RequestId::new(self as u16, self.name())
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Eager => "messages: eager",
            Self::Taken => "messages: taken",
            Self::More => "messages: more",
            Self::Holds => "messages: holds",
            Self::Offer => "messages: offer",
            Self::Freed => "messages: freed",
            Self::Search => "messages: search",
            Self::GivenUp => "messages: given up",
            Self::Take => "messages: take",
            Self::Leave => "messages: leave",
            Self::Done => "messages: done",
            Self::Passed => "messages: passed",
            Self::Back => "messages: back",
            Self::Again => "messages: again",
            Self::Browse => "messages: browse",
            Self::Seen => "messages: seen",
            Self::Connect => "messages: connect",
        }
    }

    /// Returns the kind at a place, if there is one.
    pub fn at(place: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(place).ok()?).copied()
    }
}

/// A packet between two endpoints, which one message of Active Messages carries.
#[derive(Clone, Debug)]
pub struct Packet {
    pub kind: Kind,
    pub words: [u64; 3],
    pub payload: Bytes,
}

impl Packet {
    /// Returns how many bytes the payload has beyond those that the description of a long message
    /// may have, of which the windows of messages take no account.
    pub fn bulk(&self) -> usize {
        self.payload.len().saturating_sub(description::LONGEST)
    }

    /// Returns the packet as it is kept until others have come: a payload in a buffer that holds
    /// much more memory than its bytes is copied.
    pub fn kept(self) -> Self {
        Self { payload: Bytes::copy_from_slice(&self.payload), ..self }
    }

    /// A packet without a payload.
    pub fn of(kind: Kind, words: [u64; 3]) -> Self {
        Self { kind, words, payload: Bytes::new() }
    }
}

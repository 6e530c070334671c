//! What messages look like between endpoints.
//!
//! A send carries one message or several: each is a [`Header`] and the length of its payload, four
//! bytes each, in whose upper eleven bits it says how many sends of the other's [were
//! taken](crate::credits), its arguments, eight bytes each, and its payload, all with the lowest
//! byte first, and zeros behind up to a multiple of eight. So a short message of seven words takes
//! a cache line. Where eight bytes more would be a packet more, the header of a message that is
//! alone is the send's immediate instead, and only arguments and payload are its data: so a payload
//! of a packet's size takes one packet. So it is, too, of those longer than 64 bytes on devices
//! that lose nothing, where what was taken need not be said. Of words that are 31 or more the
//! header says 31, and one more in front of them how many. A send of several that is full is made
//! as long as a packet, if it is nearly that, by an answer to no request at its end, with zeros
//! behind it: packets of one length go in one run.
//!
//! | bits of the header | what |
//! |---|---|
//! | 31–29 | its [kind](Kind) |
//! | 28–24 | how many words of arguments |
//! | 23–12 | which handler |
//! | 11–0 | which of the requester's calls it is or answers; 0 if none |

use doorbell_verbs::{Imm, Metadata};

/// The most handlers of a table. Two more indices are for what endpoints say to each other.
pub const MOST_HANDLERS: usize = (1 << 12) - 2;
/// The handler of what endpoints say to each other.
pub const SYSTEM: u16 = MOST_HANDLERS as u16 + 1;
/// What a reply says, in the field of the handler, that is the answer to a call by name.
pub const ANSWER: u16 = SYSTEM;
/// What a reply says there that is the text of an error with which the handler of a call has
/// failed.
pub const FAILED: u16 = MOST_HANDLERS as u16;
/// The most requests that may be under way to a peer.
pub const MOST_CREDITS: usize = (1 << 12) - 1;

/// What the header says of words that are so many, or more.
pub const WIDE: usize = 31;

/// What a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Runs a request handler.
    Request,
    /// Answers a request by a reply handler, or a call by its future.
    Reply,
    /// Answers a request that was not delivered: the first word says why, the others, and the
    /// payload, are the request's.
    Returned,
    /// Answers as many requests as the field of the call says, to which nothing was replied.
    Done,
    /// Answers a call to which nothing was replied; or [asks](awaits) whether calls are still
    /// awaited.
    Unanswered,
    /// Allows as many requests more as the field of the call says.
    Grant,
    /// Runs a request handler for a payload that was placed in the segment: the first two words are
    /// where, and how long it is.
    Placed,
    /// The same for a payload that follows, in messages of this kind without words.
    Fragment,
}

impl Kind {
    /// By their numbers.
    const ALL: [Self; 8] = [
        Self::Request,
        Self::Reply,
        Self::Returned,
        Self::Done,
        Self::Unanswered,
        Self::Grant,
        Self::Placed,
        Self::Fragment,
    ];

    /// How many words there are in front of the handler's own.
    #[inline]
    pub fn own_words(self) -> usize {
        match self {
            Self::Returned => 1,
            Self::Placed | Self::Fragment => 2,
            _ => 0,
        }
    }
}

/// The immediate of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    pub kind: Kind,
    pub words: usize,
    pub handler: u16,
    pub call: u16,
}

impl Header {
    /// Whether it is a request's, for which its sender gave a credit.
    #[inline]
    pub fn asks(self) -> bool {
        matches!(self.kind, Kind::Request | Kind::Placed | Kind::Fragment)
    }

    /// Whether there are so many words that a word in front of them says how many.
    #[inline]
    pub fn is_wide(self) -> bool {
        self.words >= WIDE
    }

    /// How many bytes there are between it and the words.
    #[inline]
    pub fn between(self) -> usize {
        if self.is_wide() { 8 } else { 0 }
    }

    #[inline]
    pub fn imm(self) -> Imm {
        let (kind, words) = (self.kind as u32, self.words.min(WIDE) as u32);
        let (handler, call) = (u32::from(self.handler), u32::from(self.call));
        debug_assert!(handler < 4096 && call < 4096);
        Imm(kind << 29 | words << 24 | handler << 12 | call)
    }

    /// What an immediate says. Where that of a send [is wide](Self::is_wide), there
    /// are words in front.
    #[inline]
    pub fn from_imm(Imm(imm): Imm) -> Self {
        let kind = Kind::ALL[(imm >> 29) as usize];
        let words = (imm >> 24 & 0x1F) as usize;
        let (handler, call) = ((imm >> 12 & 0xFFF) as u16, (imm & 0xFFF) as u16);
        Self { kind, words, handler, call }
    }
}

/// What a NIC's write says in its metadata that places a payload: the header of its message, and
/// where in the segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    pub header: Header,
    pub offset: u64,
}

impl Placement {
    pub fn metadata(self) -> Metadata {
        let mut bytes = [0; 12];
        let Imm(imm) = self.header.imm();
        bytes[..4].copy_from_slice(&imm.to_be_bytes());
        bytes[4..].copy_from_slice(&self.offset.to_be_bytes());
        Metadata::new(&bytes).expect("it has room for them")
    }

    pub fn from_metadata(metadata: &Metadata) -> Option<Self> {
        let (imm, offset) = metadata.bytes().split_first_chunk()?;
        let header = Header::from_imm(Imm(u32::from_be_bytes(*imm)));
        let offset = u64::from_be_bytes(offset.try_into().ok()?);
        (header.kind == Kind::Request && header.words == 0).then_some(Self { header, offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_immediate_is_a_header_that_gives_it_again() {
        for imm in (0..=u32::MAX).step_by(4093) {
            assert_eq!(Header::from_imm(Imm(imm)).imm(), Imm(imm));
        }
    }
}

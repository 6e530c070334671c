//! The format of messages between endpoints.
//!
//! A send carries one message or several. A message is, with the lowest byte first:
//!
//! | bytes | content |
//! |---|---|
//! | 4 | the [header](Header) |
//! | 4 | the length of the payload; in the upper eleven bits a [piggybacked acknowledgement](crate::wire::Taken) |
//! | 8 each | the words of the arguments |
//! | any | the payload |
//! | up to 7 | zeros, up to a multiple of eight |
//!
//! So a message of seven words and no payload takes a cache line. A header that says 31 words is
//! followed by a word with their true number, which is 31 or more.
//!
//! Where these eight bytes would make a lone message one packet longer, the header travels in the
//! send's immediate, and the data is words and payload alone. So a payload of a packet's size takes
//! one packet. On lossless devices, which need no acknowledgements, all lone messages of more than
//! 64 bytes travel that way.
//!
//! A send of several messages that is nearly as long as a packet is filled up with an answer to no
//! request, so that packets of one length form a run.
//!
//! | bits of the header | content |
//! |---|---|
//! | 31–29 | the [kind](Kind) |
//! | 28–24 | the number of words |
//! | 23–12 | the index of the handler |
//! | 11–0 | the number of the call that the message belongs to; 0 if none |

use doorbell_verbs::{Imm, Metadata};

use super::awaits;

/// The handler index of a reply whose payload is the text of the error that the handler returned.
pub const FAILED: u16 = (1 << 12) - 2;
/// The handler index of questions between endpoints.
pub const SYSTEM: u16 = FAILED + 1;
/// The handler index of a reply that answers a call by name.
pub const ANSWER: u16 = SYSTEM;
/// The most handlers of a table. Two more indices are for messages between endpoints.
pub const MOST_HANDLERS: usize = FAILED as usize;
/// The most requests that may be under way to a peer.
pub const MOST_CREDITS: usize = (1 << 12) - 1;

/// The number of words from which on a word in front of them holds their number.
pub const WIDE: usize = 31;

/// The kinds of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Runs a request handler.
    Request,
    /// Answers a request by a reply handler, or a call by its future.
    Reply,
    /// Sends back a request that was not delivered. The first word is the reason; the others, and
    /// the payload, are the request's.
    Returned,
    /// Answers as many requests as the call field says, none of which was a call or had a reply.
    Done,
    /// Answers a call to which nothing was replied, or is one of the [messages](crate::wire::awaits)
    /// about requests whose handlers take long. Of a late answer, the first word says to which
    /// request it belongs.
    Unanswered,
    /// Grants as many further credits as the call field says.
    Grant,
    /// Runs a request handler for a payload that was placed in the segment. The first two words are
    /// the payload's offset and length.
    Placed,
    /// Announces a payload like `Placed` does, or carries a fragment of the announced payload if
    /// the message has no words.
    Fragment,
}

impl Kind {
    /// Returns the kind of the number in the upper three bits of a header.
    #[inline]
    fn of(imm: u32) -> Self {
        match imm >> 29 {
            0 => Self::Request,
            1 => Self::Reply,
            2 => Self::Returned,
            3 => Self::Done,
            4 => Self::Unanswered,
            5 => Self::Grant,
            6 => Self::Placed,
            _ => Self::Fragment,
        }
    }

    /// Returns the number of words in front of those of the handler.
    #[inline]
    pub fn own_words(self) -> usize {
        match self {
            Self::Returned | Self::Unanswered => 1,
            Self::Placed | Self::Fragment => 2,
            _ => 0,
        }
    }
}

/// The header of a message, which fits an immediate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    pub kind: Kind,
    pub words: usize,
    pub handler: u16,
    pub call: u16,
}

impl Header {
    /// Returns whether the message is a request.
    #[inline]
    pub fn asks(self) -> bool {
        matches!(self.kind, Kind::Request | Kind::Placed | Kind::Fragment)
    }

    /// Returns whether the message cost its sender a credit: a request, or a
    /// [late answer](crate::wire::awaits::LATE).
    #[inline]
    pub fn costs_credit(self) -> bool {
        self.asks() || self.kind == Kind::Unanswered && self.handler == awaits::LATE
    }

    /// Returns whether a word in front of the words holds their number.
    #[inline]
    pub fn is_wide(self) -> bool {
        self.words >= WIDE
    }

    /// Returns the number of bytes between the header's eight bytes and the words.
    #[inline]
    pub fn between(self) -> usize {
        if self.is_wide() { 8 } else { 0 }
    }

    /// Encodes the header as an immediate.
    #[inline]
    pub fn imm(self) -> Imm {
        #[expect(clippy::cast_possible_truncation, reason = "31 at most")]
        let words = self.words.min(WIDE) as u32;
        let kind = self.kind as u32;
        let (handler, call) = (u32::from(self.handler), u32::from(self.call));
        debug_assert!(handler < 4096 && call < 4096);
        Imm(kind << 29 | words << 24 | handler << 12 | call)
    }

    /// Decodes the header in an immediate. If it [is wide](Self::is_wide), the number of words is
    /// the caller's to read.
    #[inline]
    pub fn from_imm(Imm(imm): Imm) -> Self {
        let kind = Kind::of(imm);
        let words = (imm >> 24 & 0x1F) as usize;
        let (handler, call) = ((imm >> 12 & 0xFFF) as u16, (imm & 0xFFF) as u16);
        Self { kind, words, handler, call }
    }
}

/// The metadata of a write that places a payload and runs a handler: the header of the message, and
/// the payload's offset in the segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    pub header: Header,
    pub offset: u64,
}

impl Placement {
    pub fn metadata(self) -> Metadata {
        let Imm(imm) = self.header.imm();
        let ([a, b, c, d], [e, f, g, h, i, j, k, l]) =
            (imm.to_be_bytes(), self.offset.to_be_bytes());
        Metadata::new(&[a, b, c, d, e, f, g, h, i, j, k, l]).expect("it has room for them")
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

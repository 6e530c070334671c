//! What messages look like between endpoints.
//!
//! A send carries one message or several: each is a [`Header`] and the length of its payload, four
//! bytes each, in whose upper eleven bits it says how many sends of the other's [were
//! taken](crate::proofs), its arguments, eight bytes each, and its payload, all with the lowest
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

use doorbell_verbs::{Imm, Metadata, RemoteMemory};

use crate::sizes::Size;
use crate::tag::Tag;
use crate::words::MOST_WORDS;

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
    Carried,
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
        Self::Carried,
    ];

    /// How many words there are in front of the handler's own.
    #[inline]
    pub fn own_words(self) -> usize {
        match self {
            Self::Returned => 1,
            Self::Placed | Self::Carried => 2,
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
        matches!(self.kind, Kind::Request | Kind::Placed | Kind::Carried)
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

/// What the request of an endpoint to another, by [`SYSTEM`], says in its first word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Whether the handlers in the payload are the same as the other's, as far as both have them.
    Compare = 1,
    /// That the tag in the second word is shown from now on; without a second word, none. The
    /// answer says where payloads may be placed: an address, a key, a length. It has no words if
    /// the tag is not admitted: then what was shown before is shown still.
    Show = 2,
    /// That the link has no users on this side any more. The answer is 1 if it has on the other
    /// side; 0 if not, and the link is to be ended: see [`life`](crate::life).
    Leave = 3,
    /// That credits are wanted back which are not used. The answer says how many come back.
    Recall = 4,
    /// That the segment is to be mapped. The answer is 1 if it is granted for that.
    Lend = 5,
    /// What the [named](crate::names) handlers are. The second word is how many bytes of the
    /// listing are known. The answer says how many there are in all, and has those that follow.
    Names = 6,
}

/// What a message of [`Kind::Unanswered`] says of a call, in the field of the handler.
pub mod awaits {
    /// Nothing is replied.
    pub const ENDS: u16 = 0;
    /// Are the [calls](super::packed) in the words still awaited? It is asked by whoever handles
    /// them.
    pub const ASKED: u16 = 1;
    /// The answer: a bit for each of them, from the lowest on, which is set if nobody awaits it.
    pub const TOLD: u16 = 2;
}

/// How many calls one question is about: as many as words allow that go in any message.
pub const CALLS_ASKED: usize = 4 * MOST_WORDS;

/// The numbers of calls as words, four in each, lowest first, and zeros behind them.
pub fn packed(calls: &[u16]) -> impl Iterator<Item = u64> {
    let word = |four: &[u16]| four.iter().rev().fold(0, |word, &call| word << 16 | u64::from(call));
    calls.chunks(4).map(word)
}

/// The numbers of calls that [`packed`] has put into words.
pub fn unpacked(words: &[u64]) -> impl Iterator<Item = u16> {
    let four = |&word: &u64| [0, 16, 32, 48].map(|shift| (word >> shift) as u16);
    words.iter().flat_map(four).take(CALLS_ASKED)
}

impl Ask {
    pub fn from_word(word: u64) -> Option<Self> {
        [Self::Compare, Self::Show, Self::Leave, Self::Recall, Self::Lend, Self::Names]
            .into_iter()
            .find(|&ask| ask as u64 == word)
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

/// What endpoints tell each other when they meet: the private data of the connection's request and
/// of its reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// Which messages the connection is for.
    pub size: Size,
    /// The tag that is shown, if one is.
    pub tag: Option<Tag>,
    /// Memory in which others may place payloads.
    pub segment: RemoteMemory,
    /// What tells the endpoint's handlers from others, as far as its program has chosen their
    /// places.
    pub handlers: u64,
    pub nature: Nature,
}

/// What does not change of an endpoint while a peer is connected to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nature {
    /// Whether nobody else has that number, for it was drawn.
    pub unique: bool,
    /// Whether it takes payloads that are placed by a write with metadata.
    pub metadata: bool,
    /// The endpoint's own service, by which others know it.
    pub service: u64,
    /// How many requests the other may have under way to it.
    pub credits: u16,
    /// How many requests it will have under way to the other, as far as it is sure to be able to.
    pub limit: u16,
    /// The longest payload that it takes in a message.
    pub payload: u32,
    /// How long it waits for a reply.
    pub patience: u32,
}

impl Hello {
    const MAGIC: [u8; 3] = *b"AM\x04";
    const UNIQUE: u8 = 1;
    const METADATA: u8 = 2;
    /// A tag is shown.
    const TAGGED: u8 = 16;
    /// Behind those, of two bits.
    const SIZE: u32 = 2;
    const LEN: usize = 40 + RemoteMemory::ENCODED;

    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let flag = |is: bool, flag| if is { flag } else { 0 };
        let Self { nature, .. } = self;
        let flags = flag(nature.unique, Self::UNIQUE)
            | flag(nature.metadata, Self::METADATA)
            | flag(self.tag.is_some(), Self::TAGGED)
            | (self.size as u8) << Self::SIZE;
        let parts: [&[u8]; 10] = [
            &Self::MAGIC,
            &[flags],
            &nature.service.to_be_bytes(),
            &self.tag.map_or(0, |Tag(tag)| tag).to_be_bytes(),
            &nature.credits.to_be_bytes(),
            &nature.limit.to_be_bytes(),
            &nature.payload.to_be_bytes(),
            &self.handlers.to_be_bytes(),
            &nature.patience.to_be_bytes(),
            &self.segment.to_bytes(),
        ];
        let mut rest = &mut bytes[..];
        for part in parts {
            let (head, tail) = rest.split_at_mut(part.len());
            head.copy_from_slice(part);
            rest = tail;
        }
        bytes
    }

    /// What private data says, if an endpoint wrote it.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
            bytes.split_off(..N)?.first_chunk().copied()
        }
        let bytes = &mut bytes;
        if take(bytes)? != Self::MAGIC {
            return None;
        }
        let [flags] = take(bytes)?;
        let size = Size::ALL[usize::from(flags >> Self::SIZE & 3)];
        let service = u64::from_be_bytes(take(bytes)?);
        let tag = Tag(u64::from_be_bytes(take(bytes)?));
        let tag = (flags & Self::TAGGED != 0).then_some(tag);
        let nature = Nature {
            unique: flags & Self::UNIQUE != 0,
            metadata: flags & Self::METADATA != 0,
            service,
            credits: u16::from_be_bytes(take(bytes)?),
            limit: u16::from_be_bytes(take(bytes)?),
            payload: u32::from_be_bytes(take(bytes)?),
            patience: 0,
        };
        let handlers = u64::from_be_bytes(take(bytes)?);
        let nature = Nature { patience: u32::from_be_bytes(take(bytes)?), ..nature };
        let segment = RemoteMemory::from_bytes(take(bytes)?);
        let takes = nature.payload as usize >= size.least_payload();
        let sound = takes && (1..=MOST_CREDITS).contains(&nature.credits.into());
        sound.then_some(Self { size, tag, segment, handlers, nature })
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

    #[test]
    fn the_numbers_of_calls_are_read_as_they_were_packed() {
        for count in 1..=CALLS_ASKED {
            let calls: Vec<u16> = (1..=count as u16).map(|call| call * 60).collect();
            let words: Vec<u64> = packed(&calls).collect();
            assert!(words.len() <= MOST_WORDS);
            let read: Vec<u16> = unpacked(&words).filter(|&call| call != 0).collect();
            assert_eq!(read, calls);
        }
    }

    #[test]
    fn a_hello_is_read_as_it_was_written_and_nothing_else_is() {
        let nature = Nature {
            unique: true,
            metadata: true,
            service: 1,
            credits: 8,
            limit: 9,
            payload: 4096,
            patience: 4,
        };
        let segment = "10+4096@0000000b".parse().expect("memory");
        let hello = |tag| Hello { size: Size::Medium, tag, segment, handlers: 3, nature };
        for tag in [None, Some(Tag(0)), Some(Tag(u64::MAX))] {
            assert_eq!(Hello::from_bytes(&hello(tag).to_bytes()), Some(hello(tag)));
        }
        let mut bytes = hello(None).to_bytes().to_vec();
        assert_eq!(Hello::from_bytes(&bytes[..bytes.len() - 1]), None);
        bytes[20..22].fill(0);
        assert_eq!(Hello::from_bytes(&bytes), None, "without credits");
        bytes[0] = b'a';
        assert_eq!(Hello::from_bytes(&bytes), None);
    }
}

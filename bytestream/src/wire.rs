//! The wire protocol of byte streams: what the two ends tell each other beside the bytes.
//!
//! When two ends connect, each sends a [`Hello`] in the private data of the connection manager's
//! messages. Afterwards bytes are sent as messages without an immediate, or with an immediate that
//! carries a [`Signal`]. A signal that no bytes go with is an empty message with an immediate.

#![deny(clippy::indexing_slicing, clippy::cast_possible_truncation)]

use doorbell_verbs::Imm;
use thiserror::Error;

/// The first bytes of the private data of byte streams.
const MAGIC: &[u8; 8] = b"DB-BYTES";

/// The version of the protocol. Ends of different versions refuse each other.
pub(crate) const VERSION: u16 = 1;

/// The most credits that an end may give: as many as fit a signal.
pub(crate) const MOST_CREDITS: u16 = 0x7FFF;

/// The segment lengths that an end may choose, in bytes.
pub(crate) const SEGMENTS: std::ops::RangeInclusive<u32> = 64..=1 << 24;

/// The first message of an end, which says how much may be sent to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hello {
    /// The number of messages that the peer may send before this end has read any.
    pub credits: u16,
    /// The most bytes of each of these messages.
    pub segment: u32,
}

/// The error of private data that is not a hello of this version.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub(crate) enum NoHello {
    /// The private data are not those of a byte stream.
    #[error("it does not speak byte streams")]
    Stranger,
    /// The peer speaks another version of the protocol.
    #[error("it speaks version {0} of byte streams, and this side speaks version {VERSION}")]
    Version(u16),
    /// The hello has a number or a length that no end may choose.
    #[error("its hello is invalid: {credits} messages of {segment} bytes")]
    Nonsense {
        /// The number of messages in the hello.
        credits: u16,
        /// The length of messages in the hello.
        segment: u32,
    },
}

impl Hello {
    const LEN: usize = 16;

    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_be_bytes());
        bytes[10..12].copy_from_slice(&self.credits.to_be_bytes());
        bytes[12..].copy_from_slice(&self.segment.to_be_bytes());
        bytes
    }

    /// Reads a hello from private data. Zeros may follow it.
    pub fn parse(private: &[u8]) -> Result<Self, NoHello> {
        let (magic, rest) = private.split_first_chunk().ok_or(NoHello::Stranger)?;
        let &[v, w, c, d, ref segment @ ..] = rest.first_chunk::<8>().ok_or(NoHello::Stranger)?;
        if magic != MAGIC {
            return Err(NoHello::Stranger);
        }
        let [version, credits] = [[v, w], [c, d]].map(u16::from_be_bytes);
        let segment = u32::from_be_bytes(*segment);
        match version {
            VERSION if (1..=MOST_CREDITS).contains(&credits) && SEGMENTS.contains(&segment) => {
                Ok(Self { credits, segment })
            }
            VERSION => Err(NoHello::Nonsense { credits, segment }),
            other => Err(NoHello::Version(other)),
        }
    }
}

/// The reason why a listener refuses a peer that asks for a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub(crate) enum Refusal {
    /// The peer does not speak byte streams.
    #[error("it listens for byte streams, and was asked for another protocol")]
    Stranger,
    /// The peer speaks another version than the listener, which speaks this one.
    #[error("it speaks version {0} of byte streams, and this side speaks version {VERSION}")]
    Version(u16),
    /// The hello of the peer has a number or a length that no end may choose.
    #[error("it found the number or the length of messages in this side's hello invalid")]
    Nonsense,
    /// The NIC of the listener has no queue pair left.
    #[error("its NIC has no queue pair left: close streams there, or give it more queue pairs")]
    Full,
}

impl Refusal {
    /// The refusal of a peer whose hello could not be read.
    pub fn of(why: NoHello) -> Self {
        match why {
            NoHello::Stranger => Self::Stranger,
            NoHello::Version(_) => Self::Version(VERSION),
            NoHello::Nonsense { .. } => Self::Nonsense,
        }
    }

    /// Encodes the refusal as private data: the listener's version, and the number of the reason.
    pub fn to_bytes(self) -> [u8; 11] {
        let which = match self {
            Self::Stranger => 1,
            Self::Version(_) => 2,
            Self::Nonsense => 3,
            Self::Full => 4,
        };
        let mut bytes = [0; 11];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_be_bytes());
        bytes[10] = which;
        bytes
    }

    /// Reads a refusal from private data; `None` if the refusal is not by a listener of byte
    /// streams.
    pub fn parse(private: &[u8]) -> Option<Self> {
        let (magic, rest) = private.split_first_chunk()?;
        let &[v, w, which] = rest.first_chunk()?;
        let version = u16::from_be_bytes([v, w]);
        match which {
            _ if magic != MAGIC => None,
            1 => Some(Self::Stranger),
            2 => Some(Self::Version(version)),
            3 => Some(Self::Nonsense),
            4 => Some(Self::Full),
            _ => None,
        }
    }
}

/// The content of an immediate.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Signal {
    /// The number of credits that the sender of the signal gives back.
    pub credits: u16,
    /// Whether the sender of the signal sends no more bytes.
    pub end: bool,
}

/// The bit of an immediate that says that the stream ends. The credits are in the lower bits.
const END: u32 = 1 << 31;

impl Signal {
    pub fn to_imm(self) -> Imm {
        Imm(u32::from(self.credits) | if self.end { END } else { 0 })
    }

    /// Reads a signal from an immediate; `None` if bits are set that no end sets.
    pub fn parse(Imm(imm): Imm) -> Option<Self> {
        let credits = u16::try_from(imm & !END).ok().filter(|&credits| credits <= MOST_CREDITS)?;
        Some(Self { credits, end: imm & END != 0 })
    }
}

/// A breach of the protocol by a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub(crate) enum Violation {
    /// The peer sent a message with bytes and had no credit for it.
    #[error("a message for which it had no credit")]
    Overrun,
    /// The peer gave back more credits than this end had used.
    #[error("credits for {given} messages, which makes more than the {most} of its hello")]
    Credits { given: u16, most: u16 },
    /// The peer sent a message without bytes and without a signal.
    #[error("a message without bytes and without a signal")]
    Empty,
    /// The peer sent bytes, or another end, after the end of its stream.
    #[error("bytes behind the end of its stream")]
    BehindEnd,
    /// The peer sent an immediate with bits that no end sets.
    #[error("an immediate with unknown bits: {0:#010x}")]
    Signal(u32),
    /// The peer sent something that is not a send, such as a write.
    #[error("something other than a send")]
    NoSend,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_is_read_as_it_is_written_with_zeros_behind() {
        for hello in [
            Hello { credits: 1, segment: 64 },
            Hello { credits: MOST_CREDITS, segment: *SEGMENTS.end() },
        ] {
            let mut private = hello.to_bytes().to_vec();
            private.resize(92, 0);
            assert_eq!(Hello::parse(&private), Ok(hello));
        }
    }

    #[test]
    fn private_data_that_is_no_hello_says_what_it_is_instead() {
        let good = Hello { credits: 8, segment: 4096 }.to_bytes();
        let with = |at: usize, byte: u8| {
            let mut bytes = good;
            *bytes.get_mut(at).expect("it is within the hello") = byte;
            Hello::parse(&bytes)
        };
        assert_eq!(Hello::parse(&good[..15]), Err(NoHello::Stranger));
        assert_eq!(Hello::parse(&[0; 92]), Err(NoHello::Stranger));
        assert_eq!(with(0, b'X'), Err(NoHello::Stranger));
        assert_eq!(with(9, 2), Err(NoHello::Version(2)));
        assert_eq!(with(11, 0), Err(NoHello::Nonsense { credits: 0, segment: 4096 }));
        assert_eq!(with(10, 0x80), Err(NoHello::Nonsense { credits: 0x8008, segment: 4096 }));
        assert!(matches!(with(12, 0xFF), Err(NoHello::Nonsense { .. })));
    }

    #[test]
    fn a_refusal_is_read_as_it_is_written_and_private_data_of_others_is_none() {
        let all = [Refusal::Stranger, Refusal::Version(VERSION), Refusal::Nonsense, Refusal::Full];
        for refusal in all {
            let mut private = refusal.to_bytes().to_vec();
            private.resize(148, 0);
            assert_eq!(Refusal::parse(&private), Some(refusal));
        }
        assert_eq!(Refusal::parse(&[0; 148]), None);
        assert_eq!(Refusal::parse(b"go away"), None);
    }

    #[test]
    fn a_signal_is_read_as_it_is_written_and_unknown_bits_are_none() {
        for credits in [0, 1, MOST_CREDITS] {
            for end in [false, true] {
                let signal = Signal { credits, end };
                assert_eq!(Signal::parse(signal.to_imm()), Some(signal));
            }
        }
        for bit in 15..31 {
            assert_eq!(Signal::parse(Imm(1 << bit)), None);
        }
    }
}

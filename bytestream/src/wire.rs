//! What the two ends of a byte stream say to each other beside the bytes.
//!
//! When they connect, each says hello in the private data of the connection manager's messages.
//! Afterwards bytes go in sends without an immediate, or with one that also signals something, and
//! signals that have no bytes to go with are sends of nothing with an immediate.

use doorbell_verbs::Imm;
use thiserror::Error;

/// What private data of byte streams begins with.
const MAGIC: &[u8; 8] = b"DB-BYTES";

/// The version of all that is written here.
pub(crate) const VERSION: u16 = 1;

/// The most messages that may be under way to an end: so many that a signal has room for them.
pub(crate) const MOST_CREDITS: u16 = 0x7FFF;

/// The lengths that segments may have.
pub(crate) const SEGMENTS: std::ops::RangeInclusive<u32> = 64..=1 << 24;

/// What an end says of itself: how much may be sent to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hello {
    /// How many messages may be on their way to the end, or with it and not read.
    pub credits: u16,
    /// How many bytes each of them has at the most.
    pub segment: u32,
}

/// Private data that is no hello of this version.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub(crate) enum NoHello {
    /// It does not begin as private data of byte streams does.
    #[error("it does not speak byte streams")]
    Stranger,
    /// The other end speaks another version.
    #[error("it speaks version {0} of byte streams, and this side version {VERSION}")]
    Version(u16),
    /// The other end takes numbers or lengths of messages that can't be.
    #[error("it says that it takes {credits} messages of {segment} bytes, which can't be")]
    Nonsense {
        /// How many messages.
        credits: u16,
        /// How long they are.
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

    /// Reads a hello from private data, behind which are zeros.
    pub fn parse(private: &[u8]) -> Result<Self, NoHello> {
        let bytes: &[u8; Self::LEN] = private.first_chunk().ok_or(NoHello::Stranger)?;
        if bytes[..8] != *MAGIC {
            return Err(NoHello::Stranger);
        }
        let short = |at| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let (version, credits) = (short(8), short(10));
        let segment = u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]);
        match version {
            VERSION if (1..=MOST_CREDITS).contains(&credits) && SEGMENTS.contains(&segment) => {
                Ok(Self { credits, segment })
            }
            VERSION => Err(NoHello::Nonsense { credits, segment }),
            other => Err(NoHello::Version(other)),
        }
    }
}

/// Why a listener refuses whoever asks for a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub(crate) enum Refusal {
    /// The asker does not speak byte streams.
    #[error("it listens for byte streams, and was asked for something else")]
    Stranger,
    /// The asker speaks another version than the listener.
    #[error("it speaks version {0} of byte streams, and this side version {VERSION}")]
    Version(u16),
    /// The asker's hello makes no sense.
    #[error("it makes no sense of the numbers and lengths of messages that this side takes")]
    Nonsense,
    /// The listener's NIC has no queue pair left.
    #[error("it has as many connections as it can have")]
    Full,
}

impl Refusal {
    /// The refusal of private data that is no hello.
    pub fn of(why: NoHello) -> Self {
        match why {
            NoHello::Stranger => Self::Stranger,
            NoHello::Version(_) => Self::Version(VERSION),
            NoHello::Nonsense { .. } => Self::Nonsense,
        }
    }

    /// The refusal as private data: the listener's version, and which one it is.
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

    /// Reads a refusal from private data; none if somebody else refused.
    pub fn parse(private: &[u8]) -> Option<Self> {
        let bytes: &[u8; 11] = private.first_chunk()?;
        let version = u16::from_be_bytes([bytes[8], bytes[9]]);
        match bytes[10] {
            _ if bytes[..8] != *MAGIC => None,
            1 => Some(Self::Stranger),
            2 => Some(Self::Version(version)),
            3 => Some(Self::Nonsense),
            4 => Some(Self::Full),
            _ => None,
        }
    }
}

/// What an immediate says.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Signal {
    /// How many more messages with bytes the sender of the signal takes.
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

    /// Reads an immediate; none if it has bits that nobody sets.
    pub fn parse(Imm(imm): Imm) -> Option<Self> {
        let credits = imm & !END;
        let known = credits <= MOST_CREDITS.into();
        known.then_some(Self { credits: credits as u16, end: imm & END != 0 })
    }
}

/// What a peer did that no end of a byte stream does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub(crate) enum Violation {
    #[error("a message for which it had no credit")]
    Overrun,
    #[error("credits for {given} messages, which makes more than the {most} that it said")]
    Credits { given: u16, most: u16 },
    #[error("a message that says nothing")]
    Empty,
    #[error("bytes behind the end of its stream")]
    BehindEnd,
    #[error("an immediate with unknown bits: {0:#010x}")]
    Signal(u32),
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
            bytes[at] = byte;
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

//! The wire protocol of byte streams: what the two ends tell each other beside the bytes.
//!
//! When two ends connect, each sends a [`Hello`] in the private data of the connection manager's
//! messages, which says how many bytes the end takes before its program reads. Afterwards bytes are
//! sent as messages without an immediate, or with an immediate that carries a [`Signal`]. A signal
//! that no bytes go with is an empty message with an immediate.

#![deny(clippy::indexing_slicing, clippy::cast_possible_truncation)]

use doorbell_verbs::Imm;
use thiserror::Error;

/// The first bytes of the private data of byte streams.
const MAGIC: &[u8; 8] = b"DB-BYTES";

/// The version of the protocol. Ends of different versions refuse each other.
pub(crate) const VERSION: u16 = 2;

/// The windows that an end may choose, in bytes. The longest fits a signal.
pub(crate) const WINDOWS: std::ops::RangeInclusive<u32> = 1..=1 << 30;

/// The segment lengths that an end may choose, in bytes.
pub(crate) const SEGMENTS: std::ops::RangeInclusive<u32> = 64..=1 << 24;

/// How many messages that are shorter than a segment an end sends at once. While so many of them
/// are not acknowledged, it gathers what else is written into the next message. Receivers post
/// receives for so many short messages of each stream.
pub(crate) const SHORT_AT_ONCE: usize = 8;

/// The first message of an end, which says how much may be sent to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hello {
    /// The number of bytes that the peer may send before this end's program has read any.
    pub window: u32,
    /// The most bytes of a message.
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
    /// The hello has a window or a segment that no end may choose.
    #[error("its hello is invalid: a window of {window} bytes, in messages of {segment} bytes")]
    Nonsense {
        /// The window in the hello.
        window: u32,
        /// The length of messages in the hello.
        segment: u32,
    },
}

impl Hello {
    const LEN: usize = 18;

    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_be_bytes());
        bytes[10..14].copy_from_slice(&self.window.to_be_bytes());
        bytes[14..].copy_from_slice(&self.segment.to_be_bytes());
        bytes
    }

    /// Reads a hello from private data. Zeros may follow it.
    pub fn parse(private: &[u8]) -> Result<Self, NoHello> {
        let (magic, rest) = private.split_first_chunk().ok_or(NoHello::Stranger)?;
        let (version, rest) = rest.split_first_chunk().ok_or(NoHello::Stranger)?;
        if magic != MAGIC {
            return Err(NoHello::Stranger);
        }
        match u16::from_be_bytes(*version) {
            VERSION => {}
            other => return Err(NoHello::Version(other)),
        }
        let (window, rest) = rest.split_first_chunk().ok_or(NoHello::Stranger)?;
        let segment = rest.first_chunk().ok_or(NoHello::Stranger)?;
        let [window, segment] = [window, segment].map(|number| u32::from_be_bytes(*number));
        match WINDOWS.contains(&window) && SEGMENTS.contains(&segment) {
            true => Ok(Self { window, segment }),
            false => Err(NoHello::Nonsense { window, segment }),
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
    /// The hello of the peer has a window or a segment that no end may choose.
    #[error("it found the window or the length of messages in this side's hello invalid")]
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
    /// The number of bytes that the program at the sender of the signal has read, and of which the
    /// sender has not told before.
    pub read: u32,
    /// Whether the sender of the signal sends no more bytes.
    pub end: bool,
}

/// The bit of an immediate that says that the stream ends. The other bits are the number of bytes.
const END: u32 = 1 << 31;

impl Signal {
    pub fn to_imm(self) -> Imm {
        Imm(self.read | if self.end { END } else { 0 })
    }

    /// Reads a signal from an immediate. Any immediate is a signal.
    pub fn parse(Imm(imm): Imm) -> Self {
        Self { read: imm & !END, end: imm & END != 0 }
    }
}

/// A breach of the protocol by a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub(crate) enum Violation {
    /// The peer sent more bytes than its window had room for.
    #[error("a message of {len} bytes while its window had room for {room}")]
    Overrun {
        /// The length of the message.
        len: u32,
        /// How many bytes the peer was allowed to send.
        room: u32,
    },
    /// The peer says that its program has read more bytes than this end has sent.
    #[error("word that {read} bytes were read, of {sent} that were sent to it and not read")]
    Read {
        /// How many bytes the peer says were read.
        read: u32,
        /// How many bytes were sent and not read before.
        sent: u32,
    },
    /// The peer sent a message without bytes and without a signal.
    #[error("a message without bytes and without a signal")]
    Empty,
    /// The peer sent bytes, or another end, after the end of its stream.
    #[error("bytes behind the end of its stream")]
    BehindEnd,
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
            Hello { window: 1, segment: 64 },
            Hello { window: *WINDOWS.end(), segment: *SEGMENTS.end() },
        ] {
            let mut private = hello.to_bytes().to_vec();
            private.resize(92, 0);
            assert_eq!(Hello::parse(&private), Ok(hello));
        }
    }

    #[test]
    fn private_data_that_is_no_hello_says_what_it_is_instead() {
        let good = Hello { window: 8, segment: 4096 }.to_bytes();
        let with = |at: usize, byte: u8| {
            let mut bytes = good;
            *bytes.get_mut(at).expect("it is within the hello") = byte;
            Hello::parse(&bytes)
        };
        assert_eq!(Hello::parse(&good[..17]), Err(NoHello::Stranger));
        assert_eq!(Hello::parse(&[0; 92]), Err(NoHello::Stranger));
        assert_eq!(with(0, b'X'), Err(NoHello::Stranger));
        assert_eq!(with(9, 3), Err(NoHello::Version(3)));
        assert_eq!(with(13, 0), Err(NoHello::Nonsense { window: 0, segment: 4096 }));
        let window = 0x8000_0008;
        assert_eq!(with(10, 0x80), Err(NoHello::Nonsense { window, segment: 4096 }));
        assert!(matches!(with(14, 0xFF), Err(NoHello::Nonsense { .. })));
        // What a peer of the first version says, whose hello is shorter.
        let first = b"DB-BYTES\0\x01\0\x20\0\0\x80\0";
        assert_eq!(Hello::parse(first), Err(NoHello::Version(1)));
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
    fn a_signal_is_read_as_it_is_written() {
        for read in [0, 1, *WINDOWS.end()] {
            for end in [false, true] {
                let signal = Signal { read, end };
                assert_eq!(Signal::parse(signal.to_imm()), signal);
            }
        }
    }
}

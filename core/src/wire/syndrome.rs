//! The syndrome of an acknowledgement: ACK, RNR NAK, or NAK.

use std::fmt;
use std::time::Duration;

/// The syndrome of an AETH: eight bits that tell the outcome of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Syndrome(u8);

/// The meaning of a [`Syndrome`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The request was accepted. The end-to-end credits are present if the responder counts them.
    Ack(Option<Credits>),
    /// The receiver was not ready (RNR NAK): no receive was posted, and the requester may try again
    /// after this time.
    ReceiverNotReady(RnrTimer),
    /// The request was refused (NAK), for this reason.
    Nak(Nak),
    /// A syndrome that the specification reserves.
    Reserved,
}

/// The reason why a responder refuses a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Nak {
    /// A packet is missing (PSN sequence error), and the requester sends again from the packet that
    /// the NAK names.
    SequenceError = 0,
    /// The queue pair does not accept such a request.
    InvalidRequest = 1,
    /// The memory key, its bounds or its access rights do not allow the access.
    RemoteAccess = 2,
    /// The responder could not carry out the request.
    RemoteOperation = 3,
    /// The request is an invalid reliable datagram.
    InvalidRdRequest = 4,
}

/// End-to-end credits as a 5-bit code, which says for how many more messages the responder has
/// receives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Credits(u8);

/// The RNR timer as a 5-bit code, which says how long to wait before trying again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RnrTimer(u8);

impl Syndrome {
    /// An acknowledgement without credits, as most responders send it.
    pub const ACK: Self = Self(0x1F);

    /// Returns the syndrome with this code.
    #[inline]
    pub const fn from_code(code: u8) -> Self {
        Self(code)
    }

    /// Returns the code on the wire.
    #[inline]
    pub const fn code(self) -> u8 {
        self.0
    }

    /// Returns an acknowledgement with credits.
    pub const fn ack_with(credits: Credits) -> Self {
        Self(credits.0)
    }

    /// Returns an RNR NAK: the receiver is not ready.
    pub const fn not_ready(timer: RnrTimer) -> Self {
        Self(0x20 | timer.0)
    }

    /// Returns a NAK with this reason.
    pub const fn nak(reason: Nak) -> Self {
        Self(0x60 | reason as u8)
    }

    /// Returns what the syndrome means.
    #[inline]
    pub const fn verdict(self) -> Verdict {
        let low = self.0 & 0x1F;
        // The top bit is reserved. If it is set, the rest has no known meaning.
        match (self.0 >> 5, low) {
            (0, 0x1F) => Verdict::Ack(None),
            (0, _) => Verdict::Ack(Some(Credits(low))),
            (1, _) => Verdict::ReceiverNotReady(RnrTimer(low)),
            (3, 0) => Verdict::Nak(Nak::SequenceError),
            (3, 1) => Verdict::Nak(Nak::InvalidRequest),
            (3, 2) => Verdict::Nak(Nak::RemoteAccess),
            (3, 3) => Verdict::Nak(Nak::RemoteOperation),
            (3, 4) => Verdict::Nak(Nak::InvalidRdRequest),
            _ => Verdict::Reserved,
        }
    }
}

impl fmt::Debug for Syndrome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Syndrome({:#04x}: {:?})", self.0, self.verdict())
    }
}

/// Looks up a code of five bits.
#[expect(clippy::indexing_slicing, reason = "five bits name no more than the table has")]
const fn of_code(table: &[u16; 32], code: u8) -> u16 {
    table[(code & 0x1F) as usize]
}

impl Credits {
    /// The counts for the codes 0 to 30: each from 0 to 4, and from then on alternately half as
    /// much again and a third as much again.
    const COUNTS: [u16; 32] = [
        0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
        2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
        // The code 31 is no count: it says that the responder does not count credits.
        0,
    ];

    const MOST: usize = Self::COUNTS[30] as usize;

    /// Returns the largest credits not above `messages`. A responder may promise less than it has.
    #[inline]
    pub const fn at_most(messages: usize) -> Self {
        // There are two counts for each power of two, so the two highest bits give the code. The
        // largest count stands for all larger numbers.
        let messages = if messages > Self::MOST { Self::MOST } else { messages };
        match messages {
            0 => Self(0),
            1 => Self(1),
            _ => {
                let power = messages.ilog2();
                Self(((power * 2) & 0x1E) as u8 | (messages as u64 >> (power - 1) & 1) as u8)
            }
        }
    }

    /// Returns the number of messages that the code stands for.
    #[inline]
    pub const fn messages(self) -> u16 {
        of_code(&Self::COUNTS, self.0)
    }
}

impl RnrTimer {
    /// The times of the codes, in units of ten microseconds.
    const TENS: [u16; 32] = [
        // 655.36 ms does not fit and is given as 0: see `delay`.
        0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
        2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
    ];

    /// Returns the timer with the shortest time that is not below `delay`, or with the longest
    /// time.
    pub fn at_least(delay: Duration) -> Self {
        let found = (1..32).map(Self).find(|timer| timer.delay() >= delay);
        found.unwrap_or(Self(0))
    }

    /// Returns the timer of a 5-bit code. Higher bits are cut off.
    pub const fn from_code(code: u8) -> Self {
        Self(code & 0x1F)
    }

    /// Returns the code on the wire.
    pub const fn code(self) -> u8 {
        self.0
    }

    /// Returns the time to wait.
    #[inline]
    pub const fn delay(self) -> Duration {
        match of_code(&Self::TENS, self.0) {
            0 => Duration::from_micros(655_360),
            tens => Duration::from_micros(tens as u64 * 10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syndromes_say_what_was_put_in() {
        assert_eq!(Syndrome::ACK.verdict(), Verdict::Ack(None));
        for messages in [0, 1, 4, 5, 7, 100, 32768, 1 << 20] {
            let credits = Credits::at_most(messages);
            assert!(usize::from(credits.messages()) <= messages);
            assert_eq!(Syndrome::ack_with(credits).verdict(), Verdict::Ack(Some(credits)));
        }
        assert_eq!(Syndrome::nak(Nak::RemoteAccess).code(), 0x62);
        assert_eq!(Syndrome::from_code(0x60).verdict(), Verdict::Nak(Nak::SequenceError));
        // The code that is computed from the bits is the one that a search finds.
        for messages in 0..=32768_usize {
            let found =
                Credits::COUNTS[..31].iter().rposition(|&count| usize::from(count) <= messages);
            assert_eq!(Some(usize::from(Credits::at_most(messages).0)), found, "{messages}");
        }
        for reserved in [0x40, 0x65, 0x80, 0xFF] {
            assert_eq!(Syndrome::from_code(reserved).verdict(), Verdict::Reserved);
        }
    }

    #[test]
    fn a_receiver_not_ready_timer_is_never_shorter_than_asked() {
        assert_eq!(RnrTimer::from_code(0).delay(), Duration::from_micros(655_360));
        assert_eq!(RnrTimer::from_code(14).delay(), Duration::from_micros(1_280));
        assert_eq!(RnrTimer::from_code(31).delay(), Duration::from_micros(491_520));
        for micros in [0, 10, 11, 1_000, 491_520, 500_000, 655_360] {
            let timer = RnrTimer::at_least(Duration::from_micros(micros));
            assert!(timer.delay() >= Duration::from_micros(micros));
            assert_eq!(Syndrome::not_ready(timer).verdict(), Verdict::ReceiverNotReady(timer));
        }
    }
}

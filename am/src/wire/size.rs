//! Size classes of messages, which may have links, receives and credits of their own.

use crate::wire::MOST_WORDS;

/// The longest piece of a listing of handlers, in bytes. An entry has a name of 255 bytes at most.
/// Every endpoint takes payloads of this length.
pub(crate) const LISTED: usize = 512;

/// The longest payload of a short message.
pub(crate) const SHORT: usize = 64;

/// A size class of messages, which a link carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Size {
    /// Messages of any size.
    Any,
    /// Messages with a payload of at most 64 bytes.
    Short,
    /// Messages with a payload of at most 512 bytes.
    Medium,
    /// Longer messages, where shorter ones have links of their own.
    Long,
}

impl Size {
    /// The classes of shorter messages, the shortest first.
    pub const LESS: [Self; 2] = [Self::Short, Self::Medium];

    /// The classes in the order of their numbers in greetings.
    pub const ALL: [Self; 4] = [Self::Any, Self::Short, Self::Medium, Self::Long];

    /// Returns the number of the class in greetings, of two bits.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the payload that every endpoint takes in messages of this class.
    pub fn least_payload(self) -> usize {
        if self == Self::Short { SHORT } else { LISTED }
    }
}

/// The length of a buffer that takes any message with a payload of this length.
pub(crate) fn buffer_len(payload: usize) -> usize {
    8 * (MOST_WORDS + 2) + payload
}

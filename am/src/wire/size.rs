//! Message sizes that have queue pairs, receives and credits of their own.

use crate::wire::MOST_WORDS;

/// The longest piece of a listing of handlers, in bytes. An entry has a name of 255 bytes at most.
/// Every endpoint takes payloads of this length.
pub(crate) const LISTED: usize = 512;

/// The payload of a short message.
pub(crate) const SHORT: usize = 64;
/// Which messages a link is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Size {
    /// Of any size.
    Any,
    /// With next to no payload.
    Short,
    /// With little.
    Medium,
    /// The others, of those that are told apart.
    Long,
}

impl Size {
    /// Those that have links beside the one for the others, from the shortest on.
    pub const LESS: [Self; 2] = [Self::Short, Self::Medium];

    /// By their numbers.
    pub const ALL: [Self; 4] = [Self::Any, Self::Short, Self::Medium, Self::Long];

    /// What whoever takes such messages takes at least.
    pub fn least_payload(self) -> usize {
        if self == Self::Short { SHORT } else { LISTED }
    }
}

/// The length of a buffer that takes any message with a payload of this length.
pub(crate) fn buffer_len(payload: usize) -> usize {
    8 * (MOST_WORDS + 2) + payload
}

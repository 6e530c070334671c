//! Protection domains, local keys, and the parts of registered memory that a request names.

use std::fmt;

/// A protection domain, whose keys are good only for queue pairs of the same domain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Domain(pub(crate) u32);

/// The key by which the program's own requests name registered memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lkey(pub u32);

impl fmt::Debug for Lkey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lkey({:#010x})", self.0)
    }
}

/// A part of registered memory, by the key that its registration gave.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Segment {
    /// The address at which the segment begins, by the registration's addresses.
    pub address: u64,
    /// How many bytes the segment has.
    pub len: u32,
    /// The local key of the registration.
    pub lkey: Lkey,
}

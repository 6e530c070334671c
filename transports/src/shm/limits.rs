//! How large a device may grow.

use super::links;

/// The limits within which a device of shared memory grows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Limits {
    /// The most peers of the device, up to 4096. Each takes a descriptor.
    pub peers: usize,
    /// The size of each ring in bytes: a power of two from 16 KiB to 4 MiB. A link has two, of the
    /// size that its smaller end allows, and takes the first 16 KiB of each when it is made. The
    /// rest is taken when a writer gets so far ahead of its reader, and kept as long as the link:
    /// streams go two to four times as fast through a ring that is longer than a processor's own
    /// cache.
    ///
    /// Packets that are on their way, or read and not yet answered for, must fit into the ring,
    /// each in whole lines of 64 bytes: 240 KiB always fit into a ring of 256 KiB or more.
    pub ring: usize,
    /// How many bytes this device may take for the rings that it writes, beside up to 256 KiB of
    /// each. What peers take for the rings that they write counts among their limits. A ring that
    /// gets no more memory goes on with what it has.
    pub spare: usize,
}

impl Default for Limits {
    /// Returns limits of 4096 peers, and rings of 4 MiB, for which 64 MiB may be taken.
    fn default() -> Self {
        Self { peers: links::MOST, ring: 4 << 20, spare: 64 << 20 }
    }
}

impl Limits {
    /// Returns how many lines a ring has at most.
    pub(super) fn lines(self) -> u32 {
        (self.ring / 64) as u32
    }
}

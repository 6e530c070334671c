//! Queue pair numbers: 24 bits, for the several processes and cores that share one interface.
//!
//! From the top: a tag that says which process, so that a filter in the kernel can pass each its
//! own; a shard that says which core's NIC within it; and the place in that NIC's table, mixed with
//! random bits so that a number does not tell how many there are.

use thiserror::Error;

use crate::wire::Qpn;

/// Which queue pair numbers are a NIC's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Numbering {
    /// The process, and how many bits it takes.
    pub tag: u32,
    /// See `tag`.
    pub tag_bits: u32,
    /// The shard within the process, and how many bits it takes.
    pub shard: u32,
    /// See `shard`.
    pub shard_bits: u32,
}

impl Default for Numbering {
    /// Process 1 of 64, shard 0 of 16, and so 16,384 queue pairs.
    fn default() -> Self {
        Self { tag: 1, tag_bits: 6, shard: 0, shard_bits: 4 }
    }
}

/// A numbering that can't be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum NumberingError {
    /// The bits do not leave room for a table.
    #[error(
        "{0} bits of tag and shard leave none of 24 for the queue pairs: at most 20 may be used"
    )]
    TooManyBits(u32),
    /// A number needs more bits than it was given.
    #[error("tag {tag} or shard {shard} needs more bits than it was given")]
    TooLarge {
        /// The tag.
        tag: u32,
        /// The shard.
        shard: u32,
    },
}

/// A numbering with its random part.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    /// The number of the first place in the table: what stands above the place, and random bits.
    first: u32,
    /// The last place that there can be: ones for as many bits as the place has.
    last: u32,
}

impl Numbers {
    pub fn new(numbering: Numbering, mix: u32) -> Result<Self, NumberingError> {
        let Numbering { tag, tag_bits, shard, shard_bits } = numbering;
        let used = tag_bits.saturating_add(shard_bits);
        if used > 20 {
            return Err(NumberingError::TooManyBits(used));
        }
        if tag >> tag_bits != 0 || shard >> shard_bits != 0 {
            return Err(NumberingError::TooLarge { tag, shard });
        }
        let bits = 24 - used;
        let (above, last) = (tag << shard_bits | shard, (1 << bits) - 1);
        Ok(Self { first: above << bits | mix & last, last })
    }

    /// How many queue pairs there can be.
    pub fn capacity(self) -> usize {
        self.last as usize + 1
    }

    /// The number of the queue pair at a place of the table, unless that is one that InfiniBand
    /// keeps for itself.
    pub fn number(self, place: u32) -> Option<Qpn> {
        let number = Qpn::new(self.first ^ place);
        (number.get() > Qpn::GSI.get() && number != Qpn::MULTICAST).then_some(number)
    }

    /// The place in the table that a number points to, if it is this NIC's.
    #[inline]
    pub fn place(self, number: Qpn) -> Option<usize> {
        // What does not stand above the place as it does in ours leaves bits there.
        let place = number.get() ^ self.first;
        (place <= self.last).then_some(place as usize)
    }
}

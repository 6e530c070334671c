//! Queue pair numbers: 24 bits, for the several processes and cores that share one interface.
//!
//! From the top, a number consists of a tag for the process, so that a filter in the kernel can
//! pass each process its own packets; a shard for the core's NIC within the process; random bits;
//! and the place in that NIC's table.

use crate::common::tag::tag_of;
use thiserror::Error;

use crate::wire::Qpn;

/// Determines the queue pair numbers that belong to a NIC.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Numbering {
    /// The tag of the process that the NIC belongs to.
    pub tag: u32,
    /// How many bits of a number the tag takes.
    pub tag_bits: u32,
    /// The shard of the NIC within its process.
    pub shard: u32,
    /// How many bits of a number the shard takes.
    pub shard_bits: u32,
}

impl Default for Numbering {
    /// Process 1 of 64, without shards, and so up to 262,144 queue pairs.
    fn default() -> Self {
        Self { tag: 1, tag_bits: 6, shard: 0, shard_bits: 0 }
    }
}

/// Why a numbering is not possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum NumberingError {
    /// The bits of the tag and the shard do not leave room for a table.
    #[error(
        "{0} bits of tag and shard leave none of 24 for the queue pairs: at most 20 may be used"
    )]
    TooManyBits(u32),
    /// The tag or the shard needs more bits than it was given.
    #[error("tag {tag} or shard {shard} needs more bits than it was given")]
    TooLarge {
        /// The tag of the process.
        tag: u32,
        /// The shard within the process.
        shard: u32,
    },
}

/// Makes queue pair numbers of places in a table, and takes them apart.
///
/// AfterBth the tag and the shard there are random bits, drawn for each use of a place, and then the
/// place. Places are taken at random, too: who knows some numbers of a NIC, because they belong to
/// its own connections, knows nothing of the others but that they are different.
#[derive(Clone, Copy)]
pub(crate) struct QpnLayout {
    /// The bits that stand above the random bits: the tag and the shard.
    above: u32,
    /// A mask of all bits below the tag and the shard.
    below: u32,
    /// A mask of the bits of a place.
    places: u32,
    /// How many bits the tag has.
    tag_bits: u32,
}

impl QpnLayout {
    /// Makes the layout for a table of `queue_pairs` places, or of as many as there are numbers
    /// for.
    pub fn new(numbering: Numbering, queue_pairs: usize) -> Result<Self, NumberingError> {
        let Numbering { tag, tag_bits, shard, shard_bits } = numbering;
        let used = tag_bits.saturating_add(shard_bits);
        if used > 20 {
            return Err(NumberingError::TooManyBits(used));
        }
        if tag >> tag_bits != 0 || shard >> shard_bits != 0 {
            return Err(NumberingError::TooLarge { tag, shard });
        }
        let bits = 24 - used;
        let (above, below) = ((tag << shard_bits | shard) << bits, (1 << bits) - 1);
        let capacity = queue_pairs.clamp(1, below as usize + 1);
        Ok(Self { above, below, places: capacity.next_power_of_two() as u32 - 1, tag_bits })
    }

    /// Whether two queue pair numbers of one host bear the tag of the same process.
    pub fn same_process(self, one: Qpn, other: Qpn) -> bool {
        tag_of(one, self.tag_bits) == tag_of(other, self.tag_bits)
    }

    /// How many queue pairs the layout has numbers for.
    pub fn capacity(self) -> usize {
        self.below as usize + 1
    }

    /// Returns a number for the queue pair at a place of the table. The bits between the shard and
    /// the place are taken from `random`. Returns `None` for numbers that InfiniBand reserves.
    pub fn number(self, place: u32, random: u32) -> Option<Qpn> {
        let number = Qpn::new(self.above | random & self.below & !self.places | place);
        (number.get() > Qpn::GSI.get() && number != Qpn::MULTICAST).then_some(number)
    }

    /// Whether a place has any number that InfiniBand does not reserve.
    pub fn can_number(self, place: u32) -> bool {
        [0, u32::MAX].iter().any(|&random| self.number(place, random).is_some())
    }

    /// Returns the place in the table that a number of this NIC's points to. The queue pair there
    /// may have another number.
    #[inline]
    pub fn place(self, number: Qpn) -> usize {
        (number.get() & self.places) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_leads_to_its_place_whatever_its_random_bits() {
        for (queue_pairs, tag_bits) in [(1, 0), (3, 6), (1024, 6), (1 << 14, 6), (1 << 20, 6)] {
            let numbering = Numbering { tag: 0, tag_bits, shard: 3, shard_bits: 4 };
            let numbers = QpnLayout::new(numbering, queue_pairs).unwrap();
            let last = queue_pairs.min(numbers.capacity()) as u32 - 1;
            for (place, random) in [(0, 0), (last, 0), (0, u32::MAX), (last, 0xDEAD_BEEF)] {
                let number = numbers.number(place, random).unwrap();
                assert_eq!(numbers.place(number), place as usize);
                assert_eq!(number.get() >> (20 - tag_bits), 3, "{number}");
            }
        }
    }

    #[test]
    fn numbers_that_infiniband_keeps_for_itself_are_not_given() {
        let least = Numbering { tag: 0, tag_bits: 6, shard: 0, shard_bits: 4 };
        let numbers = QpnLayout::new(least, 16).unwrap();
        assert_eq!((numbers.number(0, 0), numbers.number(1, 0)), (None, None));
        assert!(numbers.can_number(0) && numbers.number(1, 1 << 4).is_some());
        let full = QpnLayout::new(least, 1 << 14).unwrap();
        assert!(!full.can_number(0) && !full.can_number(1) && full.can_number(2));
    }
}

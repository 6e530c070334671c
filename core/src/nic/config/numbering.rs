//! Queue pair numbers: 24 bits, for the several processes and cores that share one interface.
//!
//! From the top: a tag that says which process, so that a filter in the kernel can pass each its
//! own; a shard that says which core's NIC within it; random bits; and the place in that NIC's
//! table.

use thiserror::Error;

use crate::wire::Qpn;

/// Which queue pair numbers are a NIC's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
    /// Process 1 of 64, without shards, and so 262,144 queue pairs.
    fn default() -> Self {
        Self { tag: 1, tag_bits: 6, shard: 0, shard_bits: 0 }
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

/// The tag of the process that a queue pair number belongs to, where tags have so many bits.
pub(crate) fn tag_of(qpn: Qpn, tag_bits: u32) -> u32 {
    qpn.get() >> 24_u32.saturating_sub(tag_bits)
}

/// A numbering, and how its numbers are made of places in a table, and taken apart.
///
/// Behind the tag and the shard there are random bits, drawn for each use of a place, and then the
/// place. Places are taken at random, too: so who knows some numbers of a NIC, because they are
/// those of its own connections, knows nothing of the others but that they are different.
#[derive(Clone, Copy)]
pub(crate) struct QpnLayout {
    /// What stands above the random bits.
    above: u32,
    /// Ones for as many bits as are below the tag and the shard.
    below: u32,
    /// Ones for as many bits as a place has.
    places: u32,
    /// How many bits the tag has.
    tag_bits: u32,
}

impl QpnLayout {
    /// The numbers of a table of `queue_pairs` places, or as many as there are numbers for.
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

    /// Whether two queue pair numbers of one host bear the same process's tag.
    pub fn same_process(self, one: Qpn, other: Qpn) -> bool {
        tag_of(one, self.tag_bits) == tag_of(other, self.tag_bits)
    }

    /// How many queue pairs there can be.
    pub fn capacity(self) -> usize {
        self.below as usize + 1
    }

    /// A number for the queue pair at a place of the table, of which the bits that are neither
    /// above nor the place are taken from `random`: unless it is one that InfiniBand keeps for
    /// itself.
    pub fn number(self, place: u32, random: u32) -> Option<Qpn> {
        let number = Qpn::new(self.above | random & self.below & !self.places | place);
        (number.get() > Qpn::GSI.get() && number != Qpn::MULTICAST).then_some(number)
    }

    /// Whether a place has a number at all that InfiniBand does not keep for itself.
    pub fn can_number(self, place: u32) -> bool {
        [0, u32::MAX].iter().any(|&random| self.number(place, random).is_some())
    }

    /// The place in the table that a number points to, if it is this NIC's: the queue pair there
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

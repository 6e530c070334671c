//! The match bits of a group's messages.

use crate::call::Common;
use crate::operation::Operation;

/// The parts of a message's match bits, from the highest bits to the lowest:
///
/// | bits | part |
/// |---|---|
/// | 2 | the class |
/// | 4 | the kind of the collective |
/// | 10 | the round of the collective's schedule |
/// | 24 | what the members' calls have in [`Common`] |
/// | 24 | the number of the collective |
///
/// A receive compares the class and the number, and takes messages of one member. The other parts
/// follow from these if all members do the same, and are compared when the message has come. In
/// messages from one member to another, the lower 32 bits are the tag that the program has given,
/// and the receive compares all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag {
    pub operation: Operation,
    pub round: u32,
    pub common: Common,
    pub number: u32,
}

/// The class of messages of collectives.
const COLLECTIVE: u64 = 0;
/// The class of messages from one member to another.
const DIRECT: u64 = 1;

/// The bits of the class of a message.
const CLASS: u64 = 0b11 << 62;
/// The bits of the number of a collective. Later numbers begin anew from 0.
const NUMBER: u64 = 0xFF_FFFF;
/// The bits of the round.
const ROUND: u64 = 0x3FF << 48;
/// The most members of a group over links, whose ranks tags tell apart.
pub const MOST_MEMBERS: usize = 1 << 16;
/// The number of rounds that the bits tell apart. Later ones begin anew from 0.
const ROUNDS: u32 = 1 << 10;

impl Tag {
    /// Returns the bits of a message.
    pub fn bits(self) -> u64 {
        let round = u64::from(self.round % ROUNDS);
        let rest = self.operation.code() << 58 | round << 48;
        match self.operation {
            Operation::Direct => DIRECT << 62 | rest | u64::from(self.number),
            _ => {
                let number = u64::from(self.number) & NUMBER;
                COLLECTIVE << 62 | rest | u64::from(self.common.bits()) << 24 | number
            }
        }
    }

    /// Returns the bits that receives compare.
    pub fn mask(self) -> u64 {
        match self.operation {
            Operation::Direct => CLASS | 0xFFFF_FFFF,
            _ => CLASS | NUMBER,
        }
    }

    /// Returns the round of a message that has come. Returns `None` if anything else is not as in
    /// this tag.
    pub fn round_of(self, bits: u64) -> Option<u32> {
        let round = (bits >> 48) as u32 % ROUNDS;
        ((bits ^ self.bits()) & !ROUND == 0).then_some(round)
    }

    /// Returns the kind of the collective that a message which has come belongs to, and what that
    /// has in common. Returns `None` if no member sends such bits.
    pub fn call_of(bits: u64) -> Option<(Operation, Common)> {
        let operation = Operation::from_code(bits >> 58 & 0xF)?;
        Some((operation, Common::of_bits((bits >> 24) as u32)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_collective_differ_in_bits_that_receives_do_not_compare() {
        let common = Common::of_bits(0xAB_CDEF);
        let one = Tag { operation: Operation::Gather, round: 3, common, number: 7 };
        let other = Tag { operation: Operation::AllToAll, round: 1023, ..one };
        assert_eq!(one.bits() & one.mask(), other.bits() & other.mask());
        for tag in [one, other] {
            assert_eq!(Tag::call_of(tag.bits()), Some((tag.operation, common)));
            assert_eq!(Tag { round: 0, ..tag }.round_of(tag.bits()), Some(tag.round));
        }
        assert_eq!(one.round_of(other.bits()), None);
        assert_eq!(one.round_of(Tag { common: Common::of_bits(0), ..one }.bits()), None);
        let later = Tag { number: 8, ..one };
        assert_ne!(one.bits() & one.mask(), later.bits() & one.mask());
        let direct = Tag { operation: Operation::Direct, number: u32::MAX, ..one };
        assert_ne!(one.bits() & one.mask(), direct.bits() & one.mask());
        assert_eq!(direct.bits() & direct.mask(), DIRECT << 62 | 0xFFFF_FFFF);
        for tag in [one, other, later, direct] {
            assert_eq!(tag.bits() >> 63, 0, "the highest bit is left to the links");
        }
        assert_eq!(Tag::call_of(u64::MAX), None);
    }
}

//! The match bits of a group's messages.

use super::operation::Operation;

/// The parts of a message's match bits, from the highest bits to the lowest:
///
/// | bits | part |
/// |---|---|
/// | 2 | the class |
/// | 4 | the kind of the collective |
/// | 10 | the round of the collective's schedule |
/// | 16 | the rank of the sender |
/// | 32 | the number of the collective, or the tag that the program has given |
///
/// A receive compares the class, the sender and the number. The collective and the round follow
/// from these if all members do the same, and are compared when the message has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag {
    pub operation: Operation,
    pub round: u32,
    pub from: usize,
    pub number: u32,
}

/// The class of messages of collectives.
const COLLECTIVE: u64 = 0;
/// The class of messages from one member to another.
const DIRECT: u64 = 1;
/// The class of messages about the group.
const CONTROL: u64 = 2;

/// The bits that receives compare.
pub const MASK: u64 = 0b11 << 62 | 0xFFFF << 32 | 0xFFFF_FFFF;
/// The most members whose ranks the bits tell apart.
pub const MOST_MEMBERS: usize = 1 << 16;
/// The number of rounds that the bits tell apart. Later ones begin anew from 0.
const ROUNDS: u32 = 1 << 10;

impl Tag {
    /// Returns the bits of a message.
    pub fn bits(self) -> u64 {
        let class = if self.operation == Operation::Direct { DIRECT } else { COLLECTIVE };
        let round = u64::from(self.round % ROUNDS);
        class << 62
            | self.operation.code() << 58
            | round << 48
            | (self.from as u64 & 0xFFFF) << 32
            | u64::from(self.number)
    }

    /// Returns the kind of the collective and the round of a message that has come. Returns `None`
    /// if no member sends such bits.
    pub fn of_bits(bits: u64) -> Option<(Operation, u32)> {
        let operation = Operation::from_code(bits >> 58 & 0xF)?;
        Some((operation, (bits >> 48) as u32 % ROUNDS))
    }
}

/// The bits of a message about the group: of the kind `kind`, from the member `from`.
pub fn control(kind: u8, from: usize, number: u32) -> u64 {
    CONTROL << 62 | u64::from(kind) << 58 | (from as u64 & 0xFFFF) << 32 | u64::from(number)
}

/// The rank of the sender, and the number, of a message about the group.
pub fn of_control(bits: u64) -> (usize, u32) {
    ((bits >> 32 & 0xFFFF) as usize, bits as u32)
}

/// The bits that say of which kind a message about the group is.
pub const CONTROL_KIND: u64 = 0b11_1111 << 58;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_collective_differ_in_bits_that_receives_do_not_compare() {
        let one = Tag { operation: Operation::Gather, round: 3, from: 5, number: 7 };
        let other = Tag { operation: Operation::AllToAll, round: 1023, ..one };
        assert_eq!(one.bits() & MASK, other.bits() & MASK);
        assert_eq!(Tag::of_bits(one.bits()), Some((Operation::Gather, 3)));
        assert_eq!(Tag::of_bits(other.bits()), Some((Operation::AllToAll, 1023)));
        for different in [Tag { from: 4, ..one }, Tag { number: 8, ..one }] {
            assert_ne!(one.bits() & MASK, different.bits() & MASK);
        }
        let direct = Tag { operation: Operation::Direct, ..one };
        assert_ne!(one.bits() & MASK, direct.bits() & MASK);
        assert_eq!(of_control(control(3, 65_535, u32::MAX)), (65_535, u32::MAX));
        assert_eq!(Tag::of_bits(u64::MAX), None);
    }
}

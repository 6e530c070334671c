//! Atomic changes of a value in shared memory.

use std::sync::atomic::{AtomicU64, Ordering};

use doorbell_collectives::operators;
use doorbell_verbs::{AccessError as OutOfRegion, Region};

use crate::element::Element;

/// A number that processes can change atomically in shared memory: `u64`, `i64`, `f64`, `u32`,
/// `i32` and `f32`.
///
/// A change is atomic with respect to all other changes of the number, whichever processes and
/// carriers make them.
pub trait Atomic: Element + private::Bits + operators::Number + PartialEq + Send {}

/// The conversions of numbers to bits and back, in a private trait, so that other crates can't
/// implement `Atomic`.
pub(crate) mod private {
    use super::Kind;

    pub trait Bits: Copy {
        const KIND: Kind;
        fn to_bits(self) -> u64;
        fn of_bits(bits: u64) -> Self;
    }
}

/// The types of numbers that can be changed atomically.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    U64,
    I64,
    F64,
    U32,
    I32,
    F32,
}

impl Kind {
    const ALL: [Self; 6] = [Self::U64, Self::I64, Self::F64, Self::U32, Self::I32, Self::F32];

    /// Whether RDMA's fetch-and-add can add to numbers of this type.
    pub(crate) const fn is_added_by_rdma(self) -> bool {
        matches!(self, Self::U64 | Self::I64)
    }

    /// How many bytes a number of this type has.
    pub(crate) const fn size(self) -> usize {
        match self {
            Self::U64 | Self::I64 | Self::F64 => 8,
            Self::U32 | Self::I32 | Self::F32 => 4,
        }
    }
}

macro_rules! numbers {
    ($($number:ident: $kind:ident, $bits:ident;)+) => {$(
        impl Atomic for $number {}

        impl private::Bits for $number {
            const KIND: Kind = Kind::$kind;

            #[inline]
            fn to_bits(self) -> u64 {
                u64::from($bits::from_ne_bytes(self.to_ne_bytes()))
            }

            #[inline]
            fn of_bits(bits: u64) -> Self {
                Self::from_ne_bytes((bits as $bits).to_ne_bytes())
            }
        }
    )+};
}

numbers! {
    u64: U64, u64;
    i64: I64, u64;
    f64: F64, u64;
    u32: U32, u32;
    i32: I32, u32;
    f32: F32, u32;
}

/// An atomic change of a value, by one operand or two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Verb {
    Add,
    Min,
    Max,
    Swap,
    /// Replaces a value that equals the first operand by the second operand.
    CompareSwap,
    And,
    Or,
    Xor,
}

/// An atomic change of a number, and the type of that number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Change {
    pub verb: Verb,
    pub kind: Kind,
}

impl Verb {
    const ALL: [Self; 8] = [
        Self::Add,
        Self::Min,
        Self::Max,
        Self::Swap,
        Self::CompareSwap,
        Self::And,
        Self::Or,
        Self::Xor,
    ];

    /// How many operands the change takes.
    pub const fn operands(self) -> usize {
        if matches!(self, Self::CompareSwap) { 2 } else { 1 }
    }
}

impl Change {
    /// The change encoded in six bits: the type in the upper three, the verb in the lower three.
    pub const fn code(self) -> u8 {
        (self.kind as u8) << 3 | self.verb as u8
    }

    /// Decodes a change from its six bits; `None` if they stand for no type.
    pub fn of(code: u8) -> Option<Self> {
        let kind = *Kind::ALL.get(usize::from(code >> 3))?;
        Some(Self { verb: Verb::ALL[usize::from(code & 7)], kind })
    }

    /// The bits of the value after the change, given the bits of the value before.
    #[inline]
    fn after(self, before: u64, operand: [u64; 2]) -> u64 {
        use private::Bits;
        fn number<N: Bits + operators::Number + PartialEq>(
            verb: Verb,
            before: u64,
            [one, two]: [u64; 2],
        ) -> u64 {
            let (old, new) = (N::of_bits(before), N::of_bits(one));
            match verb {
                Verb::Add => operators::sum(old, new).to_bits(),
                Verb::Min => operators::min(old, new).to_bits(),
                Verb::Max => operators::max(old, new).to_bits(),
                Verb::Swap => one,
                Verb::CompareSwap => {
                    if before == one {
                        two
                    } else {
                        before
                    }
                }
                Verb::And => before & one,
                Verb::Or => before | one,
                Verb::Xor => before ^ one,
            }
        }
        match self.kind {
            Kind::U64 => number::<u64>(self.verb, before, operand),
            Kind::I64 => number::<i64>(self.verb, before, operand),
            Kind::F64 => number::<f64>(self.verb, before, operand),
            Kind::U32 => number::<u32>(self.verb, before, operand),
            Kind::I32 => number::<i32>(self.verb, before, operand),
            Kind::F32 => number::<f32>(self.verb, before, operand),
        }
    }

    /// Changes the number at `offset` of a region atomically, and returns the bits of the value
    /// before. The error is an offset that is out of bounds or not aligned to the number's size.
    #[inline]
    pub fn apply(
        self,
        region: &Region,
        offset: usize,
        operand: [u64; 2],
    ) -> Result<u64, OutOfRegion> {
        let (word, shift, mask) = number_at(region, offset, self.kind.size())?;
        match (self.verb, self.kind) {
            (Verb::Add, Kind::U64 | Kind::I64) => {
                return Ok(word.fetch_add(operand[0], Ordering::AcqRel));
            }
            (Verb::Swap, Kind::U64 | Kind::I64 | Kind::F64) => {
                return Ok(word.swap(operand[0], Ordering::AcqRel));
            }
            _ => {}
        }
        Ok(update(word, shift, mask, |before| self.after(before, operand)))
    }
}

/// The word of a region that a number of `size` bytes lies in, the position of the number's lowest
/// bit in that word, and the mask of the number's bits.
#[inline]
pub(crate) fn number_at(
    region: &Region,
    offset: usize,
    size: usize,
) -> Result<(&AtomicU64, u32, u64), OutOfRegion> {
    let len = region.len();
    if offset.checked_add(size).is_none_or(|end| end > len) {
        return Err(OutOfRegion::OutOfBounds { offset, len: size, region: len });
    }
    if !offset.is_multiple_of(size) {
        return Err(OutOfRegion::Misaligned { offset });
    }
    let word = &region.words()[offset / 8];
    if size == 8 {
        return Ok((word, 0, u64::MAX));
    }
    let from_low = if cfg!(target_endian = "little") { offset % 8 } else { 8 - size - offset % 8 };
    Ok((word, from_low as u32 * 8, u64::MAX >> (64 - 8 * size)))
}

/// Replaces a number within a word atomically by what `change` makes of it, and returns the number
/// before. If another thread changes the word meanwhile, `change` is called again.
#[inline]
pub(crate) fn update(
    word: &AtomicU64,
    shift: u32,
    mask: u64,
    mut change: impl FnMut(u64) -> u64,
) -> u64 {
    let mut there = word.load(Ordering::Acquire);
    loop {
        let before = there >> shift & mask;
        let after = there & !(mask << shift) | (change(before) & mask) << shift;
        match word.compare_exchange_weak(there, after, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return before,
            Err(other) => there = other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::private::Bits;
    use super::*;

    #[test]
    fn numbers_of_four_bytes_leave_their_neighbours_alone() {
        let region = Region::new(16);
        region.write_at(0, &[0xff; 16]).unwrap();
        for offset in [0, 4, 8, 12] {
            let change = Change { verb: Verb::Swap, kind: Kind::U32 };
            assert_eq!(change.apply(&region, offset, [7, 0]), Ok(u32::MAX.into()));
        }
        let mut bytes = [0; 16];
        region.read_at(0, &mut bytes).unwrap();
        assert_eq!(bytes, *[7u32.to_ne_bytes(); 4].as_flattened());
        let misplaced = Change { verb: Verb::Add, kind: Kind::U32 }.apply(&region, 2, [1, 0]);
        assert_eq!(misplaced, Err(OutOfRegion::Misaligned { offset: 2 }));
    }

    #[test]
    fn every_change_has_a_code_of_its_own() {
        for verb in Verb::ALL {
            for kind in Kind::ALL {
                let change = Change { verb, kind };
                assert_eq!(Change::of(change.code()), Some(change));
            }
        }
        assert_eq!(Change::of(6 << 3), None);
    }

    #[test]
    fn signed_numbers_and_floats_are_compared_as_such() {
        let region = Region::new(8);
        let run = |verb, kind, operand: u64| {
            Change { verb, kind }.apply(&region, 0, [operand, 0]).unwrap();
            region.load(0).unwrap()
        };
        run(Verb::Swap, Kind::I64, (-5i64).to_bits());
        assert_eq!(run(Verb::Max, Kind::I64, 3), 3);
        assert_eq!(run(Verb::Min, Kind::I64, (-7i64).to_bits()), (-7i64).to_bits());
        run(Verb::Swap, Kind::F64, (-0.5f64).to_bits());
        assert_eq!(run(Verb::Add, Kind::F64, 2.0f64.to_bits()), 1.5f64.to_bits());
        assert_eq!(run(Verb::Min, Kind::F64, (-1.0f64).to_bits()), (-1.0f64).to_bits());
    }
}

//! A mark of what the members of a reduction give: the type of the elements, and the operator that
//! combines them.
//!
//! The mark is behind the elements of each message, so that elements of different types which have
//! the same length, or of different operators, are not combined.

use std::any::type_name;
use std::hash::{DefaultHasher, Hasher};

use bytes::{Bytes, BytesMut};

use crate::operators::{self, Operator};

/// The type and the operator that members which combine elements must have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// A digest of the name of the elements' type.
    of_type: u32,
    /// The operator, or `None` for one of the program's own, of which nobody knows what it computes.
    operator: Option<Operator>,
}

/// The difference of two marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Differ {
    /// The elements are of different types.
    Types,
    /// The elements are combined by different operators.
    Operators {
        /// The operator of this mark.
        here: Operator,
        /// The operator of the other mark.
        there: Operator,
    },
}

impl Mark {
    /// The number of bytes of a mark.
    pub const LEN: usize = 5;

    /// The mark of values of a type that are not combined.
    pub fn of<T>() -> Self {
        Self::named(type_name::<T>(), None)
    }

    /// The mark of elements of the type `T` that an operator of the type `O` combines.
    pub fn of_operator<T, O>() -> Self {
        Self::named(type_name::<T>(), operators::named(type_name::<O>()))
    }

    /// The mark of elements whose type has a name, and of their operator.
    fn named(type_name: &str, operator: Option<Operator>) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(type_name.as_bytes());
        Self { of_type: hasher.finish() as u32, operator }
    }

    /// Returns the digest of the elements' type.
    pub fn of_type(self) -> u32 {
        self.of_type
    }

    /// Returns the bytes of the mark, which are at the end of a message.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let [a, b, c, d] = self.of_type.to_le_bytes();
        [a, b, c, d, self.operator.map_or(0, |operator| operator as u8)]
    }

    /// Makes a message of elements and their mark.
    pub fn put(self, elements: &[u8]) -> Bytes {
        let mut message = BytesMut::with_capacity(elements.len() + Self::LEN);
        message.extend_from_slice(elements);
        message.extend_from_slice(&self.to_bytes());
        message.freeze()
    }

    /// Splits a message into elements and their mark, or returns `None` if it has none.
    pub fn split(message: Bytes) -> Option<(Bytes, Self)> {
        let (elements, mark) = Self::peel(&message)?;
        let len = elements.len();
        Some((message.slice(..len), mark))
    }

    /// Returns the elements of a message and their mark, or `None` if the message has no mark.
    pub fn peel(message: &[u8]) -> Option<(&[u8], Self)> {
        let (elements, mark) = message.split_last_chunk::<{ Self::LEN }>()?;
        let [of_type @ .., operator] = *mark;
        let operator = Operator::at(operator);
        Some((elements, Self { of_type: u32::from_le_bytes(of_type), operator }))
    }

    /// Checks that another member gives what this one gives. From then on, the mark has the
    /// operator that either names.
    ///
    /// # Errors
    /// Returns the difference.
    pub fn meet(&mut self, other: Self) -> Result<(), Differ> {
        if self.of_type != other.of_type {
            return Err(Differ::Types);
        }
        if let (Some(here), Some(there)) = (self.operator, other.operator)
            && here != there
        {
            return Err(Differ::Operators { here, there });
        }
        self.operator = self.operator.or(other.operator);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_out_of_messages_as_they_went_in() {
        for operator in [Some(Operator::Sum), Some(Operator::Xor), None] {
            let mark = Mark::named("u64", operator);
            assert_eq!(Mark::split(mark.put(b"abc")), Some((Bytes::from_static(b"abc"), mark)));
        }
        assert_eq!(Mark::split(Bytes::from_static(b"four")), None);
    }

    #[test]
    fn operators_of_the_program_count_as_any_and_those_that_have_met_are_remembered() {
        let mark = |operator| Mark::named("u64", operator);
        let mut own = mark(None);
        assert_eq!(own.meet(mark(Some(Operator::Sum))), Ok(()));
        let (here, there) = (Operator::Sum, Operator::Max);
        assert_eq!(own.meet(mark(Some(there))), Err(Differ::Operators { here, there }));
        assert_eq!(own.meet(Mark::of::<f64>()), Err(Differ::Types));
    }
}

//! A mark of what the members of a reduction give: the type of the elements, and the operator that
//! combines them.
//!
//! The mark is behind the elements of each message, so that elements of different types which have
//! the same length, or of different operators, are not combined.

use std::hash::{DefaultHasher, Hasher};

use bytes::{Bytes, BytesMut};

/// An operator whose name members tell each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Operator {
    /// The operator [`sum`](crate::operators::sum).
    Sum = 1,
    /// The operator [`min`](crate::operators::min).
    Min,
    /// The operator [`max`](crate::operators::max).
    Max,
    /// The operator [`and`](crate::operators::and).
    And,
    /// The operator [`or`](crate::operators::or).
    Or,
    /// The operator [`xor`](crate::operators::xor).
    Xor,
}

impl Operator {
    /// The operators in the order of their numbers, which begin with one.
    pub const ALL: [Self; 6] = [Self::Sum, Self::Min, Self::Max, Self::And, Self::Or, Self::Xor];

    /// Returns the name of the function that is the operator.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
            Self::And => "and",
            Self::Or => "or",
            Self::Xor => "xor",
        }
    }

    fn at(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// The type and the operator that members which combine elements must have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// A digest of the name of the elements' type.
    of_type: u32,
    /// The operator, or `None` for one of the program's own, of which nobody knows what it computes.
    pub operator: Option<Operator>,
}

/// The difference of two marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Differ {
    Types,
    Operators { here: Operator, there: Operator },
}

impl Mark {
    /// The number of bytes of a mark.
    pub const LEN: usize = 5;

    /// The mark of elements whose type has a name, and of their operator.
    pub fn new(type_name: &str, operator: Option<Operator>) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(type_name.as_bytes());
        Self { of_type: hasher.finish() as u32, operator }
    }

    /// Returns the digest of the elements' type.
    pub fn of_type(self) -> u32 {
        self.of_type
    }

    /// Makes a message of elements and their mark.
    pub fn put(self, elements: &[u8]) -> Bytes {
        let mut message = BytesMut::with_capacity(elements.len() + Self::LEN);
        message.extend_from_slice(elements);
        message.extend_from_slice(&self.of_type.to_le_bytes());
        message.extend_from_slice(&[self.operator.map_or(0, |operator| operator as u8)]);
        message.freeze()
    }

    /// Splits a message into elements and their mark, or returns `None` if it has none.
    pub fn split(mut message: Bytes) -> Option<(Bytes, Self)> {
        let mark = message.split_off(message.len().checked_sub(Self::LEN)?);
        let (of_type, operator) = mark.split_first_chunk()?;
        let operator = Operator::at(*operator.first()?);
        Some((message, Self { of_type: u32::from_le_bytes(*of_type), operator }))
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
        for operator in Operator::ALL.into_iter().map(Some).chain([None]) {
            let mark = Mark::new("u64", operator);
            assert_eq!(Mark::split(mark.put(b"abc")), Some((Bytes::from_static(b"abc"), mark)));
        }
        assert_eq!(Mark::split(Bytes::from_static(b"four")), None);
    }

    #[test]
    fn operators_of_the_program_count_as_any_and_those_that_have_met_are_remembered() {
        let mark = |operator| Mark::new("u64", operator);
        let mut own = mark(None);
        assert_eq!(own.meet(mark(Some(Operator::Sum))), Ok(()));
        let (here, there) = (Operator::Sum, Operator::Max);
        assert_eq!(own.meet(mark(Some(there))), Err(Differ::Operators { here, there }));
        assert_eq!(own.meet(Mark::new("f64", None)), Err(Differ::Types));
    }
}

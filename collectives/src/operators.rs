//! Operators for [`reduce`](crate::Group::reduce) and [`all_reduce`](crate::Group::all_reduce).
//!
//! Any associative function of two values is an operator. The functions of this module are for
//! numbers, and members that combine by different ones of them are told so. What a function or a
//! closure of the program's own computes nobody can tell, so it counts as the same as any.
//!
//! ```
//! use doorbell_collectives::{Communicator, Group, operators};
//!
//! async fn largest<C: Communicator>(group: &Group<C>, own: f64) -> Result<f64, C::Error> {
//!     Ok(group.all_reduce(vec![own], operators::max).await?[0])
//! }
//! ```

use std::ops::{BitAnd, BitOr, BitXor};

/// An operator whose name members tell each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Operator {
    /// The sum of two numbers, [`sum`].
    Sum = 1,
    /// The lesser of two numbers, [`min`].
    Min,
    /// The greater of two numbers, [`max`].
    Max,
    /// The bits that both integers have, [`and`].
    And,
    /// The bits that either integer has, [`or`].
    Or,
    /// The bits that one of the integers has, [`xor`].
    Xor,
}

impl Operator {
    /// The operators in the order of their numbers, which begin with one.
    const ALL: [Self; 6] = [Self::Sum, Self::Min, Self::Max, Self::And, Self::Or, Self::Xor];

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

    pub(crate) fn at(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// A number that the operators of this module combine. The trait is implemented for the integers
/// and floating-point numbers of up to 64 bits alone, and [`Integer`] for the integers.
pub trait Number: Copy + sealed::Number {}

/// An integer, whose bits the operators of this module combine.
pub trait Integer:
    Number + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self>
{
}

mod sealed {
    pub trait Number {
        fn plus(self, other: Self) -> Self;
        fn lesser(self, other: Self) -> Self;
        fn greater(self, other: Self) -> Self;
    }
}

macro_rules! numbers {
    ($($number:ty: $plus:expr;)+) => {$(
        impl sealed::Number for $number {
            #[inline]
            fn plus(self, other: Self) -> Self {
                $plus(self, other)
            }

            #[inline]
            fn lesser(self, other: Self) -> Self {
                self.min(other)
            }

            #[inline]
            fn greater(self, other: Self) -> Self {
                self.max(other)
            }
        }

        impl Number for $number {}
    )+};
}

macro_rules! integers {
    ($($integer:ty),+) => {
        numbers! { $($integer: <$integer>::wrapping_add;)+ }
        $(impl Integer for $integer {})+
    };
}

integers!(u8, u16, u32, u64, i8, i16, i32, i64);

numbers! {
    f32: std::ops::Add::add;
    f64: std::ops::Add::add;
}

/// The sum of two numbers, wrapping around if they are integers.
pub fn sum<T: Number>(one: T, other: T) -> T {
    one.plus(other)
}

/// The lesser of two numbers.
pub fn min<T: Number>(one: T, other: T) -> T {
    one.lesser(other)
}

/// The greater of two numbers.
pub fn max<T: Number>(one: T, other: T) -> T {
    one.greater(other)
}

/// The bits that both of two integers have.
pub fn and<T: Integer>(one: T, other: T) -> T {
    one & other
}

/// The bits that one of two integers has, or both have.
pub fn or<T: Integer>(one: T, other: T) -> T {
    one | other
}

/// The bits that exactly one of two integers has.
pub fn xor<T: Integer>(one: T, other: T) -> T {
    one ^ other
}

/// Returns the operator of this module whose type has a name, if it is one.
pub(super) fn named(name: &str) -> Option<Operator> {
    let name = name.strip_prefix(concat!(module_path!(), "::"))?;
    let (name, _) = name.split_once('<')?;
    Operator::ALL.into_iter().find(|operator| operator.name() == name)
}

#[cfg(test)]
mod tests {
    use std::any::type_name_of_val;

    use super::*;

    #[test]
    fn operators_of_this_module_are_known_by_their_types_and_others_are_not() {
        let names = [
            type_name_of_val(&sum::<u64>),
            type_name_of_val(&min::<i8>),
            type_name_of_val(&max::<f64>),
            type_name_of_val(&and::<u32>),
            type_name_of_val(&or::<u16>),
            type_name_of_val(&xor::<i64>),
        ];
        assert_eq!(names.map(named), Operator::ALL.map(Some));
        assert_eq!(named(type_name_of_val(&|one: u64, other: u64| one + other)), None);
        assert_eq!(named(type_name_of_val(&u64::wrapping_add)), None);
    }

    #[test]
    fn operators_compute_what_they_are_called() {
        assert_eq!((sum(u8::MAX, 2), sum(1.5, 2.0)), (1, 3.5));
        assert_eq!((min(-1, 3), max(2.0_f32, 1.0)), (-1, 2.0));
        assert_eq!((and(6_u8, 3), or(6_u8, 3), xor(6_u8, 3)), (2, 7, 5));
    }
}

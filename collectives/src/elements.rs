//! What reductions and scans combine: elements of a type, or bytes as a whole.

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;

use bytes::Bytes;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::communicator::Fault;
use crate::mark::{Differ, Mark};

/// A type whose values members combine: plain data, for which any bytes are a valid value.
///
/// Every type that has zerocopy's traits and can be copied is an element: numbers, arrays of
/// numbers, and structs of those without gaps.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be combined by members of a group",
    note = "numbers can, and structs of them with `#[derive(Clone, Copy, FromBytes, IntoBytes, \
            Immutable)]` and `#[repr(C)]`"
)]
pub trait Element: FromBytes + IntoBytes + Immutable + Copy + Send + 'static {}

impl<T: FromBytes + IntoBytes + Immutable + Copy + Send + 'static> Element for T {}

/// A way to combine what members give.
pub trait Combine: Send {
    /// Returns the length in bytes of the pieces that are combined one by one: at least 1, or
    /// `None` if what members give is combined as a whole.
    fn element(&self) -> Option<usize>;

    /// Makes the message of a value.
    fn put(&self, value: &Bytes) -> Bytes;

    /// Takes the value out of a message that has come, which is to be combined with the `own` one.
    ///
    /// # Errors
    /// When the two values can't be combined.
    fn take(&mut self, own: &Bytes, message: Bytes) -> Result<Bytes, Fault>;

    /// Combines the values of lower ranks with those of higher ranks.
    fn combined(&mut self, left: Bytes, right: Bytes) -> Bytes;
}

/// An operator on bytes as a whole, of any length. The left operand takes the result.
#[derive(Debug)]
pub struct Whole<O>(pub O);

impl<O: FnMut(&mut Vec<u8>, &[u8]) + Send> Combine for Whole<O> {
    fn element(&self) -> Option<usize> {
        None
    }

    fn put(&self, value: &Bytes) -> Bytes {
        value.clone()
    }

    fn take(&mut self, _own: &Bytes, message: Bytes) -> Result<Bytes, Fault> {
        Ok(message)
    }

    /// Combines two values by the operator. The bytes of the left one are not copied, unless something else shares
    /// them.
    fn combined(&mut self, left: Bytes, right: Bytes) -> Bytes {
        let mut left = Vec::from(left);
        (self.0)(&mut left, &right);
        left.into()
    }
}

/// An operator on elements of one type, each with those at the same place.
pub struct Each<T, O> {
    operator: O,
    mark: Mark,
    of: PhantomData<fn() -> T>,
}

impl<T, O> fmt::Debug for Each<T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Each").field("mark", &self.mark).finish_non_exhaustive()
    }
}

impl<T: Element, O: FnMut(T, T) -> T + Send> Each<T, O> {
    /// Makes the way to combine elements by an operator on two of them.
    pub fn new(operator: O) -> Self {
        Self { operator, mark: Mark::of_operator::<T, O>(), of: PhantomData }
    }

    /// Returns a digest of the elements' type.
    pub fn of_type(&self) -> u32 {
        self.mark.of_type()
    }
}

impl<T: Element, O: FnMut(T, T) -> T + Send> Combine for Each<T, O> {
    fn element(&self) -> Option<usize> {
        Some(size_of::<T>().max(1))
    }

    fn put(&self, value: &Bytes) -> Bytes {
        self.mark.put(value)
    }

    /// Takes the mark off what has come, and checks that the elements are of the same type as the
    /// own ones, as many, and combined by the same operator.
    fn take(&mut self, own: &Bytes, message: Bytes) -> Result<Bytes, Fault> {
        let (value, mark) = Mark::split(message).ok_or(Fault::Malformed)?;
        self.mark.meet(mark).map_err(|differ| match differ {
            Differ::Types => Fault::Types { here: type_name::<T>() },
            Differ::Operators { here, there } => Fault::Operators { here, there },
        })?;
        let (found, expected) = (value.len(), own.len());
        if found == expected { Ok(value) } else { Err(Fault::Lengths { found, expected }) }
    }

    fn combined(&mut self, left: Bytes, right: Bytes) -> Bytes {
        let (mut left, right) = (elements::<T>(&left), Elements::<T>::of(&right));
        for (left, right) in left.iter_mut().zip(right.as_slice()) {
            *left = (self.operator)(*left, *right);
        }
        bytes(left)
    }
}

/// Elements where they lie, or copied if they lie at an odd place.
enum Elements<'b, T> {
    There(&'b [T]),
    Copied(Vec<T>),
}

impl<'b, T: Element> Elements<'b, T> {
    fn of(bytes: &'b Bytes) -> Self {
        match <[T]>::ref_from_bytes(bytes) {
            Ok(there) => Self::There(there),
            Err(_) => Self::Copied(elements(bytes)),
        }
    }

    fn as_slice(&self) -> &[T] {
        match self {
            Self::There(there) => there,
            Self::Copied(copied) => copied,
        }
    }
}

/// Copies the elements of a message, without bytes at the end that are no whole element.
pub fn elements<T: Element>(message: &[u8]) -> Vec<T> {
    let count = message.len() / size_of::<T>().max(1);
    let mut elements = vec![T::new_zeroed(); count];
    elements.as_mut_slice().as_mut_bytes().copy_from_slice(&message[..count * size_of::<T>()]);
    elements
}

/// Makes a message of elements, without a copy.
pub fn bytes<T: Element>(elements: Vec<T>) -> Bytes {
    struct Owner<T>(Vec<T>);
    impl<T: Element> AsRef<[u8]> for Owner<T> {
        fn as_ref(&self) -> &[u8] {
            self.0.as_slice().as_bytes()
        }
    }
    Bytes::from_owner(Owner(elements))
}

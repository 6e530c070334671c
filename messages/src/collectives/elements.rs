//! Elements of reductions, and the operators that combine them.

use std::any::type_name;
use std::marker::PhantomData;

use bytes::Bytes;
use doorbell_am::Plain;
use zerocopy::{FromBytes, IntoBytes};

use super::mark::Mark;
use super::operators;

/// A way to combine messages of elements.
pub trait Combine: Send {
    /// Returns the length of an element in bytes: at least 1.
    fn element(&self) -> usize;

    /// Returns the name of the elements' type.
    fn type_name(&self) -> &'static str;

    /// Returns the mark of the elements and of what combines them.
    fn mark(&mut self) -> &mut Mark;

    /// Combines two messages of the same number of elements.
    fn combined(&mut self, left: Bytes, right: Bytes) -> Bytes;
}

/// An operator on elements of one type.
pub struct Each<T, O> {
    operator: O,
    mark: Mark,
    of: PhantomData<fn() -> T>,
}

impl<T: Plain, O: FnMut(T, T) -> T + Send> Each<T, O> {
    pub fn new(operator: O) -> Self {
        let mark = Mark::new(type_name::<T>(), operators::named(type_name::<O>()));
        Self { operator, mark, of: PhantomData }
    }

    /// Returns a digest of the elements' type.
    pub fn of_type(&self) -> u32 {
        self.mark.of_type()
    }
}

impl<T: Plain + Send, O: FnMut(T, T) -> T + Send> Combine for Each<T, O> {
    fn element(&self) -> usize {
        size_of::<T>().max(1)
    }

    fn type_name(&self) -> &'static str {
        type_name::<T>()
    }

    fn mark(&mut self) -> &mut Mark {
        &mut self.mark
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

impl<'b, T: Plain> Elements<'b, T> {
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
pub fn elements<T: Plain>(message: &[u8]) -> Vec<T> {
    let count = message.len() / size_of::<T>().max(1);
    let mut elements = vec![T::new_zeroed(); count];
    elements.as_mut_slice().as_mut_bytes().copy_from_slice(&message[..count * size_of::<T>()]);
    elements
}

/// Makes a message of elements, without a copy.
pub fn bytes<T: Plain + Send>(elements: Vec<T>) -> Bytes {
    struct Owner<T>(Vec<T>);
    impl<T: Plain> AsRef<[u8]> for Owner<T> {
        fn as_ref(&self) -> &[u8] {
            self.0.as_slice().as_bytes()
        }
    }
    Bytes::from_owner(Owner(elements))
}

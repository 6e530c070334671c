//! A process's own part of an array, as a slice for the process alone.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use zerocopy::FromBytes as _;

use doorbell_verbs::floor::{PrivatePart, assume_private_part};

use super::allocation::Allocation;
use crate::element::Element;
use crate::error::Error;

/// A process's own part of an array as a slice, while no other process accesses that part: see
/// [`Spread::private`](crate::Spread::private).
pub struct Private<'a, T: Element> {
    allocation: &'a Allocation,
    part: PrivatePart,
    len: usize,
    of: PhantomData<T>,
}

impl<'a, T: Element> Private<'a, T> {
    /// Opens a private epoch, in which this process has the first `len` elements of its part as a
    /// slice for itself.
    pub(super) async fn open(allocation: &'a Allocation, len: usize) -> Result<Self, Error> {
        if allocation.lent.get() {
            let why = "this process has its part already: drop the `Private` that it has";
            return Err(Error::invalid(why));
        }
        allocation.close().await?;
        let world = allocation.world();
        let (from, bytes) = (allocation.from() as usize, len * size_of::<T>());
        let part = assume_private_part(world.0.heap.region(), from, bytes);
        allocation.lent.set(true);
        Ok(Self { allocation, part: part.expect("it is within the heap"), len, of: PhantomData })
    }
}

impl<T: Element> Deref for Private<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        let bytes = self.part.as_bytes();
        // Elements without bytes are allowed: the part is empty then.
        <[T]>::ref_from_bytes_with_elems(bytes, self.len).expect("the part is as long and aligned")
    }
}

impl<T: Element> DerefMut for Private<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        let bytes = self.part.as_bytes_mut();
        <[T]>::mut_from_bytes_with_elems(bytes, self.len).expect("the part is as long and aligned")
    }
}

impl<T: Element> Drop for Private<'_, T> {
    fn drop(&mut self) {
        self.allocation.lent.set(false);
    }
}

impl<T: Element> fmt::Debug for Private<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Private").field("len", &self.len).finish_non_exhaustive()
    }
}

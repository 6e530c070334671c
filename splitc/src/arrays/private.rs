//! A process's own part of an array, as a slice for the process alone.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use zerocopy::FromBytes as _;

use doorbell_verbs::floor::{PrivatePart, assume_private_part};

use super::allocation::Allocation;
use crate::element::Element;
use crate::error::Error;
use crate::global_ptr::GlobalPtr;

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
        // Held until the slice is there, so that no other future of this process shares the part
        // again, or makes a second slice, while this one waits.
        let _changing = allocation.change()?;
        allocation.close().await?;
        let world = allocation.world();
        let (from, bytes) = (allocation.from() as usize, len * size_of::<T>());
        let part = assume_private_part(world.0.heap.region(), from, bytes);
        allocation.lent.set(true);
        Ok(Self { allocation, part: part.expect("it is within the heap"), len, of: PhantomData })
    }
}

impl<'a, T: Element> Private<'a, T> {
    /// The global pointer to an element of the slice, for other processes, which use it behind
    /// [`share`](crate::Spread::share); `None` if the element is not one of this slice.
    ///
    /// ```
    /// # doorbell::splitc::Job::threads(2).run(async |world| {
    /// let array = world.blocked::<u64>(20).await?;
    /// let part = array.private().await?;
    /// let third = part.global(&part[3]).expect("it is of the slice");
    /// assert_eq!(third, array.pointer(10 * world.rank() + 3)?);
    /// assert_eq!(part.local(third), Some(&part[3]));
    /// # drop(part);
    /// # Ok(array.share().await?)
    /// # })?;
    /// # Ok::<(), doorbell::splitc::RunError>(())
    /// ```
    pub fn global(&self, element: &T) -> Option<GlobalPtr<T>> {
        let first = self.as_ptr().addr();
        let past = std::ptr::from_ref(element).addr().checked_sub(first)?;
        let whole = size_of::<T>() > 0 && past.is_multiple_of(size_of::<T>());
        let at = whole.then(|| past / size_of::<T>()).filter(|at| *at < self.len)?;
        Some(self.allocation.pointer(self.allocation.world().rank(), at))
    }

    /// The element of the slice that a global pointer points to, if it points into this slice.
    pub fn local(&self, ptr: GlobalPtr<T>) -> Option<&T> {
        self.get(self.position(ptr)?)
    }

    /// As [`local`](Self::local), to be changed.
    pub fn local_mut(&mut self, ptr: GlobalPtr<T>) -> Option<&mut T> {
        let at = self.position(ptr)?;
        self.get_mut(at)
    }

    fn position(&self, ptr: GlobalPtr<T>) -> Option<usize> {
        let is_own = ptr.rank() == self.allocation.world().rank();
        is_own.then(|| self.allocation.local_of(ptr)).flatten()
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

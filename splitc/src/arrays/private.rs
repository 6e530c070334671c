//! A process's own part of an array, as a slice for the process alone.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use doorbell_verbs::Region;
use doorbell_verbs::floor::PrivatePart;
use zerocopy::{FromBytes as _, FromZeros as _, IntoBytes as _};

use super::allocation::Allocation;
use crate::element::Element;
use crate::error::Error;
use crate::global_ptr::GlobalPtr;
use crate::heap::Guarded;

/// A process's own part of an array as a slice, while no process uses pointers to the array: see
/// [`Spread::private`](crate::Spread::private).
///
/// The slice of `private` is a copy of the part, in memory that no other process reaches: filled
/// when the epoch opens, and copied back when this value is dropped, unless it was only read. So no
/// process can alter it, not even one that breaks this library's rules. The memory of the copy is
/// kept for the next epoch, until the array is freed or dropped. The slice of
/// [`private_in_place`](crate::Spread::private_in_place) is the part itself.
pub struct Private<'a, T: Element> {
    allocation: &'a Allocation,
    memory: Memory,
    len: usize,
    /// Keeps messages of peers off the part.
    _guarded: Guarded<'a>,
    of: PhantomData<T>,
}

/// The memory of a private slice.
pub(super) enum Memory {
    /// A copy of the part, and whether it may have been changed.
    Copy { words: Vec<u64>, changed: bool },
    /// The part itself.
    Part(PrivatePart),
}

impl<'a, T: Element> Private<'a, T> {
    /// Opens a private epoch, in which this process has a copy of the first `len` elements of its
    /// part as a slice for itself.
    pub(super) async fn open(allocation: &'a Allocation, len: usize) -> Result<Self, Error> {
        let words = (len * size_of::<T>()).div_ceil(size_of::<u64>());
        let room = || room(allocation.spare.take(), words);
        let copy = |region: &Region, from: usize, bytes: usize, mut words: Vec<u64>| {
            let read = region.read_at(from, &mut words.as_mut_bytes()[..bytes]);
            read.expect("the part is within the heap");
            Memory::Copy { words, changed: false }
        };
        Self::open_with(allocation, len, room, copy).await
    }

    /// Opens a private epoch with memory that `memory` makes of the own part, when the epoch is
    /// open: of the heap's region, the part's offset, and its length in bytes. It is given what
    /// `room` has made before; if that is an error, the epoch does not open for any process.
    pub(super) async fn open_with<R>(
        allocation: &'a Allocation,
        len: usize,
        room: impl FnOnce() -> Result<R, Error>,
        memory: impl FnOnce(&Region, usize, usize, R) -> Memory,
    ) -> Result<Self, Error> {
        // Held until the slice is there, so that no other future of this process shares the part
        // again, or makes a second slice, while this one waits.
        let _changing = allocation.change()?;
        let room = room();
        let closed = allocation.close(room.is_ok()).await;
        // Of the two errors, that there is no memory here says more.
        let room = room?;
        closed?;
        let heap = &allocation.world().0.heap;
        let (from, bytes) = (allocation.from() as usize, len * size_of::<T>());
        let guarded = heap.guards.guard(from as u64, bytes as u64);
        let memory = memory(heap.region(), from, bytes, room);
        allocation.lent.set(true);
        Ok(Self { allocation, memory, len, _guarded: guarded, of: PhantomData })
    }
}

/// Memory of so many words, of what is left from an earlier epoch if that is enough.
fn room(spare: Vec<u64>, words: usize) -> Result<Vec<u64>, Error> {
    match spare.len() == words {
        true => Ok(spare),
        false => u64::new_vec_zeroed(words).map_err(|_| {
            let bytes = 8 * words;
            Error::invalid(format!(
                "there is no memory for a private copy of {bytes} bytes: `private_in_place` needs none"
            ))
        }),
    }
}

impl<'a, T: Element> Private<'a, T> {
    /// The global pointer to an element of the slice, for other processes, which use it behind
    /// [`share`](crate::Spread::share); `None` if the element is not one of this slice.
    ///
    /// ```
    /// # doorbell_splitc::Job::threads(2).run(async |world| {
    /// let array = world.blocked::<u64>(20).await?;
    /// let part = array.private().await?;
    /// let third = part.global(&part[3]).expect("it is of the slice");
    /// assert_eq!(third, array.pointer(10 * world.rank() + 3)?);
    /// assert_eq!(part.local(third), Some(&part[3]));
    /// # drop(part);
    /// # Ok(array.share().await?)
    /// # })?;
    /// # Ok::<(), doorbell_splitc::RunError>(())
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

    /// How many bytes the slice has.
    fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }
}

impl<T: Element> Deref for Private<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        let bytes = match &self.memory {
            Memory::Copy { words, .. } => &words.as_bytes()[..self.bytes()],
            Memory::Part(part) => part.as_bytes(),
        };
        // Elements without bytes are allowed: the part is empty then.
        <[T]>::ref_from_bytes_with_elems(bytes, self.len).expect("the part is as long and aligned")
    }
}

impl<T: Element> DerefMut for Private<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        let len = self.bytes();
        let bytes = match &mut self.memory {
            Memory::Copy { words, changed } => {
                *changed = true;
                &mut words.as_mut_bytes()[..len]
            }
            Memory::Part(part) => part.as_bytes_mut(),
        };
        <[T]>::mut_from_bytes_with_elems(bytes, self.len).expect("the part is as long and aligned")
    }
}

impl<T: Element> Drop for Private<'_, T> {
    fn drop(&mut self) {
        let (allocation, len) = (self.allocation, self.bytes());
        if let Memory::Copy { words, changed } = &mut self.memory {
            if *changed {
                let region = allocation.world().0.heap.region();
                let written = region.write_at(allocation.from() as usize, &words.as_bytes()[..len]);
                written.expect("the part is within the heap");
            }
            allocation.spare.set(std::mem::take(words));
        }
        allocation.lent.set(false);
    }
}

impl<T: Element> fmt::Debug for Private<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Private").field("len", &self.len).finish_non_exhaustive()
    }
}

//! One-dimensional arrays that are distributed over the processes.

use std::fmt;
use std::marker::PhantomData;

use super::allocation::Allocation;
use super::layout::Layout;
use super::private::Private;
use crate::access::Place;
use crate::element::Element;
use crate::error::{AccessError, Error};
use crate::global_ptr::{BEYOND, GlobalPtr, Raw};
use crate::world::World;

/// An array of elements that is distributed over all processes: [cyclic](World::spread),
/// [blocked](World::blocked), or [block-cyclic](World::spread_blocks).
///
/// Each process accesses every element by its index, and its [own part](Self::private) as a slice.
pub struct Spread<T> {
    allocation: Allocation,
    layout: Layout,
    of: PhantomData<fn() -> T>,
}

impl World {
    /// Allocates an array of `len` elements, all zeros, in a cyclic distribution: element 0 is
    /// process 0's, element 1 is process 1's, and so on, round and round. A collective call: all
    /// processes await it.
    ///
    /// # Errors
    /// When a heap has no room, the processes ask for different arrays, the type needs an alignment
    /// beyond 8 bytes, or a process has gone.
    pub async fn spread<T: Element>(&self, len: usize) -> Result<Spread<T>, Error> {
        self.spread_blocks(len, 1).await
    }

    /// Allocates an array of `len` elements, all zeros, in a blocked distribution, in which each
    /// process has one block: the first elements are process 0's, the next ones process 1's, and so
    /// on. A collective call: all processes await it.
    ///
    /// # Errors
    /// As [`spread`](Self::spread).
    pub async fn blocked<T: Element>(&self, len: usize) -> Result<Spread<T>, Error> {
        self.spread_blocks(len, len.div_ceil(self.size()).max(1)).await
    }

    /// Allocates an array of `len` elements, all zeros, in a block-cyclic distribution: blocks of
    /// `block` elements are dealt to the processes, round and round. A collective call: all
    /// processes await it.
    ///
    /// # Errors
    /// As [`spread`](Self::spread), and when `block` is 0.
    pub async fn spread_blocks<T: Element>(
        &self,
        len: usize,
        block: usize,
    ) -> Result<Spread<T>, Error> {
        if block == 0 {
            return Err(Error::invalid(format!(
                "`block` is 0 in `spread_blocks({len}, 0)`: a block has at least one element"
            )));
        }
        let layout = Layout::new(len, self.size(), block);
        let allocation = Allocation::new::<T>(self, layout.most(), [len, block]).await?;
        Ok(Spread { allocation, layout, of: PhantomData })
    }
}

impl<T: Element> Spread<T> {
    pub(super) fn allocation(&self) -> &Allocation {
        &self.allocation
    }

    pub(crate) fn world(&self) -> &World {
        self.allocation.world()
    }

    /// How many elements the array has, in all processes together.
    pub fn len(&self) -> usize {
        self.layout.len
    }

    /// Whether the array has no elements.
    pub fn is_empty(&self) -> bool {
        self.layout.len == 0
    }

    /// The place of an element. If the index is out of bounds, every operation on the place returns
    /// an error.
    #[inline]
    pub fn at(&self, index: usize) -> Place<'_, T> {
        self.world().at(self.raw_pointer(index))
    }

    /// The pointer to an element.
    ///
    /// # Errors
    /// When there is no such element.
    pub fn pointer(&self, index: usize) -> Result<GlobalPtr<T>, Error> {
        let len = self.layout.len;
        match index < len {
            true => Ok(self.raw_pointer(index)),
            false => Err(AccessError::Index { index, len }.into()),
        }
    }

    /// The pointer to an element. A pointer made from an index out of bounds is refused wherever it
    /// is used.
    #[inline]
    pub(crate) fn raw_pointer(&self, index: usize) -> GlobalPtr<T> {
        if index >= self.layout.len {
            let len = u32::try_from(self.layout.len).unwrap_or(u32::MAX);
            return GlobalPtr::new(Raw { rank: len, block: BEYOND, offset: index as u64 });
        }
        let (rank, local) = self.layout.place(index);
        self.allocation.pointer(rank, local)
    }

    /// The index of the element that a pointer points to, if that is an element of this array.
    pub fn index_of(&self, ptr: GlobalPtr<T>) -> Option<usize> {
        let local = self.allocation.local_of(ptr)?;
        let has = ptr.rank() < self.world().size() && local < self.layout.count(ptr.rank());
        has.then(|| self.layout.index(ptr.rank(), local))
    }

    /// The rank of the process that has an element.
    ///
    /// # Errors
    /// When there is no such element.
    pub fn owner(&self, index: usize) -> Result<usize, Error> {
        Ok(self.pointer(index)?.rank())
    }

    /// How many elements of the array this process has.
    pub fn own_len(&self) -> usize {
        self.layout.count(self.world().rank())
    }

    /// The indices of the elements that this process has, in the order of its [own
    /// part](Self::private).
    pub fn own_indices(&self) -> impl Iterator<Item = usize> + use<T> {
        let (layout, rank) = (self.layout, self.world().rank());
        (0..self.own_len()).map(move |local| layout.index(rank, local))
    }

    /// Opens a private epoch, in which each process has its own part of the array for itself, as a
    /// slice at the speed of plain memory. A collective call: all processes await it, and when it
    /// is done, everything that any of them did to the array before is in place.
    ///
    /// The epoch ends when every process has dropped the returned [`Private`] and awaited
    /// [`share`](Self::share). Until then an access by a pointer to the array is an
    /// [error](AccessError::Private).
    ///
    /// The slice is a copy of the part, which no other process reaches: the epoch takes the time of
    /// a copy, of another at its end if the slice was changed, and as much memory again as the part
    /// has. [`private_in_place`](Self::private_in_place) does without, by a contract.
    ///
    /// # Errors
    /// When this process has its [`Private`] already, or waits for it or for the end of an epoch in
    /// another future; when the system refuses a process the memory for the copy; or when a process
    /// has gone. Where Linux promises more memory than it has, which is the default, it may end the
    /// process when the copy is filled.
    pub async fn private(&self) -> Result<Private<'_, T>, Error> {
        let own = self.own_len();
        Private::open(&self.allocation, own).await
    }

    /// Ends a private epoch, so that pointers to the array can be used again. A collective call:
    /// all processes await it, after they have dropped their [`Private`].
    ///
    /// # Errors
    /// When this process still has its [`Private`], or a process has gone.
    pub async fn share(&self) -> Result<(), Error> {
        self.allocation.share().await
    }

    /// Frees the array in every process's heap. A collective call: all processes await it. A later
    /// use of a pointer to the array is an error.
    ///
    /// An array that is dropped without being freed keeps its memory until the world ends.
    ///
    /// # Errors
    /// When the processes free different arrays, or a process has gone.
    pub async fn free(self) -> Result<(), Error> {
        self.allocation.free().await
    }
}

impl<T> fmt::Debug for Spread<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spread").field("layout", &self.layout).finish_non_exhaustive()
    }
}

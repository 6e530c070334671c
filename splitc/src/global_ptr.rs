//! Global pointers: the rank of a process, and a place in its heap.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::error::CastError;

/// A pointer to a `T` in the memory of any process of a [`World`](crate::World).
///
/// A global pointer is 16 bytes of plain data: it may be sent in messages, kept in files, and
/// stored in shared memory itself. It grants no access by itself: every access through a
/// [`World`](crate::World::at) checks the process, the allocation, the bounds and the alignment,
/// and a wrong pointer gives an error, whatever bytes it was made of.
///
/// There are two kinds of pointer arithmetic within an allocation. *Local* arithmetic goes to the
/// next element of the same process. *Global* arithmetic goes to the element at the same place of
/// the next process, and from the last process on to the next element of the first.
///
/// ```
/// use doorbell_splitc::GlobalPtr;
///
/// # doorbell_splitc::Job::threads(3).run(async |world| {
/// let ptr: GlobalPtr<u64> = world.spread::<u64>(9).await?.pointer(0)?;
/// let next = ptr.local_add(1);
/// assert_eq!((next.rank(), next.offset() - ptr.offset()), (0, 8));
/// // Over three processes, the fifth element behind is the next one of process 2.
/// assert_eq!(ptr.global_add(5, 3), next.on(2));
/// # Ok(())
/// # })?;
/// # Ok::<(), doorbell_splitc::RunError>(())
/// ```
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct GlobalPtr<T> {
    raw: Raw,
    to: PhantomData<fn() -> T>,
}

/// The allocation number in pointers to memory that a process has allocated for itself.
pub(crate) const ALONE: u32 = u32::MAX;
/// The allocation number in a pointer that was made from an index beyond an array: the pointer's
/// offset is the index, and its rank is the array's length.
pub(crate) const BEYOND: u32 = u32::MAX - 1;

/// The bytes of a global pointer, without the type it points to.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub(crate) struct Raw {
    /// The rank of the process that the pointer points to. In a pointer made from an index out of
    /// bounds, the length of the array.
    pub rank: u32,
    /// The number of the allocation: zero for null.
    pub block: u32,
    /// The place in the process's heap, in bytes.
    pub offset: u64,
}

const _: () = assert!(size_of::<GlobalPtr<u8>>() == 16);

impl<T> GlobalPtr<T> {
    pub(crate) const fn new(raw: Raw) -> Self {
        Self { raw, to: PhantomData }
    }

    pub(crate) const fn raw(self) -> Raw {
        self.raw
    }

    /// The null pointer, whose bytes are all zero.
    pub const fn null() -> Self {
        Self::new(Raw { rank: 0, block: 0, offset: 0 })
    }

    /// Whether the pointer is null.
    pub const fn is_null(self) -> bool {
        self.raw.block == 0
    }

    /// The process part of the pointer: the rank of the process whose memory it points to.
    pub const fn rank(self) -> usize {
        self.raw.rank as usize
    }

    /// The local part of the pointer: the place in the heap of that process, in bytes from the
    /// heap's beginning.
    pub const fn offset(self) -> u64 {
        self.raw.offset
    }

    /// The pointer to the same place in the heap of process `rank`. Collective allocations lie at
    /// the same place in all heaps, so a pointer to this process's part becomes a pointer to the
    /// part of process `rank`.
    #[must_use]
    pub const fn on(self, rank: usize) -> Self {
        // No world has a rank beyond u32: such a pointer is refused when it is used.
        let rank = if rank > u32::MAX as usize { u32::MAX } else { rank as u32 };
        Self::new(Raw { rank, ..self.raw })
    }

    /// The pointer to the element `elements` further on in the memory of the same process. A
    /// negative number goes back.
    ///
    /// Where the place has no number of 64 bits, the pointer points to the end of these, where no
    /// heap has memory: like every pointer out of bounds, it is refused when it is used.
    #[must_use]
    pub const fn local_add(self, elements: isize) -> Self {
        // In 128 bits neither the product nor the sum overflows.
        let bytes = elements as i128 * size_of::<T>() as i128;
        let offset = self.raw.offset as i128 + bytes;
        let exists = offset >= 0 && offset <= u64::MAX as i128;
        let offset = if exists { offset as u64 } else { u64::MAX };
        Self::new(Raw { offset, ..self.raw })
    }

    /// The pointer to the element `elements` further on in the order that goes round all
    /// `processes` processes: the next element is at the same place of the next process. A negative
    /// number goes back.
    ///
    /// # Panics
    /// When `processes` is zero.
    #[must_use]
    pub const fn global_add(self, elements: isize, processes: usize) -> Self {
        assert!(processes > 0, "a world has at least one process");
        // In 128 bits the sum can't overflow, whatever bytes the pointer was made of.
        let (to, processes) = (self.raw.rank as i128 + elements as i128, processes as i128);
        let rank = to.rem_euclid(processes) as usize;
        let rounds = to.div_euclid(processes);
        let rounds = if rounds > isize::MAX as i128 { isize::MAX } else { rounds as isize };
        self.local_add(rounds).on(rank)
    }

    /// Makes a pointer to another type at the same place.
    ///
    /// # Errors
    /// When the place is not aligned for a `U`.
    pub fn cast<U>(self) -> Result<GlobalPtr<U>, CastError> {
        if !self.raw.offset.is_multiple_of(align_of::<U>() as u64) {
            let (offset, align) = (self.raw.offset, align_of::<U>());
            return Err(CastError { offset, align, to: std::any::type_name::<U>() });
        }
        Ok(GlobalPtr::new(self.raw))
    }
}

impl<T> Clone for GlobalPtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for GlobalPtr<T> {}

impl<T> Default for GlobalPtr<T> {
    fn default() -> Self {
        Self::null()
    }
}

impl<T> PartialEq for GlobalPtr<T> {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl<T> Eq for GlobalPtr<T> {}

impl<T> Hash for GlobalPtr<T> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.raw.hash(hasher);
    }
}

impl<T> fmt::Debug for GlobalPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<T> fmt::Display for GlobalPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Raw { rank, block, offset } = self.raw;
        match block {
            0 => f.write_str("null"),
            ALONE => write!(f, "{rank}:{offset:#x}"),
            block => write!(f, "{rank}:{offset:#x} of allocation {block}"),
        }
    }
}

impl<T: 'static> doorbell_am::Plain for GlobalPtr<T> {
    const KIND: &'static str = "GlobalPtr";
}

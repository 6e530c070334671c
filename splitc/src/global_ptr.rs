//! Global pointers: a process, and a place in its memory.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::error::CastError;

/// A pointer to a `T` in the memory of any process of a [`World`](crate::World).
///
/// A global pointer is 16 bytes of plain data: it may be sent in messages, kept in files, and
/// stored in shared memory itself. It grants nothing by itself: every access through a
/// [`World`](crate::World::at) checks the process, the allocation, the bounds and the alignment,
/// and a pointer that is wrong gives an error, whatever bytes it was made of.
///
/// Pointers to the same allocation can be moved in two ways. *Local* arithmetic goes to the next
/// element of the same process, *global* arithmetic goes to the element at the same place of the
/// next process, and from the last process on to the next element of the first.
///
/// ```
/// use doorbell::splitc::GlobalPtr;
///
/// # doorbell::splitc::Job::threads(3).run(async |world| {
/// let ptr: GlobalPtr<u64> = world.spread::<u64>(9).await?.pointer(0)?;
/// let next = ptr.local_add(1);
/// assert_eq!((next.rank(), next.offset() - ptr.offset()), (0, 8));
/// // Over three processes, the fifth element behind is the next one of process 2.
/// assert_eq!(ptr.global_add(5, 3), next.on(2));
/// # Ok(())
/// # })?;
/// # Ok::<(), doorbell::splitc::RunError>(())
/// ```
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct GlobalPtr<T> {
    raw: Raw,
    to: PhantomData<fn() -> T>,
}

/// The bytes of a global pointer, without the type it points to.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub(crate) struct Raw {
    /// The process.
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

    /// The pointer to nothing, whose bytes are zero.
    pub const fn null() -> Self {
        Self::new(Raw { rank: 0, block: 0, offset: 0 })
    }

    /// Whether this is the pointer to nothing.
    pub const fn is_null(self) -> bool {
        self.raw.block == 0
    }

    /// The process part: the rank of the process whose memory this points to.
    pub const fn rank(self) -> usize {
        self.raw.rank as usize
    }

    /// The local part: the place in the heap of that process, in bytes from the heap's beginning.
    pub const fn offset(self) -> u64 {
        self.raw.offset
    }

    /// The pointer to the same place of another process. A pointer to this process's own part
    /// becomes a pointer to the part of process `rank`, since collective allocations lie at the
    /// same place everywhere.
    #[must_use]
    pub const fn on(self, rank: usize) -> Self {
        // A rank beyond u32 is none of any world, and refused when it is used.
        let rank = if rank > u32::MAX as usize { u32::MAX } else { rank as u32 };
        Self::new(Raw { rank, ..self.raw })
    }

    /// The pointer to the element `elements` behind this one in the memory of the same process.
    /// Negative numbers go back.
    #[must_use]
    pub const fn local_add(self, elements: isize) -> Self {
        let bytes = (elements as i64).wrapping_mul(size_of::<T>() as i64);
        let offset = self.raw.offset.wrapping_add_signed(bytes);
        Self::new(Raw { offset, ..self.raw })
    }

    /// The pointer to the element `elements` behind this one in the order that goes round all
    /// processes, of which there are `processes`: the next element is at the same place of the next
    /// process. Negative numbers go back.
    ///
    /// # Panics
    /// When there are no processes.
    #[must_use]
    pub const fn global_add(self, elements: isize, processes: usize) -> Self {
        assert!(processes > 0, "a world has at least one process");
        // Wide enough for the ranks and distances of any bytes that a pointer was made of.
        let (to, processes) = (self.raw.rank as i128 + elements as i128, processes as i128);
        let rank = to.rem_euclid(processes) as usize;
        self.local_add(to.div_euclid(processes) as isize).on(rank)
    }

    /// The same place as a pointer to another type.
    ///
    /// # Errors
    /// When a `U` can't begin at this place, for the alignment that the type has.
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
            crate::heap::ALONE => write!(f, "{rank}:{offset:#x}"),
            block => write!(f, "{rank}:{offset:#x} of allocation {block}"),
        }
    }
}

impl<T: 'static> doorbell_am::Plain for GlobalPtr<T> {
    const KIND: &'static str = "GlobalPtr";
}

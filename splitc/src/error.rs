//! The errors of a world.

use std::any::type_name;
use std::fmt;
use std::sync::Arc;

use doorbell_am::group::GroupError;
use thiserror::Error;

/// The error of an access, an allocation or a collective. The [kind](Self::kind) is behind a
/// pointer, which keeps the value so small that results stay in registers.
pub struct Error(Box<ErrorKind>);

/// The kinds of errors of a [`World`](crate::World).
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A pointer or an index is wrong. The error is found before anything is sent.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// A process of the world has died, or has left while others still needed it.
    #[error(transparent)]
    Gone(#[from] Gone),
    /// Memory could not be allocated or freed.
    #[error(transparent)]
    Heap(#[from] HeapError),
    /// A collective operation has failed.
    #[error("{}", crate::group_errors::in_words(.0))]
    Group(GroupError),
    /// The peer refused operations that this process had checked: a [function](crate::Apply)
    /// panicked there, the two processes run different programs, or memory was overwritten.
    #[error(
        "process {rank} refused {count} operations that were right by what this process knows: has a \
         function panicked there (that process says so itself), or do the two run different programs?"
    )]
    Refused {
        /// The process that refused.
        rank: usize,
        /// How many operations it refused.
        count: u64,
    },
    /// The value of a [`Get`](crate::Get) was asked for before it had come.
    #[error("the value has not come yet: await the handle, or `World::sync`, before `value`")]
    NotSynced,
    /// A function was used that the processes have not [agreed on](crate::World::define).
    #[error(
        "the function `{name}` is not defined here: every process awaits `World::define` first"
    )]
    NotDefined {
        /// The name of the function.
        name: &'static str,
    },
    /// The carrier can't be used with the peer.
    #[error("{carrier} does not reach process {rank}: {why}")]
    NoCarrier {
        /// The rank of the process that the carrier does not reach.
        rank: usize,
        /// The carrier that was chosen.
        carrier: crate::Carrier,
        /// Why the carrier can't be used.
        why: &'static str,
    },
    /// An argument has the wrong length or form.
    #[error("{0}")]
    Invalid(String),
}

/// A wrong pointer or index. The error is found where the access begins, and nothing was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum AccessError {
    /// The pointer is null.
    #[error("the global pointer is null")]
    Null,
    /// No process of the world, or of the team, has the rank.
    #[error("there is no process {rank}: the world has {size}, counted from 0")]
    Rank {
        /// The rank that was given.
        rank: usize,
        /// How many processes the world or the team has.
        size: usize,
    },
    /// The array has no such element.
    #[error("there is no element {index}: the array has {len}")]
    Index {
        /// The index that was given.
        index: usize,
        /// How many elements the array has.
        len: usize,
    },
    /// The range is not within the allocation.
    #[error(
        "{len} bytes at {offset:#x} are not within allocation {block}, which has {from:#x} to {to:#x} of \
         each process's heap"
    )]
    Bounds {
        /// Where the range begins, in bytes from the heap's beginning.
        offset: u64,
        /// How many bytes the range has.
        len: u64,
        /// The number of the allocation.
        block: u32,
        /// Where the allocation begins in each process's heap.
        from: u64,
        /// Where the allocation ends in each process's heap.
        to: u64,
    },
    /// The range is not within the part of the heap for what a process has allocated for itself.
    #[error("{len} bytes at {offset:#x} are not within a heap of {heap:#x} bytes")]
    Heap {
        /// Where the range begins, in bytes from the heap's beginning.
        offset: u64,
        /// How many bytes the range has.
        len: u64,
        /// How many bytes each process's heap has.
        heap: u64,
    },
    /// The allocation was freed, or none of that number was ever made.
    #[error("allocation {block} was freed, or never made: the pointer is of no use any more")]
    Freed {
        /// The number of the allocation.
        block: u32,
    },
    /// The allocation is in a private epoch, in which no process uses pointers to it.
    #[error(
        "allocation {block} is in a private epoch: every process drops its `Private` and awaits \
         `share` before anybody uses pointers to it again"
    )]
    Private {
        /// The number of the allocation.
        block: u32,
    },
    /// The place is not aligned for the type.
    #[error("offset {offset:#x} is no multiple of {align}, which the type needs")]
    Misaligned {
        /// The place, in bytes from the heap's beginning.
        offset: u64,
        /// The alignment in bytes that the type needs.
        align: usize,
    },
    /// The memory belongs to another process, and the operation is only for the owner.
    #[error("the memory is process {owner}'s, and only that process can do this to it")]
    NotMine {
        /// The rank of the process that owns the memory.
        owner: usize,
    },
}

/// The error of a pointer that can't be cast to another type, since its place is not aligned for
/// that.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("a {to} can't begin at offset {offset:#x}, which is no multiple of {align}")]
pub struct CastError {
    pub(crate) offset: u64,
    pub(crate) align: usize,
    pub(crate) to: &'static str,
}

/// A process that has died, or has left while others still needed it.
#[derive(Clone, Debug, Error)]
#[error("process {rank} has gone: {why}")]
pub struct Gone {
    /// The rank of the process.
    pub rank: usize,
    /// How the process ended, as far as this process knows.
    pub why: Arc<str>,
}

/// Memory that could not be allocated or freed.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum HeapError {
    /// No free range of the heap is long enough.
    #[error(
        "there is no room for {asked} bytes in a heap of {heap}, of which {free} are free in one piece: \
         configure a larger `heap`"
    )]
    Full {
        /// How many bytes were asked for, in each process's heap.
        asked: u64,
        /// How many bytes each process's heap has.
        heap: u64,
        /// How many bytes the longest free range has.
        free: u64,
    },
    /// The heap of another process has no room, or not at the same place.
    #[error(
        "another process has no room for {asked} bytes at the place that is free here: its heap is \
         shorter, or what it has allocated for itself is in the way; configure a larger `heap`"
    )]
    FullElsewhere {
        /// How many bytes were asked for, in each process's heap.
        asked: u64,
    },
    /// The type needs an alignment that heaps don't provide.
    #[error("{of} asks for an alignment of {align}, and shared memory has {most} at the most")]
    Alignment {
        /// The name of the type.
        of: &'static str,
        /// The alignment in bytes that the type needs.
        align: usize,
        /// The largest alignment that heaps provide.
        most: usize,
    },
    /// Processes made the same collective call for different things: different allocations,
    /// functions, or allocations to free.
    #[error(
        "the processes do not do the same: {what} differs between them in this collective; here it is \
         {here}"
    )]
    Differs {
        /// The property in which the processes differ, such as the length.
        what: &'static str,
        /// The request of this process.
        here: String,
    },
    /// The pointer does not point to the beginning of memory that this process has allocated for
    /// itself.
    #[error("no allocation of this process begins at {offset:#x}: was it freed before?")]
    NotAllocated {
        /// The offset in the heap that the pointer has.
        offset: u64,
    },
    /// The system did not provide memory.
    #[error("{len} bytes of shared memory can't be had: {why}")]
    System {
        /// How many bytes were asked for.
        len: usize,
        /// The error that the system returned.
        why: Arc<str>,
    },
}

impl HeapError {
    pub(crate) fn alignment<T>(most: usize) -> Self {
        Self::Alignment { of: type_name::<T>(), align: align_of::<T>(), most }
    }
}

impl Error {
    /// The kind of the error.
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }

    /// The rank of the process that has gone, or whose program has returned too early, if that is
    /// what the error is about.
    pub fn gone(&self) -> Option<usize> {
        match &*self.0 {
            ErrorKind::Gone(gone) => Some(gone.rank),
            ErrorKind::Group(why) => crate::group_errors::gone(why),
            _ => None,
        }
    }

    #[cold]
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        ErrorKind::Invalid(text.into()).into()
    }
}

impl From<ErrorKind> for Error {
    #[cold]
    fn from(kind: ErrorKind) -> Self {
        Self(Box::new(kind))
    }
}

macro_rules! kinds {
    ($($kind:ident)+) => {$(
        impl From<$kind> for Error {
            #[cold]
            fn from(why: $kind) -> Self {
                ErrorKind::from(why).into()
            }
        }
    )+};
}

kinds! { AccessError Gone HeapError }

impl From<GroupError> for Error {
    #[cold]
    fn from(why: GroupError) -> Self {
        ErrorKind::Group(why).into()
    }
}

impl Clone for Error {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

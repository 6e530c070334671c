//! What can go wrong, and what to do about it.

use std::any::type_name;
use std::fmt;
use std::sync::Arc;

use doorbell_am::group::GroupError;
use thiserror::Error;

/// Why an access, an allocation or a collective failed. A small value: the [kind](Self::kind) is
/// behind a pointer, so that results stay in registers.
pub struct Error(Box<ErrorKind>);

/// The kinds of errors of a [`World`](crate::World).
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The pointer or the index is wrong. Nothing was sent.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// A process of the world has died, or has left while others still needed it.
    #[error(transparent)]
    Gone(#[from] Gone),
    /// Memory could not be allocated or freed.
    #[error(transparent)]
    Heap(#[from] HeapError),
    /// A collective failed.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The peer refused operations that this process had checked: a [function](crate::Apply)
    /// panicked there, or the two processes are not of the same program, or memory was overwritten.
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
        /// The process.
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

/// A pointer or an index that is wrong. The error is found where the access begins; nothing was
/// sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum AccessError {
    /// The pointer is null.
    #[error("the global pointer is null")]
    Null,
    /// There is no such process.
    #[error("there is no process {rank}: the world has {size}, counted from 0")]
    Rank {
        /// The rank that the pointer has.
        rank: usize,
        /// How many processes there are.
        size: usize,
    },
    /// The array has no such element.
    #[error("there is no element {index}: the array has {len}")]
    Index {
        /// The index.
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
        /// Where the range begins in the heap.
        offset: u64,
        /// How many bytes it has.
        len: u64,
        /// The number of the allocation.
        block: u32,
        /// Where the allocation begins.
        from: u64,
        /// Where the allocation ends.
        to: u64,
    },
    /// The range is not within the heap.
    #[error("{len} bytes at {offset:#x} are not within a heap of {heap:#x} bytes")]
    Heap {
        /// Where the range begins.
        offset: u64,
        /// How many bytes it has.
        len: u64,
        /// How long each process's heap is.
        heap: u64,
    },
    /// The allocation was freed, or there never was one of that number.
    #[error("allocation {block} was freed, or never made: the pointer is of no use any more")]
    Freed {
        /// The number of the allocation.
        block: u32,
    },
    /// The allocation is in a private epoch.
    #[error(
        "allocation {block} is in a private epoch: every process drops its `Private` and awaits \
         `share` before anybody uses pointers to it again"
    )]
    Private {
        /// The number of the allocation.
        block: u32,
    },
    /// The type can't begin at this place.
    #[error("offset {offset:#x} is no multiple of {align}, which the type needs")]
    Misaligned {
        /// The place in the heap.
        offset: u64,
        /// What the place must be a multiple of.
        align: usize,
    },
    /// The memory is another process's, and the operation is for the owner.
    #[error("the memory is process {owner}'s, and only that process can do this to it")]
    NotMine {
        /// The owner.
        owner: usize,
    },
}

/// Why a pointer can't point to another type.
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
    /// What is known about its end.
    pub why: Arc<str>,
}

/// Memory that could not be allocated or freed.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum HeapError {
    /// There is no room.
    #[error(
        "there is no room for {asked} bytes in a heap of {heap}, of which {free} are free in one piece: \
         configure a larger `heap`"
    )]
    Full {
        /// How many bytes were asked for, of each process.
        asked: u64,
        /// How long each process's heap is.
        heap: u64,
        /// The longest free range.
        free: u64,
    },
    /// The type asks for an alignment that heaps don't provide.
    #[error("{of} asks for an alignment of {align}, and shared memory has {most} at the most")]
    Alignment {
        /// The type.
        of: &'static str,
        /// The alignment that it asks for.
        align: usize,
        /// The largest alignment there is.
        most: usize,
    },
    /// Processes asked for different allocations in the same collective call, or freed different
    /// ones.
    #[error(
        "the processes do not do the same: {what} differs between them in this collective; here it is \
         {here}"
    )]
    Differs {
        /// What differs.
        what: &'static str,
        /// What this process asked for.
        here: String,
    },
    /// The pointer is not the beginning of an allocation of this process.
    #[error("no allocation of this process begins at {offset:#x}: was it freed before?")]
    NotAllocated {
        /// Where the allocation would begin.
        offset: u64,
    },
    /// The system gave no memory.
    #[error("{len} bytes of shared memory can't be had: {why}")]
    System {
        /// How many bytes were asked for.
        len: usize,
        /// What the system said.
        why: Arc<str>,
    },
}

impl HeapError {
    pub(crate) fn alignment<T>(most: usize) -> Self {
        Self::Alignment { of: type_name::<T>(), align: align_of::<T>(), most }
    }
}

impl Error {
    /// What went wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }

    /// The rank of the process whose end this error is about, if it is.
    pub fn gone(&self) -> Option<usize> {
        match &*self.0 {
            ErrorKind::Gone(gone) => Some(gone.rank),
            ErrorKind::Group(why) => why.gone(),
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

kinds! { AccessError Gone HeapError GroupError }

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

//! An epoch in which a region's memory is one owner's alone.

use super::Region;
use std::any::type_name;
use std::fmt;
use thiserror::Error;
use zerocopy::{CastError, FromBytes, Immutable, IntoBytes, KnownLayout};

/// A region that nobody else holds, and whose bytes can therefore be lent as slices.
///
/// Made by [`Region::try_private`], ended by [`open`](Self::open); the bytes stay where they are.
///
/// ```
/// use doorbell_core::memory::Region;
///
/// let region = Region::new(8 * 100);
/// let peer = region.clone();
/// let region = region.try_private().unwrap_err().into_region();
/// drop(peer);
/// let mut block = region.try_private()?;
/// for (i, value) in block.as_mut_slice_of::<f64>()?.iter_mut().enumerate() {
///     *value = i as f64 / 2.0;
/// }
/// let region = block.open();
/// assert_eq!(region.load(8 * 3)?, 1.5f64.to_bits());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Each loan takes `&mut self`, even one to read. The memory is still of atomics, and a shared
/// reference to these does not say that nobody writes them; an exclusive one does.
pub struct Private {
    /// Invariant: the only handle, and all that leads to the memory; or so it was promised.
    pub(super) region: Region,
}

impl Region {
    /// Makes the region private, if this is the only handle to it.
    ///
    /// Whoever may access the memory holds a handle: another clone, a key that peers were given, a
    /// request in flight. That none is left proves that nobody can until the epoch ends. Nothing
    /// proves it of [foreign](Self::foreign) memory.
    ///
    /// # Errors
    /// When other handles are left, or the memory is foreign. The error gives this one back.
    pub fn try_private(mut self) -> Result<Private, StillShared> {
        loop {
            // The check that no other handle is left is an acquire, and each drop of one was a
            // release: what was written through any handle, by any thread, is in place here.
            if self.memory.is_alone() {
                return Ok(Private { region: self });
            }
            let (others, foreign) = (self.memory.others(), self.memory.is_foreign());
            if others > 0 || foreign {
                return Err(StillShared { region: self, others, foreign });
            }
            // The last other handle went away in between, and nobody can make a new one.
        }
    }
}

impl Private {
    /// How many bytes there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.region.len()
    }

    /// Whether there are no bytes at all.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.region.is_empty()
    }

    /// The bytes, to read.
    #[inline]
    pub fn as_bytes(&mut self) -> &[u8] {
        self.as_bytes_mut()
    }

    /// The bytes, to read and write.
    #[inline]
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        let len = self.region.len();
        &mut self.words_mut().as_mut_bytes()[..len]
    }

    /// The memory as values of a type that any bytes are valid for, to read.
    ///
    /// # Errors
    /// When the values would not fill the memory exactly, or the memory is not aligned for them;
    /// up to 8 bytes it always is.
    #[inline]
    pub fn as_slice_of<T>(&mut self) -> Result<&[T], SliceError>
    where
        T: FromBytes + KnownLayout + Immutable,
    {
        let len = self.len();
        <[T]>::ref_from_bytes(self.as_bytes()).map_err(|e| SliceError::from_cast::<T, _>(e, len))
    }

    /// The memory as values of a type that any bytes are valid for, to read and write.
    ///
    /// # Errors
    /// When the values would not fill the memory exactly, or the memory is not aligned for them;
    /// up to 8 bytes it always is.
    #[inline]
    pub fn as_mut_slice_of<T>(&mut self) -> Result<&mut [T], SliceError>
    where
        T: FromBytes + IntoBytes + KnownLayout + Immutable,
    {
        let len = self.len();
        <[T]>::mut_from_bytes(self.as_bytes_mut())
            .map_err(|e| SliceError::from_cast::<T, _>(e, len))
    }

    /// Ends the epoch: the region may be shared again.
    #[inline]
    pub fn open(self) -> Region {
        self.region
    }
}

impl fmt::Debug for Private {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Private({} bytes)", self.len())
    }
}

/// A region that cannot be made private, since others may reach its memory.
#[derive(Debug, Error)]
#[error("{region:?} is still shared: {}", self.why())]
pub struct StillShared {
    region: Region,
    others: usize,
    foreign: bool,
}

impl StillShared {
    fn why(&self) -> String {
        match (self.foreign, self.others) {
            (true, _) => "whether other processes reach it can't be told; if they have agreed not \
                          to, `assume_private` takes their word"
                .to_owned(),
            (false, others) => format!(
                "{others} other handles are left, such as clones, keys that are not revoked, \
                 requests that are not complete"
            ),
        }
    }

    /// How many other handles there were.
    pub fn others(&self) -> usize {
        self.others
    }

    /// The handle that was to become private.
    pub fn into_region(self) -> Region {
        self.region
    }
}

/// Why memory cannot be lent as a slice of some type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum SliceError {
    /// It is no whole number of values.
    #[error("{len} bytes are no whole number of {of}, which takes {size}")]
    Length {
        /// How many bytes there are.
        len: usize,
        /// The type.
        of: &'static str,
        /// How many bytes a value takes.
        size: usize,
    },
    /// It does not begin where a value may.
    #[error("the memory is not aligned to the {align} bytes that {of} needs; 8 is the promise")]
    Alignment {
        /// The type.
        of: &'static str,
        /// What the type's address must be a multiple of.
        align: usize,
    },
}

impl SliceError {
    fn from_cast<T, S>(error: CastError<S, [T]>, len: usize) -> Self {
        let of = type_name::<T>();
        match error {
            CastError::Size(_) => Self::Length { len, of, size: size_of::<T>() },
            CastError::Alignment(_) => Self::Alignment { of, align: align_of::<T>() },
        }
    }
}

//! Private epochs, in which a region's memory has one owner.

use super::Region;
use std::any::type_name;
use std::fmt;
use thiserror::Error;
use zerocopy::{CastError, FromBytes, Immutable, IntoBytes, KnownLayout};

/// A region with a single handle, whose bytes can therefore be lent as slices.
///
/// [`Region::try_private`] begins such a private epoch, and [`open`](Self::open) ends it. The bytes
/// stay where they are.
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
/// Every method that lends bytes takes `&mut self`, even for reading. The memory still consists of
/// atomics. A shared reference to atomics does not exclude that they are written, and an exclusive
/// reference does.
pub struct Private {
    /// Invariant: this is the region's only handle, and no other reference leads to its memory; or
    /// an unsafe caller promised so.
    pub(super) region: Region,
}

impl Region {
    /// Makes the region private, if this is its only handle.
    ///
    /// Everything that may access the memory holds a handle: another clone, a key that peers were
    /// given, a request in flight. If no other handle is left, nothing else can access the memory
    /// until the epoch ends. For [foreign](Self::foreign) memory, the handles prove nothing.
    ///
    /// # Errors
    /// When other handles are left, or the memory is foreign. The error returns this handle.
    pub fn try_private(mut self) -> Result<Private, StillShared> {
        loop {
            // The check that no other handle is left has acquire order, and each drop of a handle
            // had release order. So all that was written through any handle, by any thread, is
            // visible here.
            if self.memory.is_alone() {
                return Ok(Private { region: self });
            }
            let (others, foreign) = (self.memory.others(), self.memory.is_foreign());
            if others > 0 || foreign {
                return Err(StillShared { region: self, others, foreign });
            }
            // The last other handle was dropped between the two checks, and no new one can be made.
        }
    }
}

impl Private {
    /// Returns the length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.region.len()
    }

    /// Whether the region has no bytes at all.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.region.is_empty()
    }

    /// Lends the bytes for reading.
    #[inline]
    pub fn as_bytes(&mut self) -> &[u8] {
        self.as_bytes_mut()
    }

    /// Lends the bytes for reading and writing.
    #[inline]
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        let len = self.region.len();
        &mut self.words_mut().as_mut_bytes()[..len]
    }

    /// Lends the memory for reading, as values of a type for which any bytes are valid.
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

    /// Lends the memory for reading and writing, as values of a type for which any bytes are valid.
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

    /// Ends the private epoch, so that the region may be shared again.
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

/// The error for a region that can't be made private, since others may reach its memory.
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

    /// Returns how many other handles there were.
    pub fn others(&self) -> usize {
        self.others
    }

    /// Returns the handle that was to become private.
    pub fn into_region(self) -> Region {
        self.region
    }
}

/// The reason why memory can't be lent as a slice of a type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum SliceError {
    /// The memory is no whole number of values.
    #[error("{len} bytes are no whole number of {of}, which takes {size}")]
    Length {
        /// The length of the memory in bytes.
        len: usize,
        /// The name of the type.
        of: &'static str,
        /// The number of bytes that a value takes.
        size: usize,
    },
    /// The memory does not begin at an address where a value may.
    #[error("the memory is not aligned to the {align} bytes that {of} needs; 8 is the promise")]
    Alignment {
        /// The name of the type.
        of: &'static str,
        /// The alignment of the type, of which its address must be a multiple.
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

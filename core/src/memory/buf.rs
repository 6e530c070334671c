//! Buffers: memory that no peer can access.

mod conversions;

use std::ops::{Deref, DerefMut};
use std::{fmt, io};

use bytes::Bytes;
use thiserror::Error;

/// A buffer of owned bytes, for sends and receives.
///
/// A buffer is moved into a work request and comes back with the completion, so a program cannot
/// touch it while the NIC does. Its capacity is fixed: for a receive, that is what the NIC may fill.
/// As a slice, a buffer has the bytes that are filled, and these are compared, hashed, and converted
/// to other types.
///
/// A `Buf` is made of a `Vec<u8>`, a `Box<[u8]>`, a `String`, a [`BytesMut`](bytes::BytesMut) or a
/// [`Bytes`], and becomes a `Vec<u8>`, a `Bytes` or a `BytesMut`, with the same allocation: nothing
/// is copied. (`Bytes` and `BytesMut` that share their allocation with others are copied from.)
///
/// ```
/// use doorbell_core::memory::Buf;
///
/// let mut buf = Buf::with_capacity(64);
/// buf.extend_from_slice(b"hello")?;
/// assert_eq!(*buf, *b"hello");
/// assert!(buf.extend_from_slice(&[0; 60]).is_err());
/// # Ok::<(), doorbell_core::memory::BufFull>(())
/// ```
#[derive(Clone, Default)]
pub struct Buf {
    bytes: Box<[u8]>,
    /// The number of filled bytes. Invariant: at most `bytes.len()`.
    len: usize,
}

/// The error for more bytes than a buffer has room for. The buffer is unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("{needed} bytes do not fit a buffer of {capacity}")]
pub struct BufFull {
    /// The number of bytes that the buffer would have to hold in all.
    pub needed: usize,
    /// The number of bytes that the buffer can hold.
    pub capacity: usize,
}

impl Buf {
    /// Makes an empty buffer that can hold `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { bytes: vec![0; capacity].into(), len: 0 }
    }

    /// Returns how many bytes the buffer can hold.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Returns all bytes that the buffer can hold, filled or not. A NIC receives into these, and
    /// then calls [`set_len`](Self::set_len). Bytes that nothing filled have any value, but are
    /// initialised.
    #[inline]
    pub fn capacity_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Declares the first `len` bytes filled.
    ///
    /// # Errors
    /// When there are not so many.
    #[inline]
    pub fn set_len(&mut self, len: usize) -> Result<(), BufFull> {
        if len > self.capacity() {
            return Err(BufFull { needed: len, capacity: self.capacity() });
        }
        self.len = len;
        Ok(())
    }

    /// Keeps the first `len` bytes, or all if there are fewer.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Keeps none of the bytes.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends all of `more`.
    ///
    /// # Errors
    /// When there is not room for all of it; then none of it is appended.
    #[inline]
    pub fn extend_from_slice(&mut self, more: &[u8]) -> Result<(), BufFull> {
        let start = self.len;
        self.set_len(start.saturating_add(more.len()))?;
        self.bytes[start..self.len].copy_from_slice(more);
        Ok(())
    }

    /// Converts the filled bytes to a vector, without a copy.
    pub fn into_vec(self) -> Vec<u8> {
        let mut vec = self.bytes.into_vec();
        vec.truncate(self.len);
        vec
    }

    /// Converts the filled bytes to [`Bytes`], without a copy.
    pub fn into_bytes(self) -> Bytes {
        self.into_vec().into()
    }
}

impl Deref for Buf {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl DerefMut for Buf {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }
}

impl fmt::Debug for Buf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buf({} of {} bytes)", self.len, self.capacity())
    }
}

/// Appends as many bytes as there is room for. `write_all` and `write!` fill the buffer, and fail
/// with [`WriteZero`](io::ErrorKind::WriteZero) when there is no more room.
impl io::Write for Buf {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = bytes.len().min(self.capacity() - self.len);
        let (start, end) = (self.len, self.len + fits);
        self.bytes[start..end].copy_from_slice(&bytes[..fits]);
        self.len = end;
        Ok(fits)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_moves_as_three_words() {
        assert_eq!(size_of::<Buf>(), 3 * size_of::<usize>());
    }

    #[test]
    fn a_buffer_is_the_bytes_that_are_filled() {
        let mut buf = Buf::with_capacity(8);
        assert!(buf.is_empty());
        buf.capacity_mut()[..3].copy_from_slice(b"abc");
        buf.set_len(3).unwrap();
        buf.extend_from_slice(b"de").unwrap();
        buf[0] = b'A';
        assert_eq!(*buf, *b"Abcde");
        buf.truncate(9);
        buf.truncate(2);
        assert_eq!(*buf, *b"Ab");
        buf.clear();
        assert!(buf.is_empty());
        assert_eq!(buf.capacity(), 8);
    }

    #[test]
    fn what_does_not_fit_changes_nothing() {
        let mut buf = Buf::with_capacity(4);
        buf.extend_from_slice(b"abc").unwrap();
        let full = BufFull { needed: 5, capacity: 4 };
        assert_eq!(buf.extend_from_slice(b"de"), Err(full));
        assert_eq!(buf.set_len(5), Err(full));
        assert_eq!(*buf, *b"abc");
        assert_eq!(full.to_string(), "5 bytes do not fit a buffer of 4");
    }

    #[test]
    fn a_buffer_is_written_to_until_it_is_full() {
        use std::io::Write as _;
        let mut buf = Buf::with_capacity(4);
        write!(buf, "{}", 123).unwrap();
        assert_eq!(buf, b"123");
        let full = write!(buf, "{}", 45).unwrap_err();
        assert_eq!((full.kind(), &*buf), (io::ErrorKind::WriteZero, &b"1234"[..]));
    }

    #[test]
    fn debugging_a_buffer_does_not_print_its_contents() {
        assert_eq!(format!("{:?}", Buf::from(vec![7; 3])), "Buf(3 of 3 bytes)");
    }
}

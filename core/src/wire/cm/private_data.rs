//! The variable parts of messages: the applications' private data, and information about a
//! rejection.

use std::fmt;

use super::layout::{Field, Reader, Writer};
use crate::wire::malformed::{Malformed, Part};

/// The error for more bytes than a message has room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{given} bytes are too long: this message has room for {limit}")]
pub struct TooLong {
    /// The number of bytes that were given.
    pub given: usize,
    /// The number of bytes that there is room for.
    pub limit: usize,
}

const fn fitting(bytes: &[u8], limit: usize) -> Result<&[u8], TooLong> {
    if bytes.len() <= limit { Ok(bytes) } else { Err(TooLong { given: bytes.len(), limit }) }
}

/// The private data of a message: up to `ROOM` bytes that one application tells the other.
///
/// The wire does not carry the length. Shorter private data arrives followed by zeros up to `ROOM`,
/// and so two values are equal if they are equal on the wire.
#[derive(Clone, Copy, Default)]
pub struct PrivateData<'a, const ROOM: usize>(&'a [u8]);

impl<'a, const ROOM: usize> PrivateData<'a, ROOM> {
    /// Takes `bytes`, if there is room for them.
    pub const fn new(bytes: &'a [u8]) -> Result<Self, TooLong> {
        match fitting(bytes, ROOM) {
            Ok(bytes) => Ok(Self(bytes)),
            Err(error) => Err(error),
        }
    }

    /// Returns the bytes as they were given, or as they were received, with the zeros.
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns the bytes up to the last that is not zero.
    fn trimmed(self) -> &'a [u8] {
        let end = self.0.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        self.0.get(..end).unwrap_or_default()
    }
}

impl<'a, const ROOM: usize> From<&'a [u8; ROOM]> for PrivateData<'a, ROOM> {
    fn from(bytes: &'a [u8; ROOM]) -> Self {
        Self(bytes)
    }
}

impl<const ROOM: usize> PartialEq for PrivateData<'_, ROOM> {
    fn eq(&self, other: &Self) -> bool {
        self.trimmed() == other.trimmed()
    }
}

impl<const ROOM: usize> Eq for PrivateData<'_, ROOM> {}

impl<const ROOM: usize> fmt::Debug for PrivateData<'_, ROOM> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateData({:02x?}, room for {ROOM})", self.trimmed())
    }
}

impl<'bytes: 'a, 'a, const ROOM: usize> Field<'bytes> for PrivateData<'a, ROOM> {
    const BITS: usize = 8 * ROOM;

    fn read(from: &mut Reader<'bytes>) -> Result<Self, Malformed> {
        Ok(Self(from.bytes(ROOM)))
    }

    fn write(&self, to: &mut Writer<'_>) {
        to.bytes(self.0, ROOM);
    }
}

/// Additional rejection information, which explains a REJ beyond its reason code: which port to ask
/// instead, or which value would be accepted.
///
/// Unlike with private data, the message carries the length.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AdditionalInfo<'a>(&'a [u8]);

impl<'a> AdditionalInfo<'a> {
    /// The number of bytes that there is room for.
    pub const ROOM: usize = 72;
    /// The room in bits.
    pub(super) const BITS: usize = 8 * Self::ROOM;

    /// Takes `bytes`, if there is room for them.
    pub const fn new(bytes: &'a [u8]) -> Result<Self, TooLong> {
        match fitting(bytes, Self::ROOM) {
            Ok(bytes) => Ok(Self(bytes)),
            Err(error) => Err(error),
        }
    }

    /// Returns the bytes of the information.
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Reads the room for the information, of which the message claims that `claimed` bytes are
    /// used.
    pub(super) fn read(from: &mut Reader<'a>, claimed: u64) -> Result<Self, Malformed> {
        // The length has seven or eight bits, which fit any usize.
        let claimed = usize::try_from(claimed).unwrap_or(usize::MAX);
        let room = from.bytes(Self::ROOM);
        let used = room.get(..claimed);
        used.map(Self).ok_or(Malformed::Length { part: Part::Mad, claimed, have: Self::ROOM })
    }

    pub(super) fn write(self, to: &mut Writer<'_>) {
        to.bytes(self.0, Self::ROOM);
    }
}

//! The bytes in a message that are the applications' own, or explain a refusal.

use std::fmt;

use super::layout::{Field, Reader, Writer};
use crate::wire::malformed::{Malformed, Part};

/// More bytes than a message has room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{given} bytes are too long: this message has room for {limit}")]
pub struct TooLong {
    /// How many there were.
    pub given: usize,
    /// How many there is room for.
    pub limit: usize,
}

const fn fitting(bytes: &[u8], limit: usize) -> Result<&[u8], TooLong> {
    if bytes.len() <= limit { Ok(bytes) } else { Err(TooLong { given: bytes.len(), limit }) }
}

/// What two applications tell each other beside the connection itself, at most `ROOM` bytes.
///
/// The wire does not say how long it is: what is shorter arrives with zeros up to `ROOM`. Two are
/// therefore equal when they are the same on the wire.
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

    /// The bytes: as they were given, or as received, with the zeros.
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The bytes up to the last that is not zero.
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

/// What explains a refusal beyond its code: where to ask instead, or which value would do.
///
/// Unlike private data it has its length in the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AdditionalInfo<'a>(&'a [u8]);

impl<'a> AdditionalInfo<'a> {
    /// How many bytes there is room for.
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

    /// The bytes.
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Takes the room, of which the message claims that `claimed` bytes are used.
    pub(super) fn read(from: &mut Reader<'a>, claimed: u64) -> Result<Self, Malformed> {
        // Seven or eight bits: it fits any usize.
        let claimed = usize::try_from(claimed).unwrap_or(usize::MAX);
        let room = from.bytes(Self::ROOM);
        let used = room.get(..claimed);
        used.map(Self).ok_or(Malformed::Length { part: Part::Mad, claimed, have: Self::ROOM })
    }

    pub(super) fn write(self, to: &mut Writer<'_>) {
        to.bytes(self.0, Self::ROOM);
    }
}

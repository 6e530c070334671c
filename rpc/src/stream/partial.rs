//! A piece of a stream that arrives in fragments.

use bytes::{Bytes, BytesMut};
use tokio::sync::oneshot;

use super::WINDOW;
use crate::bulk::Reserved;
use crate::status::Status;

/// The longest piece that arrives within the stream's window alone, without reserved memory. A
/// sender whose reader has taken everything may send at least half a window. Fragments no longer
/// than their [overhead](super::OVERHEAD) double what a piece costs, which leaves a quarter.
const WITHIN_WINDOW: usize = WINDOW / 4;

/// A piece of which some fragments have arrived.
#[derive(Debug)]
pub struct Partial {
    bytes: BytesMut,
    /// The length of the whole piece, as its sender has announced it.
    len: usize,
    /// How much of the window the fragments have cost that were not granted again.
    pub cost: usize,
    /// Tells the task that reserves memory for the piece, when this is dropped, that the piece is
    /// complete or not wanted any more.
    asked: Option<oneshot::Sender<()>>,
    reserved: Option<Reserved>,
}

/// A request for the memory that a long piece needs before more of it may arrive.
#[derive(Debug)]
pub struct MemoryRequest {
    /// The length of the piece.
    pub len: usize,
    /// Resolves when the piece is complete, or not wanted any more.
    pub over: oneshot::Receiver<()>,
}

impl Partial {
    /// Makes a piece of which nothing has arrived.
    ///
    /// # Errors
    /// When the piece is longer than `longest`.
    pub fn new(len: usize, longest: usize) -> Result<Self, Status> {
        if len > longest {
            return Err(too_long(len, longest));
        }
        let bytes = BytesMut::with_capacity(len.min(WITHIN_WINDOW));
        Ok(Self { bytes, len, cost: 0, asked: None, reserved: None })
    }

    /// Appends a fragment to those that have arrived.
    ///
    /// # Errors
    /// When the piece is then longer than was announced.
    pub fn put(&mut self, fragment: &[u8]) -> Result<(), Status> {
        if fragment.len() > self.len - self.bytes.len() {
            return Err(self.differs(self.bytes.len() + fragment.len()));
        }
        self.bytes.extend_from_slice(fragment);
        Ok(())
    }

    /// The complete piece, with the memory that was reserved for it.
    ///
    /// # Errors
    /// When the piece is shorter than was announced.
    pub fn whole(self) -> Result<(Bytes, Option<Reserved>), Status> {
        if self.bytes.len() != self.len {
            return Err(self.differs(self.bytes.len()));
        }
        Ok((self.bytes.freeze(), self.reserved))
    }

    /// The request for the memory that the piece needs; `None` if the request was made before, or
    /// the piece arrives within the window.
    pub fn wants(&mut self) -> Option<MemoryRequest> {
        if self.len <= WITHIN_WINDOW || self.asked.is_some() {
            return None;
        }
        let (asked, over) = oneshot::channel();
        self.asked = Some(asked);
        Some(MemoryRequest { len: self.len, over })
    }

    /// Gives the piece the memory that was reserved for it.
    pub fn has(&mut self, reserved: Reserved) {
        self.bytes.reserve(self.len - self.bytes.len());
        self.reserved = Some(reserved);
    }

    /// Whether memory for the whole piece is reserved.
    pub fn is_reserved(&self) -> bool {
        self.reserved.is_some()
    }

    /// Checks whether a fragment announces the same length as the fragments before.
    ///
    /// # Errors
    /// When the lengths differ.
    pub fn check(&self, len: usize) -> Result<(), Status> {
        if len == self.len { Ok(()) } else { Err(self.differs(len)) }
    }

    #[cold]
    fn differs(&self, len: usize) -> Status {
        Status::internal(format!(
            "the sender of a stream has announced a message of {} bytes, and sent one of {len}",
            self.len
        ))
    }
}

/// The error of a piece that is longer than its reader accepts.
#[cold]
pub fn too_long(len: usize, longest: usize) -> Status {
    Status::resource_exhausted(format!(
        "a message of a stream has {len} bytes, and at most {longest} are taken: raise \
         `longest_body`, or send shorter ones"
    ))
}

//! A message of a stream that comes in fragments.

use bytes::{Bytes, BytesMut};
use tokio::sync::oneshot;

use super::WINDOW;
use crate::bulk::Reserved;
use crate::status::Status;

/// The longest message that comes within the stream's window alone. A sender whose reader has taken
/// everything has at least half a window, and fragments no longer than what each
/// [counts](super::OVERHEAD) beside its bytes double what a message costs.
const WITHIN_WINDOW: usize = WINDOW / 4;

/// A message of which some fragments have come.
#[derive(Debug)]
pub struct Partial {
    bytes: BytesMut,
    /// The length of the whole message, as its sender has announced it.
    len: usize,
    /// What the fragments have cost that were not granted anew.
    pub cost: usize,
    /// Whoever reserves memory for the message hears when this is dropped that the message is whole,
    /// or not wanted any more.
    asked: Option<oneshot::Sender<()>>,
    reserved: Option<Reserved>,
}

/// Memory that a message of a stream needs before more of it may come.
#[derive(Debug)]
pub struct Wanted {
    /// The length of the message.
    pub len: usize,
    /// Ends when the message is whole, or not wanted any more.
    pub over: oneshot::Receiver<()>,
}

impl Partial {
    /// A message of which nothing has come.
    ///
    /// # Errors
    /// When it is longer than `longest`.
    pub fn new(len: usize, longest: usize) -> Result<Self, Status> {
        if len > longest {
            return Err(too_long(len, longest));
        }
        let bytes = BytesMut::with_capacity(len.min(WITHIN_WINDOW));
        Ok(Self { bytes, len, cost: 0, asked: None, reserved: None })
    }

    /// Puts a fragment behind the others.
    ///
    /// # Errors
    /// When the message is longer then than was announced.
    pub fn put(&mut self, fragment: &[u8]) -> Result<(), Status> {
        if fragment.len() > self.len - self.bytes.len() {
            return Err(self.differs(self.bytes.len() + fragment.len()));
        }
        self.bytes.extend_from_slice(fragment);
        Ok(())
    }

    /// The whole message, with the memory that is reserved for it.
    ///
    /// # Errors
    /// When it is shorter than was announced.
    pub fn whole(self) -> Result<(Bytes, Option<Reserved>), Status> {
        if self.bytes.len() != self.len {
            return Err(self.differs(self.bytes.len()));
        }
        Ok((self.bytes.freeze(), self.reserved))
    }

    /// The memory that the message needs, unless it was asked for before, or the message comes
    /// within the window.
    pub fn wants(&mut self) -> Option<Wanted> {
        if self.len <= WITHIN_WINDOW || self.asked.is_some() {
            return None;
        }
        let (asked, over) = oneshot::channel();
        self.asked = Some(asked);
        Some(Wanted { len: self.len, over })
    }

    /// Takes the memory that was reserved for the message.
    pub fn has(&mut self, reserved: Reserved) {
        self.bytes.reserve(self.len - self.bytes.len());
        self.reserved = Some(reserved);
    }

    /// Whether memory for all of the message is reserved.
    pub fn is_reserved(&self) -> bool {
        self.reserved.is_some()
    }

    /// Whether the message has that length, as far as was announced.
    ///
    /// # Errors
    /// When another length was announced before.
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

/// The error of a message that is longer than its reader takes.
#[cold]
pub fn too_long(len: usize, longest: usize) -> Status {
    Status::resource_exhausted(format!(
        "a message of a stream has {len} bytes, and at most {longest} are taken: raise \
         `longest_body`, or send shorter ones"
    ))
}

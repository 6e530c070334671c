//! The places of the outcomes of requests.

use std::sync::{Mutex, PoisonError};

use bytes::{Bytes, BytesMut};

use super::arrived::Sender;
use crate::error::{ReceiveError, SendError};
use crate::slot::Slot;

/// The place of a send's outcome.
pub type SendSlot = Slot<Result<(), SendError>>;

/// A message that a receive has got.
#[derive(Debug)]
pub struct Received {
    pub bits: u64,
    pub body: Bytes,
    pub from: Sender,
    /// The place of the message in the order of arrival.
    pub order: u64,
}

/// The place of a receive's outcome, and the room that the receive has.
#[derive(Debug)]
pub struct ReceiveSlot {
    pub outcome: Slot<Result<Received, ReceiveError>>,
    pub room: usize,
    /// The pieces into which the body is scattered, until the program takes the message.
    pieces: Mutex<Vec<BytesMut>>,
}

impl ReceiveSlot {
    /// The slot of a receive that takes at most `room` bytes.
    pub fn of(room: usize) -> Self {
        Self { outcome: Slot::default(), room, pieces: Default::default() }
    }

    /// The slot of a receive that scatters the body into pieces with this much room.
    pub fn into_pieces(pieces: Vec<BytesMut>) -> Self {
        let room = pieces.iter().map(|piece| piece.capacity() - piece.len()).sum();
        Self { outcome: Slot::default(), room, pieces: pieces.into() }
    }

    /// Gives the receive its message of `len` bytes, if the receive has room for that. Returns
    /// whether a task was woken.
    ///
    /// # Errors
    /// Returns the message if the receive was dropped meanwhile.
    pub fn give(&self, len: usize, received: Received) -> Result<bool, Received> {
        let (room, bits) = (self.room, received.bits);
        let outcome = match len > room {
            true => Err(ReceiveError::Truncated { bits, len, room }),
            false => Ok(received),
        };
        match self.outcome.try_fill(outcome) {
            Ok(woke) => Ok(woke),
            Err(Ok(received)) => Err(received),
            Err(Err(_)) => Ok(false),
        }
    }

    /// Scatters a body into the pieces of the receive. Returns the pieces, and what none of them
    /// had room for.
    pub fn scatter(&self, mut body: Bytes) -> (Vec<BytesMut>, Bytes) {
        let mut pieces = {
            let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *pieces)
        };
        for piece in &mut pieces {
            let part = body.split_to(body.len().min(piece.capacity() - piece.len()));
            piece.extend_from_slice(&part);
        }
        (pieces, body)
    }
}

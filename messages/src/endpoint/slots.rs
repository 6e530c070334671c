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
    /// The pieces into which the body was scattered, if the receive has some.
    pub pieces: Vec<BytesMut>,
    pub from: Sender,
}

/// The place of a receive's outcome, and the room that the receive has.
#[derive(Debug)]
pub struct ReceiveSlot {
    pub outcome: Slot<Result<Received, ReceiveError>>,
    pub room: usize,
    /// The pieces into which the body is scattered, until the message has come.
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

    /// Gives the receive its message, if the receive has room for `len` bytes. Returns whether a
    /// task was woken.
    pub fn give(&self, bits: u64, len: usize, mut body: Bytes, from: Sender) -> bool {
        let room = self.room;
        if len > room {
            return self.outcome.fill(Err(ReceiveError::Truncated { bits, len, room }));
        }
        let mut pieces = {
            let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *pieces)
        };
        for piece in &mut pieces {
            let part = body.split_to(body.len().min(piece.capacity() - piece.len()));
            piece.extend_from_slice(&part);
        }
        self.outcome.fill(Ok(Received { bits, body, pieces, from }))
    }
}

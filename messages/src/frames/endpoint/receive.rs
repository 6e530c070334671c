//! Receives that were posted, and the places of their messages.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use bytes::Bytes;
use doorbell_verbs::{Registered, RemoteMemory};

use super::handle::Handle;
use super::peer::Peer;
use crate::frames::engine::Place;
use crate::frames::error::ReceiveError;
use crate::matching::{Pattern, PostedId, Source};
use crate::slot::Slot;

/// A filter of messages for a receive, by their match bits and by the peer that sends them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Match {
    bits: u64,
    mask: u64,
    source: Option<Source>,
}

impl Match {
    /// Matches every message, whatever its bits and its sender.
    pub fn any() -> Self {
        Self { bits: 0, mask: 0, source: None }
    }

    /// Matches messages with exactly these bits.
    pub fn exactly(bits: u64) -> Self {
        Self { bits, mask: u64::MAX, source: None }
    }

    /// Messages with these bits, where the [mask](Self::mask) has ones. Unless it is set, the mask
    /// has ones everywhere.
    pub fn bits(bits: u64) -> Self {
        Self::exactly(bits)
    }

    /// Compares the bits alone where the mask has ones.
    #[must_use]
    pub fn mask(self, mask: u64) -> Self {
        Self { mask, ..self }
    }

    /// Messages from this peer alone. A receive of them fails with
    /// [`ReceiveError::PeerGone`] once the peer closes its endpoint, or is found to be silent.
    #[must_use]
    pub fn from(self, peer: &Peer) -> Self {
        Self { source: Some(peer.source()), ..self }
    }

    pub(super) fn pattern(self) -> Pattern {
        Pattern::new(self.source, self.bits, self.mask)
    }
}

/// A message that was received.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Message {
    /// The match bits that the sender has chosen.
    pub bits: u64,
    /// The bytes that were sent.
    pub body: Bytes,
    /// The sender, to which an answer can be sent.
    pub from: Peer,
}

/// The place of a receive's outcome, and the room that the receive has.
#[derive(Debug)]
pub struct ReceiveSlot {
    pub outcome: Slot<Result<Message, ReceiveError>>,
    pub room: usize,
    /// Whether the receive has met a message, or was cancelled.
    pub has_met: AtomicBool,
}

impl ReceiveSlot {
    pub fn new(room: usize) -> Self {
        Self { outcome: Slot::default(), room, has_met: AtomicBool::new(false) }
    }
}

/// A receive that was posted: a future of its message. Dropping it cancels the receive, if no
/// message has come to it yet; a message that has come is lost then.
#[must_use = "a receive that is dropped is cancelled"]
pub struct Receiving {
    slot: Arc<ReceiveSlot>,
    /// The name of the receive while it may wait.
    waits: Option<(Weak<dyn Handle>, PostedId)>,
}

impl Receiving {
    pub(super) fn new(slot: Arc<ReceiveSlot>, waits: Option<(Weak<dyn Handle>, PostedId)>) -> Self {
        Self { slot, waits }
    }

    /// Returns the outcome if it is there, once.
    pub fn test(&mut self) -> Option<Result<Message, ReceiveError>> {
        self.slot.outcome.take()
    }

    /// Cancels the receive, unless a message has come to it. Returns whether the receive was
    /// cancelled; if not, the message is still to be had.
    pub fn cancel(&mut self) -> bool {
        let is_cancelled = self.take_back();
        if is_cancelled {
            self.slot.outcome.fill(Err(ReceiveError::Cancelled));
        }
        is_cancelled
    }

    fn take_back(&mut self) -> bool {
        let Some((endpoint, receive)) = self.waits.take() else { return false };
        endpoint.upgrade().is_some_and(|endpoint| endpoint.cancel(receive))
    }
}

impl Future for Receiving {
    type Output = Result<Message, ReceiveError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.slot.outcome.poll(context)
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        self.take_back();
    }
}

impl fmt::Debug for Receiving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiving").field("room", &self.slot.room).finish_non_exhaustive()
    }
}

/// The place of a message: the memory of a receive.
#[derive(Debug)]
pub struct Letter {
    pub slot: Arc<ReceiveSlot>,
    pub bits: u64,
    pub from: Peer,
    memory: Memory,
}

#[derive(Debug)]
enum Memory {
    Private(Vec<u8>),
    /// Memory that the peer may write. The key ends with the message.
    Registered(Registered),
}

impl Letter {
    /// A place of `len` bytes, in memory that the peer may write if that is given.
    pub fn new(
        slot: Arc<ReceiveSlot>,
        bits: u64,
        from: Peer,
        len: usize,
        memory: Option<Registered>,
    ) -> Self {
        let memory = match memory {
            Some(memory) => Memory::Registered(memory),
            None => Memory::Private(vec![0; len]),
        };
        Self { slot, bits, from, memory }
    }

    pub fn len(&self) -> usize {
        match &self.memory {
            Memory::Private(bytes) => bytes.len(),
            Memory::Registered(memory) => memory.len(),
        }
    }

    /// Gives the message to its receive.
    pub fn deliver(self) {
        let Self { slot, bits, from, memory } = self;
        let body = match memory {
            Memory::Private(bytes) => Some(bytes.into()),
            Memory::Registered(memory) => {
                let region = memory.revoke_now().ok().and_then(|it| it.try_private().ok());
                region.map(|region| Bytes::from_owner(region.freeze()))
            }
        };
        let message = body.map(|body| Message { bits, body, from });
        slot.outcome.fill(message.ok_or(ReceiveError::Closed));
    }
}

impl Place for Letter {
    fn write(&mut self, at: usize, data: &[u8]) {
        match &mut self.memory {
            Memory::Private(bytes) => {
                let place = bytes.get_mut(at..at + data.len());
                debug_assert!(place.is_some(), "the engine writes within the message");
                place.into_iter().for_each(|place| place.copy_from_slice(data));
            }
            Memory::Registered(memory) => {
                let written = memory.write_at(at, data);
                debug_assert!(written.is_ok(), "the engine writes within the message");
            }
        }
    }

    fn memory(&self) -> Option<RemoteMemory> {
        match &self.memory {
            Memory::Private(_) => None,
            Memory::Registered(memory) => Some(memory.remote()),
        }
    }
}

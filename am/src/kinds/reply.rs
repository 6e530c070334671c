//! Replies, as callers get them.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use doorbell_verbs::Inline;

use crate::arguments::{Arguments, HasPayload, Payload, Room};
use crate::error::CallError;
use crate::kinds::ReplyId;
use crate::receives::{Arrival, Buffers, ReceivedBuffer, is_copied};
use crate::wire::{Header, each_word};

/// A reply, as the caller who awaited it gets it. A reply of more than 64 bytes, which are the most
/// that [travel inline](doorbell_verbs::Inline), keeps the buffer in which it was received.
pub struct Reply {
    handler: u16,
    /// The number of bytes of the words.
    words: usize,
    data: ReplyData,
}

/// The words and the payload of a reply.
enum ReplyData {
    /// A copy of few bytes, so that the buffer serves others.
    Few(Inline),
    /// More bytes, in the buffer in which they were received.
    Buffered(ReceivedBuffer),
}

impl Reply {
    /// Makes the reply of a message, with the buffer if the message is too long to be copied.
    #[inline]
    pub(crate) fn of(arrival: &mut Arrival, buffers: &Arc<Buffers>) -> Self {
        let Header { words, handler, .. } = arrival.header;
        // Moving these bytes along costs less than another buffer.
        let data = match Inline::new(arrival.data()) {
            Some(few) => ReplyData::Few(few),
            None => ReplyData::Buffered(buffered(arrival, buffers)),
        };
        Self { handler, words: 8 * words, data }
    }

    #[inline]
    fn data(&self) -> &[u8] {
        match &self.data {
            ReplyData::Few(few) => few.bytes(),
            ReplyData::Buffered(buffered) => buffered.as_ref(),
        }
    }

    /// Returns the index of the reply handler that the reply is for.
    pub fn handler(&self) -> u16 {
        self.handler
    }

    /// Returns the words as bytes.
    #[inline]
    pub(crate) fn word_bytes(&self) -> &[u8] {
        &self.data()[..self.words]
    }

    /// Returns the words of the reply.
    pub fn words(&self) -> impl ExactSizeIterator<Item = u64> {
        each_word(self.word_bytes())
    }

    /// Returns the payload of the reply.
    pub fn payload(&self) -> &[u8] {
        &self.data()[self.words..]
    }

    /// Returns the payload, which is not copied if it fills a quarter of the buffer in which it
    /// came.
    pub fn into_payload(mut self) -> Bytes {
        self.take_all()
    }

    /// Takes the payload, and leaves a reply without words and payload.
    fn take_all(&mut self) -> Bytes {
        let words = std::mem::take(&mut self.words);
        let nothing = ReplyData::Few(Inline::new(&[]).expect("no bytes are few"));
        match std::mem::replace(&mut self.data, nothing) {
            ReplyData::Few(few) => Bytes::copy_from_slice(&few.bytes()[words..]),
            ReplyData::Buffered(buffered)
                if is_copied(buffered.as_ref().len() - words, &buffered.buffer) =>
            {
                Bytes::copy_from_slice(&buffered.as_ref()[words..])
            }
            ReplyData::Buffered(buffered) => Bytes::from_owner(buffered).slice(words..),
        }
    }

    #[cold]
    fn is_other(&self, index: u16, expected: &'static str) -> CallError {
        CallError::OtherReply { found: self.handler, index, expected }
    }

    /// Decodes the arguments of a reply of this kind.
    ///
    /// # Errors
    /// When the reply is of another kind, or its words are no such arguments.
    #[inline]
    pub fn arguments<A: Arguments>(&self, id: ReplyId<A>) -> Result<A, CallError> {
        let mut room = Room::new();
        if self.handler != id.index() {
            return Err(self.is_other(id.index(), id.name()));
        }
        let words = room.read(self.word_bytes());
        let found = A::take(words, &mut Payload::new(self.payload()));
        found.ok_or_else(|| self.is_other(id.index(), id.name()))
    }
}

impl HasPayload for Reply {
    fn payload(&self) -> &[u8] {
        self.payload()
    }

    fn take_payload(&mut self) -> Bytes {
        self.take_all()
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("handler", &self.handler)
            .field("words", &self.words().collect::<Vec<_>>())
            .field("payload", &self.payload().len())
            .finish()
    }
}

/// Takes the words and payload of a message, with the buffer in which they were received.
fn buffered(arrival: &mut Arrival, buffers: &Arc<Buffers>) -> ReceivedBuffer {
    let range = if arrival.whole { arrival.data.clone() } else { 0..arrival.data.len() };
    let buffer = arrival.detach(buffers).unwrap_or_default();
    ReceivedBuffer { buffer, range, buffers: Arc::downgrade(buffers) }
}

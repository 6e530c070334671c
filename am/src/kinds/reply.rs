//! Replies, for callers who await them.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use doorbell_verbs::Inline;

use crate::arguments::{Arguments, HasPayload, Payload, Room};
use crate::error::CallError;
use crate::kinds::ReplyId;
use crate::receives::{Arrival, Buffers, ReceivedBuffer, is_copied};
use crate::wire::{Header, each_word};

/// A reply, for the caller who awaited it. One of more bytes than [travel in a
/// request](doorbell_verbs::Inline), 64, keeps the buffer in which it was received.
pub struct Reply {
    handler: u16,
    /// How many of the bytes are words.
    words: usize,
    data: ReplyData,
}

/// The words and the payload of a reply.
enum ReplyData {
    /// So few bytes that the buffer is left to others.
    Few(Inline),
    /// More, in the buffer in which they were received.
    Buffered(ReceivedBuffer),
}

impl Reply {
    /// Takes the buffer along only if there is much in it.
    #[inline]
    pub(crate) fn of(arrival: &mut Arrival, buffers: &Arc<Buffers>) -> Self {
        let Header { words, handler, .. } = arrival.header;
        // What is moved with each costs less than to get another buffer.
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

    /// The index of the handler that it is for.
    pub fn handler(&self) -> u16 {
        self.handler
    }

    /// The bytes of its words.
    #[inline]
    pub(crate) fn word_bytes(&self) -> &[u8] {
        &self.data()[..self.words]
    }

    /// Its words.
    pub fn words(&self) -> impl ExactSizeIterator<Item = u64> {
        each_word(self.word_bytes())
    }

    /// Its payload.
    pub fn payload(&self) -> &[u8] {
        &self.data()[self.words..]
    }

    /// Its payload, which is not copied if it fills a quarter of the buffer in which it came.
    pub fn into_payload(mut self) -> Bytes {
        self.take_all()
    }

    /// Takes the payload, and leaves neither that nor words.
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

    /// Its arguments, if it is of this kind.
    ///
    /// # Errors
    /// When it is of another, or the words are none of that.
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

/// The data of a message, with the buffer in which it was received.
fn buffered(arrival: &mut Arrival, buffers: &Arc<Buffers>) -> ReceivedBuffer {
    let range = if arrival.whole { arrival.data.clone() } else { 0..arrival.data.len() };
    let buffer = arrival.detach(buffers).unwrap_or_default();
    ReceivedBuffer { buffer, range, buffers: Arc::downgrade(buffers) }
}

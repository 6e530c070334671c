//! A message that has arrived, in the buffer in which it was received.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use doorbell_verbs::Buf;

use crate::receives::{Buffers, ReceivedBuffer, is_copied};
use crate::wire::{Header, MOST_WORDS};

/// A message that has arrived.
pub(crate) struct Arrival {
    pub header: Header,
    /// The buffer, unless a handler has retained it.
    pub buffer: Option<Buf>,
    /// The range of the buffer with the words, and the payload behind them.
    pub data: Range<usize>,
    /// Whether the buffer has no other messages.
    pub whole: bool,
    /// Whether the buffer was posted, and is to be posted again.
    pub posted: bool,
    /// The range of the segment in which the payload was placed, if it was.
    pub placed: Option<Range<u64>>,
}

impl Arrival {
    /// Makes a message that has its buffer for itself.
    #[inline]
    pub fn alone(header: Header, buffer: Buf, data: Range<usize>) -> Self {
        Self { header, buffer: Some(buffer), data, whole: true, posted: true, placed: None }
    }

    /// Returns the words and the payload behind them.
    #[inline]
    pub fn data(&self) -> &[u8] {
        self.buffer.as_deref().map_or(&[], |buffer| &buffer[self.data.clone()])
    }

    /// Returns the words as bytes.
    #[inline]
    pub fn words(&self) -> &[u8] {
        &self.data()[..8 * self.header.words]
    }

    /// Returns the payload, which is empty once it was [taken](Self::take_payload).
    #[inline]
    pub fn payload(&self) -> &[u8] {
        self.data().get(8 * self.header.words..).unwrap_or_default()
    }

    /// Takes the payload out of the message. The buffer goes along if the message has it for itself
    /// and the payload fills enough of it; otherwise the payload is copied.
    pub fn take_payload(&mut self, buffers: &Arc<Buffers>) -> Bytes {
        let payload = self.payload();
        let is_copied = |buffer| is_copied(payload.len(), buffer);
        if !self.whole || self.buffer.as_ref().is_none_or(is_copied) {
            let copy = Bytes::copy_from_slice(payload);
            self.data.end = self.data.end.min(self.data.start + 8 * self.header.words);
            return copy;
        }
        let range = self.data.start + 8 * self.header.words..self.data.end;
        let Some(buffer) = self.buffer.take() else { return Bytes::new() };
        Bytes::from_owner(ReceivedBuffer { buffer, range, buffers: Arc::downgrade(buffers) })
    }

    /// Returns whether the message is no longer than one with a payload of this length. Words
    /// beyond sixteen, and the word with their number, take the place of payload.
    #[inline]
    pub fn fits(&self, payload: usize) -> bool {
        let Header { kind, words, .. } = self.header;
        let few = MOST_WORDS + kind.own_words();
        let more = if words > few { 8 } else { 0 };
        self.data.len() + more <= 8 * words.min(few) + payload
    }

    /// Takes the buffer if the message has it for itself, or else a copy of the message in a spare
    /// buffer.
    pub fn detach(&mut self, buffers: &Buffers) -> Option<Buf> {
        if self.whole {
            return self.buffer.take();
        }
        let mut copy = buffers.take();
        let copied = copy.extend_from_slice(self.data());
        debug_assert!(copied.is_ok(), "it came in a buffer of that size");
        Some(copy)
    }

    /// Ends the handling of the message. Returns the buffer that is to be posted in its place, or
    /// that has further messages, if there is one.
    #[inline]
    pub fn leave(&mut self, buffers: &Buffers) -> Option<Buf> {
        let buffer = self.buffer.take();
        // Further messages in it are handled next, and a posted buffer is posted again.
        if self.posted || !self.whole {
            return Some(buffer.unwrap_or_else(|| buffers.take()));
        }
        buffer.into_iter().for_each(|buffer| buffers.give(buffer));
        None
    }

    /// Moves the message into a buffer of its own, so that it may be kept. Returns it with the
    /// buffer in which it was, if that has other messages.
    pub fn detached(&mut self, buffers: &Buffers) -> (Self, Option<Buf>) {
        let data = if self.whole { self.data.clone() } else { 0..self.data.len() };
        let buffer = self.detach(buffers);
        let rest = self.buffer.take();
        let Self { header, posted, ref placed, .. } = *self;
        (Self { header, buffer, data, whole: true, posted, placed: placed.clone() }, rest)
    }
}

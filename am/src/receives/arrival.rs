//! Messages that have arrived, in the buffers in which they were received.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use doorbell_verbs::Buf;

use crate::receives::{Buffers, ReceivedBuffer, is_copied};
use crate::wire::{Header, MOST_WORDS};

/// What came for a handler, in the buffer in which it was received.
pub(crate) struct Arrival {
    pub header: Header,
    /// There, unless a handler has kept it.
    pub buffer: Option<Buf>,
    /// Where in it the words are, and the payload behind them.
    pub data: Range<usize>,
    /// Whether there is nothing else in the buffer.
    pub whole: bool,
    /// Whether the buffer was posted, and is to be again.
    pub posted: bool,
    /// Where in the segment a payload was placed.
    pub placed: Option<Range<u64>>,
}

impl Arrival {
    /// One that has its buffer for itself.
    #[inline]
    pub fn alone(header: Header, buffer: Buf, data: Range<usize>) -> Self {
        Self { header, buffer: Some(buffer), data, whole: true, posted: true, placed: None }
    }

    /// The words and the payload.
    #[inline]
    pub fn data(&self) -> &[u8] {
        self.buffer.as_deref().map_or(&[], |buffer| &buffer[self.data.clone()])
    }

    #[inline]
    pub fn words(&self) -> &[u8] {
        &self.data()[..8 * self.header.words]
    }

    /// The payload; nothing if it was [taken](Self::take_payload).
    #[inline]
    pub fn payload(&self) -> &[u8] {
        self.data().get(8 * self.header.words..).unwrap_or_default()
    }

    /// Takes the payload, and leaves none. If the message has its buffer for itself, and more than
    /// a few bytes in it, the buffer goes along.
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

    /// Whether it is no longer than a message with such a payload: words beyond sixteen, and one
    /// more then, are in the place of some.
    #[inline]
    pub fn fits(&self, payload: usize) -> bool {
        let Header { kind, words, .. } = self.header;
        let few = MOST_WORDS + kind.own_words();
        let more = if words > few { 8 } else { 0 };
        self.data.len() + more <= 8 * words.min(few) + payload
    }

    /// Takes the buffer, if the message has it for itself; or else a copy.
    pub fn detach(&mut self, buffers: &Buffers) -> Option<Buf> {
        if self.whole {
            return self.buffer.take();
        }
        let mut copy = buffers.take();
        let copied = copy.extend_from_slice(self.data());
        debug_assert!(copied.is_ok(), "it came in a buffer of that size");
        Some(copy)
    }

    /// It is handled: the buffer that goes on where this one was, if one does.
    #[inline]
    pub fn leave(&mut self, buffers: &Buffers) -> Option<Buf> {
        let buffer = self.buffer.take();
        // With others in it, it goes on to them; and it is to be posted if it was.
        if self.posted || !self.whole {
            return Some(buffer.unwrap_or_else(|| buffers.take()));
        }
        buffer.into_iter().for_each(|buffer| buffers.give(buffer));
        None
    }

    /// The same, which may be kept: in a buffer of its own.
    pub fn detached(&mut self, buffers: &Buffers) -> (Self, Option<Buf>) {
        let data = if self.whole { self.data.clone() } else { 0..self.data.len() };
        let buffer = self.detach(buffers);
        let rest = self.buffer.take();
        let Self { header, posted, ref placed, .. } = *self;
        (Self { header, buffer, data, whole: true, posted, placed: placed.clone() }, rest)
    }
}

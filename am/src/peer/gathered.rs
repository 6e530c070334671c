//! Payloads that are gathered in the buffers from which they are sent.

use std::fmt;
use std::sync::Arc;

use doorbell_verbs::Buf;

use super::Peer;
use super::credit::Credit;
use crate::arguments::{Arguments, Room};
use crate::error::SendError;
use crate::kinds::RequestId;
use crate::link::Link;
use crate::wire::pack::{HEAD, LONGEST};

/// The payload of a request, which is gathered in the buffer that the request is sent from.
pub struct Gathered {
    link: Arc<Link>,
    /// The buffer, with room for the header and the words in front of the payload.
    buffer: Buf,
    /// Where in the buffer the payload begins.
    begin: usize,
}

impl Peer {
    /// Returns an empty payload for a request with so many words, or `None` if requests to this
    /// peer do not leave from buffers.
    pub fn gather(&self, words: usize) -> Option<Gathered> {
        self.link.leaves_from_buffers().then(|| {
            let (link, mut buffer) = (self.link.clone(), self.link.buffers.take());
            let begin = HEAD + 8 * words;
            let filled = buffer.set_len(begin);
            debug_assert!(filled.is_ok(), "buffers have room for a header and words");
            Gathered { link, buffer, begin }
        })
    }
}

impl Gathered {
    /// Returns the bytes that were gathered.
    pub fn payload(&self) -> &[u8] {
        self.buffer.get(self.begin..).unwrap_or_default()
    }

    /// Appends bytes to the payload.
    ///
    /// # Panics
    /// When the payload becomes longer than the [longest](Peer::longest_payload).
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        let fits = self.buffer.extend_from_slice(bytes);
        fits.expect("a payload is gathered that is no longer than the peer takes");
    }
}

impl Credit<'_> {
    /// Sends a request with a payload that was gathered for as many words, without waiting.
    ///
    /// # Errors
    /// As [`request_with`](Self::request_with).
    pub fn request_gathered<A: Arguments>(
        self,
        id: RequestId<A>,
        arguments: A,
        mut gathered: Gathered,
    ) -> Result<(), SendError> {
        let mut room = Room::new();
        let content = room.content_with(&arguments, gathered.payload());
        self.link.check_allowed(content)?;
        let fits = HEAD + 8 * content.words.len() == gathered.begin;
        if !fits || content.len() <= LONGEST {
            return self.send(id.index(), content);
        }
        let (words, link) = (room.of(&arguments), self.link);
        let buffer = std::mem::take(&mut gathered.buffer);
        self.uses(|| link.request_gathered(&mut link.send_side(), id.index(), words, buffer))
    }
}

impl Drop for Gathered {
    fn drop(&mut self) {
        if self.buffer.capacity() > 0 {
            self.link.buffers.give(std::mem::take(&mut self.buffer));
        }
    }
}

impl fmt::Debug for Gathered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gathered").field("len", &self.payload().len()).finish_non_exhaustive()
    }
}

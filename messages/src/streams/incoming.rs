//! A message that comes, as its handler receives it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::error::ReceiveError;
use super::id::StreamId;
use super::inbox::{End, Inbox, Next};
use super::link::Link;
use super::peer::Peer;
use super::wire::OVERHEAD;

/// How much memory is taken ahead for bytes that a handler asks for and that have not come.
const AHEAD: usize = 1 << 20;

/// A message that comes, which its handler receives piece by piece. Pieces need not be those of
/// the sender.
///
/// The handler has begun with the message's first packet, and each receive waits for what has not
/// come yet. Other handlers run meanwhile. A receive that is dropped before its end takes nothing:
/// the next one gets the bytes that had come.
pub struct Incoming {
    inbox: Arc<Inbox>,
    link: Arc<Link>,
    stream: StreamId,
    /// Bytes that receives had got which were dropped before their end.
    back: VecDeque<Bytes>,
}

impl Incoming {
    pub(super) fn new(inbox: &Arc<Inbox>, link: &Arc<Link>, stream: StreamId) -> Self {
        Self { inbox: inbox.clone(), link: link.clone(), stream, back: VecDeque::new() }
    }

    /// Returns the sender, to whom the handler may send messages.
    pub fn peer(&self) -> Peer {
        Peer::new(&self.link)
    }

    /// Returns the stream that the message is of.
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// Receives exactly as many bytes as a place has, into that place.
    ///
    /// # Errors
    /// When the message ends before, was given up, or its sender has gone.
    pub async fn receive_into(&mut self, place: &mut [u8]) -> Result<(), ReceiveError> {
        let wanted = place.len();
        let mut filled = Filled { incoming: self, place, got: 0 };
        while filled.got < wanted {
            let got = filled.got;
            let chunk = filled.incoming.next(wanted - got).await;
            let chunk = chunk.map_err(|end| {
                // What has come is lost if the message ends before.
                filled.got = 0;
                filled.incoming.error(end, wanted, got)
            })?;
            filled.place[got..got + chunk.len()].copy_from_slice(&chunk);
            filled.got += chunk.len();
        }
        filled.got = 0;
        Ok(())
    }

    /// Receives exactly so many bytes. Bytes of one packet are not copied.
    ///
    /// # Errors
    /// As [`receive_into`](Self::receive_into). If the message ends before, its last bytes are
    /// lost; [`receive_some`](Self::receive_some) takes what there is.
    pub async fn receive(&mut self, len: usize) -> Result<Bytes, ReceiveError> {
        if len == 0 {
            return Ok(Bytes::new());
        }
        let mut got = Got::new(self);
        let first = got.next(len).await.map_err(|end| got.fails(end, len))?;
        if first.len() == len {
            got.end();
            return Ok(first);
        }
        got.few.reserve(len.min(AHEAD));
        got.copy(&first);
        while got.len < len {
            let chunk = got.next(len - got.len).await.map_err(|end| got.fails(end, len))?;
            got.copy(&chunk);
        }
        Ok(got.end().joined())
    }

    /// Receives the next bytes as they have come, without a copy. Returns `None` at the end of the
    /// message.
    ///
    /// # Errors
    /// When the message was given up, or its sender has gone.
    pub async fn receive_some(&mut self) -> Result<Option<Bytes>, ReceiveError> {
        match self.next(usize::MAX).await {
            Ok(chunk) => Ok(Some(chunk)),
            Err(End::Whole) => Ok(None),
            Err(end) => Err(self.error(end, 1, 0)),
        }
    }

    /// Receives all the rest of the message, if it has at most so many bytes.
    ///
    /// # Errors
    /// When the rest is longer, the message was given up, or its sender has gone.
    pub async fn receive_rest(&mut self, most: usize) -> Result<Bytes, ReceiveError> {
        let mut got = Got::new(self);
        while got.len <= most {
            match got.next(usize::MAX).await {
                Ok(chunk) => got.add(chunk),
                Err(End::Whole) => return Ok(got.end().joined()),
                Err(end) => return Err(got.fails(end, 1)),
            }
        }
        got.end();
        drop(got);
        let (peer, stream) = (self.link.peer().to_string(), self.stream.name());
        Err(ReceiveError::TooLong { peer, stream, most })
    }

    async fn next(&mut self, most: usize) -> Next {
        if let Some(mut first) = self.back.pop_front() {
            let next = first.split_to(most.min(first.len()));
            if !first.is_empty() {
                self.back.push_front(first);
            }
            return Ok(next);
        }
        std::future::poll_fn(|context| self.inbox.poll_next(most, context)).await
    }

    #[cold]
    fn error(&self, end: End, wanted: usize, got: usize) -> ReceiveError {
        let (peer, stream) = (self.link.peer().to_string(), self.stream.name());
        match end {
            End::Whole => ReceiveError::Ended { peer, stream, wanted, got },
            End::Abandoned => ReceiveError::Abandoned { peer, stream },
            End::Gone => ReceiveError::PeerGone { peer, stream },
            End::Violation => ReceiveError::Violation { peer, stream },
            End::Over => ReceiveError::HandlerEnded { peer, stream },
        }
    }
}

/// A place that is being filled by a receive. If the receive is dropped before its end, the message
/// has the bytes again.
struct Filled<'i, 'p> {
    incoming: &'i mut Incoming,
    place: &'p mut [u8],
    /// How many bytes have come.
    got: usize,
}

impl Drop for Filled<'_, '_> {
    fn drop(&mut self) {
        if self.got > 0 {
            self.incoming.back.push_front(Bytes::copy_from_slice(&self.place[..self.got]));
        }
    }
}

/// The bytes that a receive has got so far. If the receive is dropped before its end, the message has that
/// again, for the next receive.
struct Got<'i> {
    incoming: &'i mut Incoming,
    chunks: Vec<Bytes>,
    /// Bytes behind those of the chunks, of packets that take much more memory than their bytes.
    few: BytesMut,
    len: usize,
}

/// The bytes of a receive that is done.
struct All {
    chunks: Vec<Bytes>,
    len: usize,
}

impl<'i> Got<'i> {
    fn new(incoming: &'i mut Incoming) -> Self {
        Self { incoming, chunks: Vec::new(), few: BytesMut::new(), len: 0 }
    }

    async fn next(&mut self, most: usize) -> Next {
        self.incoming.next(most).await
    }

    /// Adds a chunk as it is, unless it is short.
    fn add(&mut self, chunk: Bytes) {
        if chunk.len() < OVERHEAD {
            return self.copy(&chunk);
        }
        self.len += chunk.len();
        self.ends_few();
        self.chunks.push(chunk);
    }

    /// Adds the bytes of a chunk.
    fn copy(&mut self, chunk: &[u8]) {
        self.len += chunk.len();
        self.few.extend_from_slice(chunk);
    }

    fn ends_few(&mut self) {
        if !self.few.is_empty() {
            self.chunks.push(self.few.split().freeze());
        }
    }

    /// Takes out all that the receive has got, since it is done.
    fn end(&mut self) -> All {
        self.ends_few();
        All { chunks: std::mem::take(&mut self.chunks), len: self.len }
    }

    /// Makes the error of a message that has ended before so many bytes had come. What has come is
    /// lost.
    fn fails(&mut self, end: End, wanted: usize) -> ReceiveError {
        let got = self.end().len;
        self.incoming.error(end, wanted, got)
    }
}

impl All {
    fn joined(mut self) -> Bytes {
        match self.chunks.len() {
            0 => Bytes::new(),
            1 => self.chunks.swap_remove(0),
            _ => {
                let mut all = BytesMut::with_capacity(self.len);
                self.chunks.iter().for_each(|chunk| all.extend_from_slice(chunk));
                all.freeze()
            }
        }
    }
}

impl Drop for Got<'_> {
    fn drop(&mut self) {
        self.ends_few();
        self.chunks.drain(..).rev().for_each(|chunk| self.incoming.back.push_front(chunk));
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("from", self.link.peer())
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

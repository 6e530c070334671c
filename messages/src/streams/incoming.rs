//! A message that comes, as its handler receives it.

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
/// come yet. Other handlers run meanwhile.
pub struct Incoming {
    inbox: Arc<Inbox>,
    link: Arc<Link>,
    stream: StreamId,
}

impl Incoming {
    pub(super) fn new(inbox: &Arc<Inbox>, link: &Arc<Link>, stream: StreamId) -> Self {
        Self { inbox: inbox.clone(), link: link.clone(), stream }
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
        let (wanted, mut got) = (place.len(), 0);
        while got < wanted {
            let chunk = self.next(wanted - got).await;
            let chunk = chunk.map_err(|end| self.error(end, wanted, got))?;
            place[got..got + chunk.len()].copy_from_slice(&chunk);
            got += chunk.len();
        }
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
        let first = self.next(len).await.map_err(|end| self.error(end, len, 0))?;
        if first.len() == len {
            return Ok(first);
        }
        let mut all = BytesMut::with_capacity(len.min(AHEAD));
        all.extend_from_slice(&first);
        while all.len() < len {
            let chunk = self.next(len - all.len()).await;
            let chunk = chunk.map_err(|end| self.error(end, len, all.len()))?;
            all.extend_from_slice(&chunk);
        }
        Ok(all.freeze())
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
        let Some(first) = self.receive_some().await? else { return Ok(Bytes::new()) };
        let (mut len, mut more, mut few) = (first.len(), Vec::new(), BytesMut::new());
        while len <= most
            && let Some(next) = self.receive_some().await?
        {
            len += next.len();
            // A packet of a few bytes takes much more memory than these.
            if next.len() < OVERHEAD {
                few.extend_from_slice(&next);
                continue;
            }
            if !few.is_empty() {
                more.push(few.split().freeze());
            }
            more.push(next);
        }
        if !few.is_empty() {
            more.push(few.freeze());
        }
        if len > most {
            let (peer, stream) = (self.link.peer().to_string(), self.stream.name());
            return Err(ReceiveError::TooLong { peer, stream, most });
        }
        if more.is_empty() {
            return Ok(first);
        }
        let mut all = BytesMut::with_capacity(len);
        std::iter::once(first).chain(more).for_each(|chunk| all.extend_from_slice(&chunk));
        Ok(all.freeze())
    }

    async fn next(&mut self, most: usize) -> Next {
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

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("from", self.link.peer())
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

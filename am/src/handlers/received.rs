//! Requests, as asynchronous handlers that return their answers see them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::credits::RetainedId;
use crate::link::Link;
use crate::peer::Peer;

/// What an [asynchronous handler](crate::Handlers::on_async) is told of its request, beside the
/// arguments. Clones are of the same request.
#[derive(Clone)]
pub struct Received {
    link: Arc<Link>,
    id: Option<RetainedId>,
    payload: Bytes,
    placed: Option<Range<u64>>,
}

impl Received {
    pub(crate) fn new(
        link: Arc<Link>,
        id: Option<RetainedId>,
        payload: Bytes,
        placed: Option<Range<u64>>,
    ) -> Self {
        Self { link, id, payload, placed }
    }

    /// Who sent the request.
    pub fn peer(&self) -> Peer {
        Peer::of(self.link.clone())
    }

    /// The payload that was sent [beside](crate::Peer::call_with) the arguments.
    pub fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// Where in the endpoint's segment a payload was [placed](crate::Peer::place), if one was.
    pub fn placed(&self) -> Option<Range<u64>> {
        self.placed.clone()
    }

    /// Whether somebody still waits for the answer. Nobody does when the sender's
    /// [`patience`](crate::EndpointConfig::patience) is over, when the sender has gone, or when it
    /// has given its call up, which is known here within about a second.
    pub fn is_awaited(&self) -> bool {
        self.id.is_some_and(|id| self.link.awaits(id))
    }
}

impl fmt::Debug for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Received")
            .field("peer", &self.link.peer_text())
            .field("payload", &self.payload.len())
            .field("placed", &self.placed)
            .finish()
    }
}

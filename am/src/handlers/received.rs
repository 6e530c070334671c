//! Requests, as asynchronous handlers that return their answers see them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::credits::RetainedId;
use crate::link::Link;
use crate::peer::Peer;

/// A request, as an [asynchronous handler](crate::Handlers::on_async) gets it beside the arguments.
/// Clones refer to the same request.
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

    /// Returns the peer that sent the request.
    pub fn peer(&self) -> Peer {
        Peer::of(self.link.clone())
    }

    /// Returns the payload that was sent [beside](crate::Peer::call_with) the arguments.
    pub fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// Returns the range of the endpoint's segment in which a payload was
    /// [placed](crate::Peer::place), if one was.
    pub fn placed(&self) -> Option<Range<u64>> {
        self.placed.clone()
    }

    /// Returns whether the sender still waits for the answer. It does not once its
    /// [`patience`](crate::EndpointConfig::patience) is over, once it has gone, or once it has
    /// given its call up, which it tells as soon as it has a credit.
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

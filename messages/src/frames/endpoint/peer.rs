//! The program's handle to another endpoint, and sends that were posted to it.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use bytes::Bytes;
use doorbell_verbs::Name;

use super::handle::{Handle, LaneState, SendSlot};
use crate::frames::error::{SendError, closed};
use crate::matching::Source;

/// A handle to another endpoint, by which messages are sent there. No connection is needed to send:
/// the handle knows the name of the endpoint, and the way there has been found.
#[derive(Clone)]
pub struct Peer(Arc<Known>);

struct Known {
    name: Name,
    source: Source,
    endpoint: Weak<dyn Handle>,
}

impl Peer {
    pub(super) fn new(name: Name, source: Source, endpoint: Weak<dyn Handle>) -> Self {
        Self(Arc::new(Known { name, source, endpoint }))
    }

    /// Returns the name of the peer's endpoint.
    pub fn name(&self) -> &Name {
        &self.0.name
    }

    pub(super) fn source(&self) -> Source {
        self.0.source
    }

    /// Posts a send of a message with match bits. It is done when the peer has confirmed that the
    /// message has come into its receive.
    pub fn send(&self, bits: u64, body: impl Into<Bytes>) -> Sending {
        let (body, name) = (body.into(), &self.0.name);
        let slot = Arc::new(SendSlot::default());
        match self.0.endpoint.upgrade() {
            Some(endpoint) => endpoint.send(name, bits, body, &slot),
            None => {
                let len = body.len();
                slot.fill(Err(closed(name, len)));
            }
        }
        Sending(slot)
    }

    /// Waits until frames can be placed at the peer by RDMA writes. Without waiting, the first
    /// messages go as datagrams, until the connection for writes is made.
    ///
    /// Returns whether frames can be placed: not if the policy offloads nothing, or if the peer
    /// does not take the connection.
    pub async fn ready(&self) -> bool {
        loop {
            let Some(endpoint) = self.0.endpoint.upgrade() else { return false };
            let state = endpoint.lane(&self.0.name);
            drop(endpoint);
            match state {
                LaneState::Made => return true,
                LaneState::Not => return false,
                LaneState::UnderWay(changes) => changes.await,
            }
        }
    }
}

/// Two handles are equal if they are to the same endpoint.
impl PartialEq for Peer {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Peer {}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Peer").field(&self.0.name.to_string()).finish()
    }
}

/// A send that was posted: a future of its outcome. The message is sent whether or not the future
/// is awaited or dropped.
#[must_use = "an outcome that nobody looks at may be an error"]
#[derive(Debug)]
pub struct Sending(Arc<SendSlot>);

impl Sending {
    /// Returns the outcome if it is there, once.
    pub fn test(&mut self) -> Option<Result<(), SendError>> {
        self.0.take()
    }
}

impl Future for Sending {
    type Output = Result<(), SendError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(context)
    }
}

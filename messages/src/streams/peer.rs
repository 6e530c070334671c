//! The program's handle to another endpoint.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use doorbell_am::Name;

use super::error::SendError;
use super::id::StreamId;
use super::link::Link;
use super::message::{Message, send_error};

/// An endpoint elsewhere, by the connection to it. Clones are handles to the same peer.
#[derive(Clone)]
pub struct Peer(Arc<Link>);

impl Peer {
    pub(super) fn new(link: &Arc<Link>) -> Self {
        Self(link.clone())
    }

    /// Returns the name by which this endpoint has connected to the peer, if it has.
    pub fn name(&self) -> Option<Name> {
        self.0.peer().name()
    }

    /// Begins a message of a stream. If as many messages to the peer are open as it takes, this
    /// waits until one of them was handled.
    ///
    /// # Errors
    /// When the peer has gone.
    pub async fn begin(&self, stream: StreamId) -> Result<Message, SendError> {
        match self.0.begin().await {
            Ok(begun) => Ok(Message::new(&self.0, stream, begun)),
            Err(why) => Err(send_error(&self.0, stream, why)),
        }
    }
}

impl PartialEq for Peer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Peer {}

impl Hash for Peer {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        Arc::as_ptr(&self.0).hash(hasher);
    }
}

/// Shows the peer's [name](Peer::name), or its number if only the peer has connected.
impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.peer().fmt(f)
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Peer").field(&format_args!("{self}")).finish()
    }
}

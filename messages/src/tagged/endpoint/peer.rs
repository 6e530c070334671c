//! The program's handle to another endpoint.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

use doorbell_am::Name;

use super::arrived::Sender;
use super::send::Sending;
use super::shared::Shared;
use crate::matching::Source;
use crate::tagged::body::Body;
use crate::tagged::error::{SendError, Unsent, peer_text};

/// A handle to another endpoint, to which this endpoint is connected.
#[derive(Clone)]
pub struct Peer(pub(super) Arc<Sender>);

impl Peer {
    /// Returns the name by which others connect to the peer, if the peer has told it.
    pub fn name(&self) -> Option<Name> {
        self.0.name.as_ref()?.parse().ok()
    }

    /// Returns the number of the peer at its endpoint.
    pub(super) fn source(&self) -> Source {
        self.0.source
    }

    /// Returns the endpoint that knows the peer, unless the program has dropped it.
    fn home(&self) -> Option<Arc<Shared>> {
        let home: Arc<dyn Any + Send + Sync> = self.0.home.upgrade()?;
        home.downcast().ok()
    }

    /// Posts a send of a message with match bits: of one piece of memory, or of [several](Body)
    /// that are gathered. The send is done when the message has left; whether a receive has taken
    /// it is not said. A long message has left when its receiver has pulled it, for which a receive
    /// must have taken it.
    pub fn send(&self, bits: u64, body: impl Into<Body>) -> Sending {
        self.post(bits, body.into(), false)
    }

    /// Posts a send that is done when a receive has taken the message.
    pub fn send_synchronously(&self, bits: u64, body: impl Into<Body>) -> Sending {
        self.post(bits, body.into(), true)
    }

    fn post(&self, bits: u64, body: Body, synchronous: bool) -> Sending {
        match self.home() {
            Some(shared) => {
                let posted = shared.send(&self.0, (bits, body), synchronous);
                Sending::of(&shared, posted)
            }
            None => {
                let (peer, what) = (peer_text(self.0.name.as_deref()), Unsent::Bytes(body.len()));
                Sending::done(Err(SendError::Closed { peer, what }))
            }
        }
    }
}

impl PartialEq for Peer {
    fn eq(&self, other: &Self) -> bool {
        self.0.source == other.0.source && Weak::ptr_eq(&self.0.home, &other.0.home)
    }
}

impl Eq for Peer {}

impl Hash for Peer {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.0.source.hash(hasher);
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Peer").field(&peer_text(self.0.name.as_deref())).finish()
    }
}

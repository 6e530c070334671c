//! The program's handle to another endpoint.

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
pub struct Peer {
    pub(super) source: Source,
    pub(super) name: Option<Arc<str>>,
    pub(super) shared: Weak<Shared>,
}

impl Peer {
    /// Returns the name by which others connect to the peer, if the peer has told it.
    pub fn name(&self) -> Option<Name> {
        self.name.as_ref()?.parse().ok()
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
        match self.shared.upgrade() {
            Some(shared) => {
                let posted =
                    shared.send(self.source, self.name.as_deref(), (bits, body), synchronous);
                Sending::of(&shared, posted)
            }
            None => {
                let (peer, what) = (peer_text(self.name.as_deref()), Unsent::Bytes(body.len()));
                Sending::done(Err(SendError::Closed { peer, what }))
            }
        }
    }
}

impl PartialEq for Peer {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source && self.shared.ptr_eq(&other.shared)
    }
}

impl Eq for Peer {}

impl Hash for Peer {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.source.hash(hasher);
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Peer").field(&peer_text(self.name.as_deref())).finish()
    }
}

impl Peer {
    pub(super) fn of(sender: &Sender, shared: &Arc<Shared>) -> Self {
        let Sender { source, name } = sender;
        Self { source: *source, name: name.clone(), shared: Arc::downgrade(shared) }
    }
}

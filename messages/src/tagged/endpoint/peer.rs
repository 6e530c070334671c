//! The program's handle to another endpoint.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use doorbell_am::Name;

use super::core::Core;
use super::send::Sending;
use super::shared::Shared;
use crate::matching::Source;
use crate::tagged::body::Body;
use crate::tagged::error::{SendError, Unsent};

/// A handle to another endpoint, to which this endpoint is connected.
#[derive(Clone)]
pub struct Peer {
    core: Arc<Core>,
    /// The number of the peer at its endpoint.
    source: Source,
}

impl Peer {
    pub(super) fn new(core: Arc<Core>, source: Source) -> Self {
        Self { core, source }
    }

    /// Returns the name by which others connect to the peer, if the peer has told it. Of peers that
    /// have gone, the last thousand or so have names.
    pub fn name(&self) -> Option<Name> {
        self.core.lock().name_of(self.source)?.parse().ok()
    }

    /// Returns the number of the peer at its endpoint.
    pub(super) fn source(&self) -> Source {
        self.source
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

    #[inline]
    fn post(&self, bits: u64, body: Body, synchronous: bool) -> Sending {
        // Fast path: a short message that neither the window nor credits hold up needs no slot.
        if !synchronous
            && let [body] = body.pieces()
            && self.core.send_short(self.source, bits, body)
        {
            return Sending::done(Ok(()));
        }
        match Shared::of(&self.core) {
            Some(shared) => {
                let len = body.len();
                let posted = shared.send(self.source, (bits, body), synchronous);
                Sending::of(&self.core, len, posted)
            }
            None => {
                let peer = self.core.lock().peer_text(self.source);
                Sending::done(Err(SendError::Closed { peer, what: Unsent::Bytes(body.len()) }))
            }
        }
    }
}

impl PartialEq for Peer {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source && Arc::ptr_eq(&self.core, &other.core)
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
        let name = self.core.lock().peer_text(self.source);
        f.debug_tuple("Peer").field(&name).finish()
    }
}

//! Requests that came back, as their handler sees them.

use std::fmt;
use std::sync::Arc;

use crate::error::Undeliverable;
use crate::link::Link;
use crate::peer::Peer;
use crate::wire::{Header, each_word};

/// A request that came back, for the handler of such.
pub struct Returned<'r> {
    pub(crate) why: Undeliverable,
    pub(crate) link: &'r Arc<Link>,
    pub(crate) what: Option<(Header, &'r [u8])>,
}

impl Returned<'_> {
    /// Why.
    pub fn why(&self) -> Undeliverable {
        self.why
    }

    /// Whom it was for.
    pub fn peer(&self) -> Peer {
        Peer::of(self.link.clone())
    }

    /// The index of the handler that it was for. When the peer has gone, it is not known which of
    /// the requests under way were handled, and so which one this is.
    pub fn handler(&self) -> Option<u16> {
        self.what.map(|(header, _)| header.handler)
    }

    /// Its words, if they came back, too.
    pub fn words(&self) -> impl ExactSizeIterator<Item = u64> {
        let words = self.what.and_then(|(header, data)| data.get(..8 * header.words));
        each_word(words.unwrap_or_default())
    }

    /// Its payload, if that came back, too.
    pub fn payload(&self) -> &[u8] {
        let payload = self.what.and_then(|(header, data)| data.get(8 * header.words..));
        payload.unwrap_or_default()
    }
}

impl fmt::Debug for Returned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Returned")
            .field("peer", &self.link.peer_text())
            .field("handler", &self.handler())
            .field("why", &self.why)
            .finish()
    }
}

impl fmt::Display for Returned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.handler() {
            Some(handler) => write!(f, "a request for handler {handler}")?,
            None => write!(f, "a request")?,
        }
        write!(f, " of {} came back: {}", self.link.peer_text(), self.why)
    }
}

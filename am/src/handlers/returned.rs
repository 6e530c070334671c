//! Requests that came back, as their handler sees them.

use std::fmt;
use std::sync::Arc;

use crate::error::Undeliverable;
use crate::link::Link;
use crate::peer::Peer;
use crate::wire::{Header, each_word};

/// A request that was not delivered, as the handler of [returned](crate::Handlers::returned)
/// requests gets it.
pub struct Returned<'r> {
    pub(crate) why: Undeliverable,
    pub(crate) link: &'r Arc<Link>,
    pub(crate) what: Option<(Header, &'r [u8])>,
}

impl Returned<'_> {
    /// Returns the reason why the request was not delivered.
    pub fn why(&self) -> Undeliverable {
        self.why
    }

    /// Returns the peer that the request was for.
    pub fn peer(&self) -> Peer {
        Peer::of(self.link.clone())
    }

    /// Returns the index of the handler that the request was for. If the peer has gone, the index
    /// is not known, since nobody knows which of the requests under way were handled.
    pub fn handler(&self) -> Option<u16> {
        self.what.map(|(header, _)| header.handler)
    }

    /// Returns the words of the request, if they came back, too.
    pub fn words(&self) -> impl ExactSizeIterator<Item = u64> {
        let words = self.what.and_then(|(header, data)| data.get(..8 * header.words));
        each_word(words.unwrap_or_default())
    }

    /// Returns the payload of the request, if it came back, too.
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

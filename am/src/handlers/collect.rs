//! Handlers that collect requests, and handle those of one look together.

use super::table::HandleRequest;
use super::{Handlers, Request};
use crate::kinds::RequestId;
use crate::wire::Words;

/// A handler that collects requests of one kind, and handles them together: a lock that each would
/// take is taken once. For layers of this workspace that stand on Active Messages.
pub trait Collect: Send + 'static {
    /// Takes in a request. Returns whether it was collected, so that [`finish`](Self::finish) is to
    /// be called.
    fn collect(&mut self, request: &Request<'_>, words: &[u64]) -> bool;

    /// Handles what was collected: before a request of another kind or of another endpoint is
    /// handled, and before the look ends in which the requests have come. Returns whether a task of
    /// this thread was woken.
    fn finish(&mut self) -> bool;
}

/// A handler that collects requests.
struct Collects<C>(C);

impl<C: Collect> HandleRequest for Collects<C> {
    #[inline]
    fn run(&mut self, request: Request<'_>, words: &[u64]) -> bool {
        self.0.collect(&request, words)
    }

    #[inline]
    fn finish(&mut self) -> bool {
        self.0.finish()
    }
}

impl<S> Handlers<S> {
    /// Adds a handler that collects the requests of a kind.
    ///
    /// # Panics
    /// As [`request`](Self::request).
    #[doc(hidden)]
    #[must_use]
    #[track_caller]
    pub fn request_collected(mut self, id: RequestId<Words>, handler: impl Collect) -> Self {
        self.tables.put_request(id.id(), Box::new(Collects(handler)));
        self
    }
}

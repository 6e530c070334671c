//! Handlers whose places the program chooses.

use std::future::Future;

use super::table::with_arguments;
use super::{Handlers, Kept, Replied, Request, Returned};
use crate::arguments::{Arguments, Payload};
use crate::kinds::{ReplyId, RequestId};

impl<S> Handlers<S> {
    /// Adds the handler of a kind of request, which runs to its end whenever such a request is
    /// found, and no other at the same time. The NIC waits for it: what takes long is to be
    /// [asynchronous](Self::request_async), or peers over a network take this one for gone; and
    /// what asks the NIC for anything is, too, or it waits for itself, and panics.
    ///
    /// # Panics
    /// When there is one of that index already.
    #[must_use]
    #[track_caller]
    pub fn request<A: Arguments>(
        mut self,
        id: RequestId<A>,
        handler: impl FnMut(Request<'_>, A) + Send + 'static,
    ) -> Self {
        self.tables.put_request(id.id(), with_arguments(handler));
        self
    }

    /// Adds a handler that goes on as a task, which may wait, and send requests. As many run at a
    /// time as the endpoint [is to have](crate::EndpointConfig::tasks).
    ///
    /// Its request is under way until it has replied, or its future ends: then a caller is told
    /// that nothing was replied, or that the handler panicked. If nobody waits for the answer of a
    /// *call* any more, the future is dropped at its next await: when the caller has dropped the
    /// call or its [deadline](crate::Peer::within) is over, which is known here within about a
    /// second; when the requester's [`patience`](crate::EndpointConfig::patience) is over; when the
    /// requester has gone. What is to be done to its end all the same belongs into a task of its
    /// own. A request that is no call is handled to its end.
    ///
    /// # Panics
    /// As [`request`](Self::request).
    #[must_use]
    #[track_caller]
    pub fn request_async<A, F>(
        mut self,
        id: RequestId<A>,
        mut handler: impl FnMut(Kept, A) -> F + Send + 'static,
    ) -> Self
    where
        A: Arguments,
        F: Future<Output = ()> + Send + 'static,
    {
        let run = with_arguments(move |request: Request<'_>, arguments| {
            request.spawn(|kept| handler(kept, arguments));
        });
        self.tables.put_request(id.id(), run);
        self
    }

    /// Adds the handler of a kind of reply.
    ///
    /// # Panics
    /// As [`request`](Self::request).
    #[must_use]
    #[track_caller]
    pub fn reply<A: Arguments>(
        mut self,
        id: ReplyId<A>,
        mut handler: impl FnMut(Replied<'_>, A) + Send + 'static,
    ) -> Self {
        let run = move |reply: Replied<'_>, words: &[u64]| {
            let found = A::take(words, &mut Payload::new(reply.payload()));
            found.map(|arguments| handler(reply, arguments)).is_some()
        };
        self.tables.replies.put(id.id(), Box::new(run));
        self
    }

    /// Has this run for each request that comes back, instead of a warning being traced.
    #[must_use]
    pub fn returned(mut self, handler: impl FnMut(Returned<'_>) + Send + 'static) -> Self {
        self.tables.returned = Some(Box::new(handler));
        self
    }
}

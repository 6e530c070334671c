//! Handlers whose places the program chooses.

use std::future::Future;

use super::table::with_arguments;
use super::{Handlers, Kept, Replied, Request, Returned};
use crate::arguments::{Arguments, Payload};
use crate::kinds::{ReplyId, RequestId};

impl<S> Handlers<S> {
    /// Adds the handler of a kind of request. The handler runs to its end, and no other handler
    /// runs at the same time. The NIC waits meanwhile: peers over a network would take this process
    /// for gone if the handler took long. A handler that asks the NIC for anything would wait for
    /// itself, and panics. Make such handlers [asynchronous](Self::request_async).
    ///
    /// # Panics
    /// When there is a handler of that index already.
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

    /// Adds an asynchronous handler of a kind of request. The handler runs as a task, and may wait
    /// and send requests, also back. The endpoint's [`tasks`](crate::EndpointConfig::tasks) and
    /// [`task_memory`](crate::EndpointConfig::task_memory) bound how many are under way at a time;
    /// a request beyond that goes back as [`Busy`](crate::Undeliverable::Busy).
    ///
    /// The request is under way until the handler has replied, or its future ends. Then a caller is
    /// told that nothing was replied, or that the handler panicked. The future of a *call* is
    /// dropped at its await if nobody waits for the answer any more: when the caller has dropped the
    /// call or its [deadline](crate::Peer::within) is over, which the caller tells at once; when the
    /// requester's [`patience`](crate::EndpointConfig::patience) is over; when the requester has
    /// gone. Work that must be done to its end all the same belongs into a
    /// task of its own. A request that is no call is handled to its end.
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

    /// Adds the handler of requests that come back. Without it, a warning is traced for each.
    #[must_use]
    pub fn returned(mut self, handler: impl FnMut(Returned<'_>) + Send + 'static) -> Self {
        self.tables.returned = Some(Box::new(handler));
        self
    }
}

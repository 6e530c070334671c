//! Handlers: what messages run, by index and by the type of their arguments.

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;

use crate::message::{Replied, Request, Returned};
use crate::owed::Kept;
use crate::wire::MOST_HANDLERS;
use crate::words::{Arguments, Shape, Words};

/// A kind of request: its place in the table, its name, and what its arguments are. Both sides have
/// the same.
///
/// ```
/// use doorbell_am::{ReplyId, RequestId};
///
/// const ADD: RequestId<(u64, u64)> = RequestId::new(0, "add");
/// const SUM: ReplyId<u64> = ReplyId::new(0, "sum");
/// ```
pub struct RequestId<A = Words>(Id, PhantomData<fn(A) -> A>);

/// A kind of reply, as [`RequestId`].
pub struct ReplyId<A = Words>(Id, PhantomData<fn(A) -> A>);

/// A place in a table, and what is to be there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Id {
    pub index: u16,
    pub name: &'static str,
    pub shape: Shape,
}

macro_rules! ids {
    ($($name:ident)+) => {$(
        impl<A: Arguments> $name<A> {
            /// The one at this index, below 4095, of this name.
            pub const fn new(index: u16, name: &'static str) -> Self {
                assert!((index as usize) < MOST_HANDLERS, "a table has 4095 handlers at the most");
                Self(Id { index, name, shape: A::SHAPE }, PhantomData)
            }
        }

        impl<A> $name<A> {
            /// Its place in the table.
            pub const fn index(self) -> u16 {
                self.0.index
            }

            /// Its name.
            pub const fn name(self) -> &'static str {
                self.0.name
            }
        }

        impl<A> Clone for $name<A> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<A> Copy for $name<A> {}
    )+};
}

ids! { RequestId ReplyId }

/// What runs for a request that came. The words may be none of the handler's arguments.
pub(crate) type OnRequest = Box<dyn FnMut(Request<'_>, &[u64]) + Send>;
/// What runs for a reply. Whether the words were its arguments.
pub(crate) type OnReply = Box<dyn FnMut(Replied<'_>, &[u64]) -> bool + Send>;
pub(crate) type OnReturned = Box<dyn FnMut(Returned<'_>) + Send>;

/// One side's handlers: a table for requests, one for replies, and one for what was not delivered.
///
/// ```
/// # use doorbell_am::{Handlers, ReplyId, RequestId};
/// # const ADD: RequestId<(u64, u64)> = RequestId::new(0, "add");
/// # const SUM: ReplyId<u64> = ReplyId::new(0, "sum");
/// let handlers = Handlers::new()
///     .request(ADD, |request, (a, b)| request.reply(SUM, a + b))
///     .reply(SUM, |_, sum| println!("{sum}"))
///     .returned(|returned| eprintln!("{returned}"));
/// ```
///
/// A request handler may only reply: what sends requests of its own, or waits for anything, is
/// [asynchronous](Self::request_async).
#[derive(Default)]
pub struct Handlers {
    pub(crate) requests: Table<OnRequest>,
    pub(crate) replies: Table<OnReply>,
    pub(crate) returned: Option<OnReturned>,
}

/// Handlers by their indices.
pub(crate) struct Table<H>(Vec<Option<(Id, H)>>);

impl<H> Default for Table<H> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<H> Table<H> {
    #[track_caller]
    fn put(&mut self, id: Id, handler: H) {
        let index = usize::from(id.index);
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || None);
        }
        let place = &mut self.0[index];
        if let Some((there, _)) = place {
            panic!("index {} is `{}`: `{}` needs another", id.index, there.name, id.name);
        }
        *place = Some((id, handler));
    }

    /// The handler of an index, if there is one.
    #[inline]
    pub fn get_mut(&mut self, index: u16) -> Option<&mut H> {
        Some(&mut self.0.get_mut(usize::from(index))?.as_mut()?.1)
    }

    /// All that is declared.
    pub fn ids(&self) -> impl Iterator<Item = Id> {
        self.0.iter().flatten().map(|(id, _)| *id)
    }
}

impl Handlers {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the handler of a kind of request, which runs to its end whenever such a request is found,
    /// and no other at the same time. The NIC waits for it: what takes long is to be
    /// [asynchronous](Self::request_async), or peers over a network take this one for gone; and what asks
    /// the NIC for anything is, too, or it waits for itself, and panics.
    ///
    /// # Panics
    /// When there is one of that index already.
    #[must_use]
    #[track_caller]
    pub fn request<A: Arguments>(
        mut self,
        id: RequestId<A>,
        mut handler: impl FnMut(Request<'_>, A) + Send + 'static,
    ) -> Self {
        let run = move |request: Request<'_>, words: &[u64]| match A::take(words) {
            Some(arguments) => handler(request, arguments),
            None => request.misfits(),
        };
        self.requests.put(id.0, Box::new(run));
        self
    }

    /// Adds a handler that goes on as a task, which may wait, and send requests. As many run at a time
    /// as the endpoint [is to have](crate::EndpointConfig::tasks).
    ///
    /// Its request is under way until it has replied, or its future ends: then a caller is told that
    /// nothing was replied, or that the handler panicked. If nobody waits for the answer of a *call* any
    /// more, the future is dropped at its next await: when the caller has dropped the call or its
    /// [deadline](crate::Peer::within) is over, which is known here within about a second; when the
    /// requester's [`patience`](crate::EndpointConfig::patience) is over; when the requester has gone. What
    /// is to be done to its end all the same belongs into a task of its own. A request that is no call is
    /// handled to its end.
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
        let run = move |request: Request<'_>, words: &[u64]| match A::take(words) {
            Some(arguments) => request.spawn(|kept| handler(kept, arguments)),
            None => request.misfits(),
        };
        self.requests.put(id.0, Box::new(run));
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
            A::take(words).map(|arguments| handler(reply, arguments)).is_some()
        };
        self.replies.put(id.0, Box::new(run));
        self
    }

    /// Has this run for each request that comes back, instead of a warning being traced.
    #[must_use]
    pub fn returned(mut self, handler: impl FnMut(Returned<'_>) + Send + 'static) -> Self {
        self.returned = Some(Box::new(handler));
        self
    }

    /// What tells these tables from others.
    pub(crate) fn digest(&self) -> u64 {
        let all = self.requests.ids().chain(self.replies.ids());
        let mix = |hash: Shape, id: Id| {
            let words = [u64::from(id.index), id.shape.0];
            let hash = words.iter().fold(hash, |hash, word| Shape(hash.0.rotate_left(17) ^ word));
            hash.and(id.name)
        };
        all.fold(Shape::of("handlers"), mix).0
    }
}

/// Runs what may panic. What it gave, if it did not: what it panicked with is dropped, and may panic at
/// that once more.
pub(crate) fn contained<R>(run: impl FnOnce() -> R) -> Option<R> {
    // Handlers that are called again see whatever state a panic left them: their own, and no one
    // else's.
    match std::panic::catch_unwind(AssertUnwindSafe(run)) {
        Ok(gave) => Some(gave),
        Err(panicked) => {
            drop_contained(panicked);
            None
        }
    }
}

#[cold]
fn drop_contained(panicked: Box<dyn Any + Send>) {
    if let Err(again) = std::panic::catch_unwind(AssertUnwindSafe(|| drop(panicked))) {
        // Whoever does that on and on is not followed.
        std::mem::forget(again);
    }
}

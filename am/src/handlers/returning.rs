//! Handlers of named messages, which return their answers.

use std::future::Future;
use std::sync::Arc;

use super::Handlers;
use super::state::WithState;
use super::table::with_arguments;
use crate::handlers::{Received, Request};
use crate::kinds::{Handled, IntoAnswer, Named};

impl Handlers {
    /// Adds the handler of a kind of message: a function of the request and its arguments that
    /// returns the answer, or a `Result`, whose error reaches the caller as
    /// [`CallError::Failed`](crate::CallError::Failed) with its text.
    ///
    /// The handler runs to its end, no other handler runs at the same time, and the NIC waits
    /// meanwhile. A handler that takes longer than some microseconds, waits for anything, or sends
    /// messages must be [asynchronous](Self::on_async).
    ///
    /// ```
    /// use doorbell_am::{Call, Handlers};
    ///
    /// const ADD: Call<(u64, u64), u64> = Call::new("add");
    /// const PARSE: Call<String, i64> = Call::new("parse");
    ///
    /// let handlers = Handlers::new()
    ///     .on(ADD, |_, (a, b)| a + b)
    ///     .on(PARSE, |_, text| text.parse::<i64>());
    /// ```
    ///
    /// # Panics
    /// When there is a handler of that name already.
    #[must_use]
    #[track_caller]
    pub fn on<K, T>(
        mut self,
        kind: K,
        handler: impl FnMut(&Request<'_>, K::Arguments) -> T + Send + 'static,
    ) -> Self
    where
        K: Handled,
        T: IntoAnswer<K::Answer>,
    {
        self.add(kind, handler);
        self
    }

    /// Adds an asynchronous handler of a kind of message. The handler runs as a task of the
    /// runtime, and may wait and send messages, also back. The endpoint's
    /// [`tasks`](crate::EndpointConfig::tasks) and
    /// [`task_memory`](crate::EndpointConfig::task_memory) bound how many are under way at a time;
    /// a request beyond that goes back as [`Busy`](crate::Undeliverable::Busy). No handler waits for
    /// another to end before it begins.
    ///
    /// A call is under way until the future has its output. The future is dropped at its await if
    /// nobody waits for the answer any more: when the caller has dropped the call or its
    /// [deadline](crate::Peer::within) is over, which the caller tells at once; when the caller's
    /// [`patience`](crate::EndpointConfig::patience) is over; when the caller has gone. Work that
    /// must be done to its end all the same belongs into a task of its own. A notice is handled to
    /// its end.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use doorbell_am::{Call, Handlers};
    ///
    /// const LATER: Call<u64, u64> = Call::new("later");
    ///
    /// let handlers = Handlers::new().on_async(LATER, |_, millis| async move {
    ///     tokio::time::sleep(Duration::from_millis(millis)).await;
    ///     millis
    /// });
    /// ```
    ///
    /// # Panics
    /// When there is a handler of that name already.
    #[must_use]
    #[track_caller]
    pub fn on_async<K, F>(
        mut self,
        kind: K,
        handler: impl FnMut(Received, K::Arguments) -> F + Send + 'static,
    ) -> Self
    where
        K: Handled,
        F: Future<Output: IntoAnswer<K::Answer>> + Send + 'static,
    {
        self.add_async(kind, handler);
        self
    }
}

impl<S: Send + Sync + 'static> Handlers<WithState<S>> {
    /// Makes handlers that share a state, which is the first argument of each. Asynchronous
    /// handlers get a clone of the state, others a reference.
    ///
    /// ```
    /// use std::collections::HashMap;
    /// use std::sync::{Arc, Mutex};
    ///
    /// use bytes::Bytes;
    /// use doorbell_am::{Call, Handlers};
    ///
    /// const PUT: Call<(u64, Bytes)> = Call::new("put");
    /// const GET: Call<u64, Option<Bytes>> = Call::new("get");
    ///
    /// type Table = Arc<Mutex<HashMap<u64, Bytes>>>;
    ///
    /// let handlers = Handlers::with(Table::default())
    ///     .on(PUT, |table, _, (key, value)| {
    ///         table.lock().unwrap().insert(key, value);
    ///     })
    ///     .on_async(GET, |table, _, key| async move { table.lock().unwrap().get(&key).cloned() });
    /// ```
    ///
    /// The type of such handlers names the state: `Handlers<WithState<S>>`. All endpoints take it.
    /// Where handlers of several states come together, each is made a plain `Handlers` by `into`:
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// use doorbell_am::{Call, Handlers, WithState};
    ///
    /// const NEXT: Call<(), u64> = Call::new("next");
    ///
    /// fn counting(from: u64) -> Handlers<WithState<Arc<AtomicU64>>> {
    ///     Handlers::with(Arc::new(AtomicU64::new(from)))
    ///         .on(NEXT, |next, _, ()| next.fetch_add(1, Ordering::Relaxed))
    /// }
    ///
    /// let plain: Handlers = counting(7).into();
    /// ```
    pub fn with(state: S) -> Self {
        Self { tables: Default::default(), state: WithState(Arc::new(state)) }
    }

    /// Adds the handler of a kind of message, as [`Handlers::on`] of handlers without a state does.
    ///
    /// # Panics
    /// When there is a handler of that name already.
    #[must_use]
    #[track_caller]
    pub fn on<K, T>(
        mut self,
        kind: K,
        mut handler: impl FnMut(&S, &Request<'_>, K::Arguments) -> T + Send + 'static,
    ) -> Self
    where
        K: Handled,
        T: IntoAnswer<K::Answer>,
    {
        let state = self.state.0.clone();
        self.add(kind, move |request: &Request<'_>, arguments: K::Arguments| {
            handler(&state, request, arguments)
        });
        self
    }

    /// Adds an asynchronous handler of a kind of message, as [`Handlers::on_async`] of handlers
    /// without a state does. The handler gets a clone of the state.
    ///
    /// # Panics
    /// When there is a handler of that name already.
    #[must_use]
    #[track_caller]
    pub fn on_async<K, F>(
        mut self,
        kind: K,
        mut handler: impl FnMut(S, Received, K::Arguments) -> F + Send + 'static,
    ) -> Self
    where
        S: Clone,
        K: Handled,
        F: Future<Output: IntoAnswer<K::Answer>> + Send + 'static,
    {
        let state = self.state.0.clone();
        self.add_async(kind, move |request: Received, arguments: K::Arguments| {
            handler(S::clone(&state), request, arguments)
        });
        self
    }
}

impl<S> Handlers<S> {
    #[track_caller]
    fn add<K, T>(
        &mut self,
        kind: K,
        mut handler: impl FnMut(&Request<'_>, K::Arguments) -> T + Send + 'static,
    ) where
        K: Handled,
        T: IntoAnswer<K::Answer>,
    {
        let run = with_arguments(move |request: Request<'_>, arguments| {
            match handler(&request, arguments).into_answer() {
                Ok(answer) if K::ANSWERS => request.answers(&answer),
                Ok(_) => {}
                Err(why) => request.fails(&why),
            }
        });
        self.tables.put_named(named(kind), K::types(), run);
    }

    #[track_caller]
    fn add_async<K, F>(
        &mut self,
        kind: K,
        mut handler: impl FnMut(Received, K::Arguments) -> F + Send + 'static,
    ) where
        K: Handled,
        F: Future<Output: IntoAnswer<K::Answer>> + Send + 'static,
    {
        let run = with_arguments(move |request: Request<'_>, arguments| {
            request.spawn_received(|mut kept| {
                let answers = handler(kept.received(), arguments);
                async move {
                    match answers.await.into_answer() {
                        Ok(answer) if K::ANSWERS => kept.answers(&answer),
                        Ok(_) => {}
                        Err(why) => kept.fails(&why),
                    }
                }
            });
        });
        self.tables.put_named(named(kind), K::types(), run);
    }
}

fn named<K: Handled>(kind: K) -> Named {
    kind.named().expect("what has a handler that returns has a name")
}

//! Handlers: the functions that messages run, by name or by place.
//!
//! The folder is told which handlers a program has, and turns each into a function of a received
//! message. Its types are what handlers see of a message, and answer with. Only the dispatcher
//! runs handlers.

mod collect;
mod kept;
mod listing;
mod placed;
mod received;
mod replied;
mod request;
mod returned;
mod returning;
mod state;
mod table;

pub use collect::Collect;
pub use kept::Kept;
pub(crate) use listing::Difference;
pub use received::Received;
pub use replied::Replied;
pub(crate) use request::Asked;
pub use request::Request;
pub use returned::Returned;
pub use state::{Stateless, WithState};
pub(crate) use table::Tables;

/// The handlers of an endpoint.
///
/// The handler of a [`Call`](crate::Call) is a function that returns the answer, and the handler of
/// a [`Notice`](crate::Notice) returns nothing. Both are called with the request and its arguments:
///
/// ```
/// use doorbell_am::{Call, Handlers, Notice};
///
/// const DIVIDE: Call<(u64, u64), u64> = Call::new("divide");
/// const LOG: Notice<String> = Notice::new("log");
///
/// let handlers = Handlers::new()
///     .on(DIVIDE, |_, (a, b)| a.checked_div(b).ok_or("there is no quotient by zero"))
///     .on(LOG, |request, line| println!("{:?}: {line}", request.peer()));
/// ```
///
/// Handlers of [`with`](Self::with) share a state, which is their first argument.
///
/// Programs that choose the places of their handlers themselves, as in the paper of Active
/// Messages, add [requests](Self::request) and [replies](Self::reply):
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
/// An ordinary handler runs to its end while the NIC waits. A handler that takes long, waits for
/// anything, or sends requests must be [asynchronous](Self::on_async).
pub struct Handlers<S = Stateless> {
    pub(crate) tables: Tables,
    pub(crate) state: S,
}

impl Default for Handlers {
    fn default() -> Self {
        Self::new()
    }
}

impl Handlers {
    /// Makes an empty set of handlers without a state.
    pub fn new() -> Self {
        Self { tables: Tables::default(), state: Stateless }
    }
}

impl<S> Handlers<S> {
    /// Adds all handlers of another set, which may share another state.
    ///
    /// # Panics
    /// When both have a handler of the same name or index.
    #[must_use]
    #[track_caller]
    pub fn merge<T>(mut self, other: Handlers<T>) -> Self {
        self.tables.merge(other.tables);
        self
    }
}

impl<S> From<Handlers<WithState<S>>> for Handlers {
    /// Makes handlers without a state of handlers with one. Those keep their state; handlers that
    /// are added from here on have none.
    fn from(handlers: Handlers<WithState<S>>) -> Self {
        Self { tables: handlers.tables, state: Stateless }
    }
}

impl<S> std::fmt::Debug for Handlers<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.tables.fmt(f)
    }
}

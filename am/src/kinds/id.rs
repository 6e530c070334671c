//! Kinds of messages by the place of their handler in a table.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use crate::arguments::{Arguments, Shape};
use crate::wire::{MOST_HANDLERS, Words};

/// A kind of request by the place that its handler has in the table, as in the paper of Active
/// Messages. It has a place, a name for errors, and the type of the arguments. Both sides declare
/// the same.
///
/// A [`Call`](crate::Call) or a [`Notice`](crate::Notice) needs no place.
///
/// ```
/// use doorbell_am::{ReplyId, RequestId};
///
/// const ADD: RequestId<(u64, u64)> = RequestId::new(0, "add");
/// const SUM: ReplyId<u64> = ReplyId::new(0, "sum");
/// ```
///
/// A program in the manner of Active Messages II also chooses the places of its peers, by
/// [`Endpoint::map`](crate::Endpoint::map). A reply runs a handler of the requester, or is awaited:
///
/// ```
/// use doorbell_am::{Endpoint, Handlers, ReplyId, RequestId};
/// use tokio::sync::mpsc;
///
/// const SQUARE: RequestId<u64> = RequestId::new(0, "square");
/// const SQUARED: ReplyId<u64> = ReplyId::new(0, "squared");
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anyhow::Result<()> {
/// let squares = Handlers::new().request(SQUARE, |request, n| request.reply(SQUARED, n * n));
/// let server = Endpoint::open("shm", squares).await?;
///
/// let (found, mut squares) = mpsc::unbounded_channel();
/// let collects = Handlers::new().reply(SQUARED, move |_, square| drop(found.send(square)));
/// let client = Endpoint::open("shm", collects).await?;
/// client.map(3, server.name(), None).await?; // the peer is at place 3 of the table
/// client.request(3, SQUARE, 8).await?;
/// assert_eq!(squares.recv().await, Some(64));
/// assert_eq!(client.call(3, SQUARE, 9).await?.arguments(SQUARED)?, 81);
/// # Ok(())
/// # }
/// ```
///
/// Endpoints that map each other compare the handlers in their tables. Two handlers of one place
/// that differ are an error, which names them.
pub struct RequestId<A = Words>(Id, PhantomData<fn(A) -> A>);

/// A kind of reply by the place that its handler has in the table of replies.
pub struct ReplyId<A = Words>(Id, PhantomData<fn(A) -> A>);

/// A place in a table, with the name and the shape of the arguments of its handler.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Id {
    pub index: u16,
    pub name: &'static str,
    pub shape: Shape,
}

macro_rules! ids {
    ($($name:ident)+) => {$(
        impl<A: Arguments> $name<A> {
            /// Makes the kind of this name whose handler is at this index, below 4094.
            pub const fn new(index: u16, name: &'static str) -> Self {
                assert!((index as usize) < MOST_HANDLERS, "a table has 4094 handlers at the most");
                Self(Id { index, name, shape: A::SHAPE }, PhantomData)
            }
        }

        impl<A> $name<A> {
            /// Returns the place in the table.
            pub const fn index(self) -> u16 {
                self.0.index
            }

            /// Returns the place, the name and the shape of the arguments.
            pub(crate) const fn id(self) -> Id {
                self.0
            }

            /// Returns the name, for errors.
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

        impl<A> PartialEq for $name<A> {
            fn eq(&self, other: &Self) -> bool {
                self.0 == other.0
            }
        }

        impl<A> Eq for $name<A> {}

        impl<A> Hash for $name<A> {
            fn hash<H: Hasher>(&self, hasher: &mut H) {
                self.0.hash(hasher);
            }
        }

        impl<A> fmt::Debug for $name<A> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let Id { index, name, .. } = self.0;
                write!(f, "{}({index}, {name:?})", stringify!($name))
            }
        }
    )+};
}

ids! { RequestId ReplyId }

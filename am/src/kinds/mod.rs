//! Kinds of messages, which programs name when they send and handle messages.
//!
//! A [`Call`] or a [`Notice`] is a name and types. A [`RequestId`](crate::RequestId) is a place in
//! the table of handlers, as in the paper of Active Messages. The folder knows how kinds are named,
//! listed and answered, and nothing of links or peers.

mod id;
mod names;
mod reply;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use crate::arguments::{Arguments, Payload, Room, Shape};
use crate::wire::{ANSWER, FAILED};
pub(crate) use id::Id;
pub use id::{ReplyId, RequestId};
pub(crate) use names::{LONGEST_LISTING, Missing, Names, list};
pub use reply::Reply;

/// A kind of message that is answered, with its name and the types of its arguments and its answer.
/// Both sides declare the same.
///
/// ```
/// use doorbell_am::Call;
///
/// const ADD: Call<(u64, u64), u64> = Call::new("add");
/// ```
///
/// A [handler](crate::Handlers::on) returns the answer, and [`Peer::call`](crate::Peer::call)
/// awaits it. The handler's place in the peer's table is found out when endpoints
/// [connect](crate::Endpoint::connect), or by the first call. If the peer has no handler of this
/// name, or one with other types, the call fails, and nothing else does.
pub struct Call<A, R = ()>(Named, PhantomData<fn(A) -> R>);

/// A kind of message that is not answered, with its name and the type of its arguments. Both sides
/// declare the same.
///
/// ```
/// use doorbell_am::Notice;
///
/// const MOVED: Notice<(u64, f64, f64)> = Notice::new("moved");
/// ```
///
/// [`Peer::notify`](crate::Peer::notify) sends it, and does not wait until it is handled.
pub struct Notice<A = ()>(Named, PhantomData<fn(A) -> A>);

/// The name of a kind of message, and a number that stands for the name and the types.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Named {
    pub(crate) name: &'static str,
    pub(crate) key: u64,
}

/// The longest name of a kind of message.
pub(crate) const LONGEST_NAME: usize = 255;

impl Named {
    const fn new(name: &'static str, shape: Shape) -> Self {
        assert!(name.len() <= LONGEST_NAME, "a name has 255 bytes at the most");
        let Shape(key) = shape.and(name);
        Self { name, key }
    }
}

impl<A: Arguments, R: Arguments> Call<A, R> {
    /// Makes the kind of this name, which has up to 255 bytes.
    pub const fn new(name: &'static str) -> Self {
        Self(Named::new(name, Shape::of("call").with(A::SHAPE).with(R::SHAPE)), PhantomData)
    }
}

impl<A: Arguments> Notice<A> {
    /// Makes the kind of this name, which has up to 255 bytes.
    pub const fn new(name: &'static str) -> Self {
        Self(Named::new(name, Shape::of("notice").with(A::SHAPE)), PhantomData)
    }
}

macro_rules! named {
    ($($kind:ident<$($parameter:ident),+>)+) => {$(
        impl<$($parameter),+> $kind<$($parameter),+> {
            /// Returns the name of the kind.
            pub const fn name(self) -> &'static str {
                self.0.name
            }
        }

        impl<$($parameter),+> Clone for $kind<$($parameter),+> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<$($parameter),+> Copy for $kind<$($parameter),+> {}

        impl<$($parameter),+> PartialEq for $kind<$($parameter),+> {
            fn eq(&self, other: &Self) -> bool {
                self.0 == other.0
            }
        }

        impl<$($parameter),+> Eq for $kind<$($parameter),+> {}

        impl<$($parameter),+> Hash for $kind<$($parameter),+> {
            fn hash<H: Hasher>(&self, hasher: &mut H) {
                self.0.hash(hasher);
            }
        }

        impl<$($parameter),+> fmt::Debug for $kind<$($parameter),+> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($kind)).field(&self.0.name).finish()
            }
        }
    )+};
}

named! { Call<A, R> Notice<A> }

/// A kind of message: [`Call`], [`Notice`], or [`RequestId`].
pub trait Kind: sealed::Kind {
    /// The type of the arguments.
    type Arguments: Arguments;
}

/// A kind of message that can be called: a [`Call`], whose answer is what the handler returns, or a
/// [`RequestId`], whose answer is a [`Reply`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be called",
    note = "a `Notice` is not answered: send it with `notify`, or declare a `Call`"
)]
pub trait Callable: Kind {
    /// The type of a call's result.
    type Answer;

    /// Decodes the answer in a reply.
    #[doc(hidden)]
    fn answer(self, reply: Reply) -> Result<Self::Answer, Failure>;
}

/// A kind of message that can be sent without waiting for an answer: a [`Notice`], or a
/// [`RequestId`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be sent without awaiting its answer",
    note = "a `Call` is answered: call it, or declare a `Notice`"
)]
pub trait OneWay: Kind {}

/// A kind of message that has a handler which [returns](crate::Handlers::on): a [`Call`], whose
/// handler returns the answer, or a [`Notice`], whose handler returns nothing.
pub trait Handled: Kind {
    /// The type that the handler returns.
    type Answer: Arguments;
    /// Whether the returned value is sent back.
    #[doc(hidden)]
    const ANSWERS: bool;
}

pub(crate) mod sealed {
    use super::Named;

    /// The name of a kind of message, and where its handler is.
    pub trait Kind: Copy {
        /// Returns the name, for errors.
        fn name(self) -> &'static str;

        /// Returns the place of the handler, if the program has chosen one.
        fn index(self) -> Option<u16>;

        /// Returns the name that the peer is asked for, unless the program has chosen a place.
        fn named(self) -> Option<Named>;

        /// Describes the types, for errors.
        fn types() -> String;
    }

    /// The reason why a reply is no answer.
    #[derive(Debug)]
    pub enum Failure {
        /// The handler has returned an error with this text.
        Handler(Box<str>),
        /// The reply is no value of the type that was declared.
        Other,
    }
}

pub(crate) use sealed::Failure;

impl<A: Arguments> Kind for RequestId<A> {
    type Arguments = A;
}

impl<A: Arguments, R: Arguments> Kind for Call<A, R> {
    type Arguments = A;
}

impl<A: Arguments> Kind for Notice<A> {
    type Arguments = A;
}

impl<A: Arguments> sealed::Kind for RequestId<A> {
    fn name(self) -> &'static str {
        RequestId::name(self)
    }

    #[inline]
    fn index(self) -> Option<u16> {
        Some(RequestId::index(self))
    }

    #[inline]
    fn named(self) -> Option<Named> {
        None
    }

    fn types() -> String {
        A::type_name().into_owned()
    }
}

/// Implements `sealed::Kind` for kinds of messages that peers find by name.
macro_rules! found_by_name {
    ($($kind:ident<$($parameter:ident),+>: $types:expr;)+) => {$(
        impl<$($parameter: Arguments),+> sealed::Kind for $kind<$($parameter),+> {
            fn name(self) -> &'static str {
                self.0.name
            }

            #[inline]
            fn index(self) -> Option<u16> {
                None
            }

            #[inline]
            fn named(self) -> Option<Named> {
                Some(self.0)
            }

            fn types() -> String {
                $types
            }
        }
    )+};
}

found_by_name! {
    Call<A, R>: format!("a call of {} that answers {}", in_parentheses::<A>(), R::type_name());
    Notice<A>: format!("a notice of {}", in_parentheses::<A>());
}

/// Returns the name of a type, in parentheses unless it has some.
fn in_parentheses<A: Arguments>() -> String {
    let name = A::type_name();
    if name.starts_with('(') { name.into_owned() } else { format!("({name})") }
}

impl<A: Arguments> Callable for RequestId<A> {
    type Answer = Reply;

    #[inline]
    fn answer(self, reply: Reply) -> Result<Reply, Failure> {
        Ok(reply)
    }
}

impl<A: Arguments, R: Arguments> Callable for Call<A, R> {
    type Answer = R;

    #[inline]
    fn answer(self, mut reply: Reply) -> Result<R, Failure> {
        if reply.handler() != ANSWER {
            return Err(failure(&reply));
        }
        let mut room = Room::new();
        let words = room.read(reply.word_bytes());
        R::take(words, &mut Payload::of(&mut reply)).ok_or(Failure::Other)
    }
}

#[cold]
fn failure(reply: &Reply) -> Failure {
    match reply.handler() {
        FAILED => Failure::Handler(String::from_utf8_lossy(reply.payload()).into()),
        _ => Failure::Other,
    }
}

impl<A: Arguments> OneWay for RequestId<A> {}
impl<A: Arguments> OneWay for Notice<A> {}

impl<A: Arguments, R: Arguments> Handled for Call<A, R> {
    type Answer = R;
    const ANSWERS: bool = true;
}

impl<A: Arguments> Handled for Notice<A> {
    type Answer = ();
    const ANSWERS: bool = false;
}

/// A value that a handler returns: the answer, or a `Result` whose error reaches the caller with
/// its text and the texts of its sources.
#[diagnostic::on_unimplemented(
    message = "a handler of this kind of message returns `{R}` or `Result<{R}, E>`, and not `{Self}`",
    note = "a handler that is `async` is added with `on_async`, and one that only panics needs a return \
            type: `|_, ()| -> u64 {{ … }}`",
    note = "the error `E` is one that turns into `Box<dyn std::error::Error + Send + Sync>`, such as \
            `std::io::Error`, `anyhow::Error`, `String` and `&str`"
)]
pub trait IntoAnswer<R> {
    /// Returns the answer, or the text of the error.
    fn into_answer(self) -> Result<R, String>;
}

impl<R> IntoAnswer<R> for R {
    #[inline]
    fn into_answer(self) -> Result<R, String> {
        Ok(self)
    }
}

impl<R, E: Into<BoxError>> IntoAnswer<R> for Result<R, E> {
    #[inline]
    fn into_answer(self) -> Result<R, String> {
        self.map_err(|error| text(error.into()))
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Returns the text of an error with the texts of its sources.
#[cold]
fn text(error: BoxError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text += &format!(": {source}");
        next = source.source();
    }
    text
}

//! Requests and responses, their bodies, and the context of a call that a server handles.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use tokio::time::Instant;

use crate::context::deadline_after;
use crate::metadata::Metadata;
use crate::method::MethodId;
use crate::status::Status;

/// The body of a request or a response: bytes, or a stream of pieces that are bytes.
///
/// Middleware handles requests with bodies of this kind; handlers and clients see the types that a
/// [codec](crate::Codec) makes of them.
pub enum Body {
    /// A body that is there as a whole.
    Whole(Bytes),
    /// A body that comes piece by piece; each piece is one message of a stream.
    Stream(Pieces),
}

/// The pieces of a body that is a stream. After an error there are no more.
pub type Pieces = Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>;

impl Body {
    /// The body of a call that carries nothing.
    #[must_use]
    pub const fn empty() -> Self {
        Self::Whole(Bytes::new())
    }

    /// A body of pieces.
    pub fn stream(pieces: impl Stream<Item = Result<Bytes, Status>> + Send + 'static) -> Self {
        Self::Stream(Box::pin(pieces))
    }

    /// The bytes of a body that is whole.
    ///
    /// # Errors
    /// When it is a stream.
    pub fn whole(self) -> Result<Bytes, Status> {
        match self {
            Self::Whole(bytes) => Ok(bytes),
            Self::Stream(_) => Err(Status::internal("one message was expected, and a stream came")),
        }
    }

    /// The pieces of the body: a whole one is its only piece.
    #[must_use]
    pub fn pieces(self) -> Pieces {
        match self {
            Self::Stream(pieces) => pieces,
            Self::Whole(bytes) => Box::pin(futures_util::stream::once(async { Ok(bytes) })),
        }
    }

    /// Another body of the same bytes; `None` of a stream, whose pieces go by once.
    #[must_use]
    pub fn try_clone(&self) -> Option<Self> {
        match self {
            Self::Whole(bytes) => Some(Self::Whole(bytes.clone())),
            Self::Stream(_) => None,
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Whole(bytes)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Stream(_) => f.write_str("a stream"),
        }
    }
}

/// A request: what is called, the body, metadata, and until when the caller waits.
#[derive(Debug)]
pub struct Request<T> {
    method: MethodId,
    metadata: Metadata,
    deadline: Option<Instant>,
    body: T,
}

impl<T> Request<T> {
    /// A request with a body, whose method its client fills in.
    pub fn new(body: T) -> Self {
        Self::to(MethodId::NONE, body)
    }

    /// A request to a method.
    pub fn to(method: MethodId, body: T) -> Self {
        Self { method, metadata: Metadata::new(), deadline: None, body }
    }

    /// The method that is called.
    pub fn method(&self) -> MethodId {
        self.method
    }

    pub(crate) fn set_method(&mut self, method: MethodId) {
        self.method = method;
    }

    /// The metadata.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The metadata, to add to.
    pub fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }

    /// When the caller stops waiting, if ever.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Bounds how long the caller waits, from now on. The server is told, and stops a handler that
    /// takes longer; so do calls that the handler makes.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.deadline = Some(deadline_after(timeout));
    }

    /// Sets when the caller stops waiting.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// The body.
    pub fn get_ref(&self) -> &T {
        &self.body
    }

    /// The body, to change.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.body
    }

    /// The body alone.
    pub fn into_inner(self) -> T {
        self.body
    }

    /// The request with what a function makes of its body.
    pub fn map<U>(self, function: impl FnOnce(T) -> U) -> Request<U> {
        let Self { method, metadata, deadline, body } = self;
        Request { method, metadata, deadline, body: function(body) }
    }

    /// The request with what a function makes of its body, if it can.
    pub(crate) fn try_map<U, E>(
        self,
        function: impl FnOnce(T) -> Result<U, E>,
    ) -> Result<Request<U>, E> {
        let Self { method, metadata, deadline, body } = self;
        Ok(Request { method, metadata, deadline, body: function(body)? })
    }

    pub(crate) fn with_parts(
        method: MethodId,
        metadata: Metadata,
        deadline: Option<Instant>,
        body: T,
    ) -> Self {
        Self { method, metadata, deadline, body }
    }
}

impl Request<Body> {
    /// Another request with the same body, for whoever may have to send it again; `None` if the
    /// body is a stream.
    #[must_use]
    pub fn try_clone(&self) -> Option<Self> {
        let Self { method, metadata, deadline, body } = self;
        let (metadata, body) = (metadata.clone(), body.try_clone()?);
        Some(Self { method: *method, metadata, deadline: *deadline, body })
    }
}

impl<T> From<T> for Request<T> {
    fn from(body: T) -> Self {
        Self::new(body)
    }
}

/// What a client can call a method with that takes a stream: a stream of messages, or a [`Request`]
/// with one, whose metadata and deadline go with it.
///
/// ```
/// use doorbell::rpc::{IntoStreamingRequest, Request};
/// use futures_util::stream;
///
/// fn takes(_: impl IntoStreamingRequest<Message = u64>) {}
///
/// takes(stream::iter([1, 2, 3]));
/// let mut request = Request::new(stream::iter([1, 2, 3]));
/// request.metadata_mut().insert("user", "ann");
/// takes(request);
/// ```
pub trait IntoStreamingRequest {
    /// The messages of the stream.
    type Message;
    /// The stream.
    type Messages: Stream<Item = Self::Message> + Send + 'static;

    /// The request with the stream as its body.
    fn into_streaming_request(self) -> Request<Self::Messages>;
}

impl<M: Stream + Send + 'static> IntoStreamingRequest for M {
    type Message = M::Item;
    type Messages = M;

    fn into_streaming_request(self) -> Request<M> {
        Request::new(self)
    }
}

impl<M: Stream + Send + 'static> IntoStreamingRequest for Request<M> {
    type Message = M::Item;
    type Messages = M;

    fn into_streaming_request(self) -> Self {
        self
    }
}

/// A response: the body and metadata.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Response<T> {
    metadata: Metadata,
    body: T,
}

impl<T> Response<T> {
    /// A response with a body.
    pub fn new(body: T) -> Self {
        Self { metadata: Metadata::new(), body }
    }

    pub(crate) fn with_metadata(metadata: Metadata, body: T) -> Self {
        Self { metadata, body }
    }

    /// The metadata.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The metadata, to add to.
    pub fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }

    /// The body.
    pub fn get_ref(&self) -> &T {
        &self.body
    }

    /// The body, to change, or to read if it is a stream.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.body
    }

    /// The body alone.
    pub fn into_inner(self) -> T {
        self.body
    }

    /// The metadata and the body.
    pub fn into_parts(self) -> (Metadata, T) {
        (self.metadata, self.body)
    }

    /// The response with what a function makes of its body.
    pub fn map<U>(self, function: impl FnOnce(T) -> U) -> Response<U> {
        Response { metadata: self.metadata, body: function(self.body) }
    }

    pub(crate) fn try_map<U, E>(
        self,
        function: impl FnOnce(T) -> Result<U, E>,
    ) -> Result<Response<U>, E> {
        Ok(Response { metadata: self.metadata, body: function(self.body)? })
    }
}

impl<T> From<T> for Response<T> {
    fn from(body: T) -> Self {
        Self::new(body)
    }
}

/// The messages of a stream, as a handler receives them from its client or a client from its
/// server.
///
/// A handler returns one that it makes of any stream by [`Streaming::new`]. After an error there is
/// nothing more.
pub struct Streaming<T> {
    messages: Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>,
    /// Whether there was an error, behind which nothing comes.
    over: bool,
}

impl<T> Streaming<T> {
    /// A stream of messages and errors. The first error ends it, and is what the other side gets.
    pub fn new(messages: impl Stream<Item = Result<T, Status>> + Send + 'static) -> Self {
        Self { messages: Box::pin(messages), over: false }
    }

    /// The next message; `None` at the end.
    ///
    /// # Errors
    /// What the other side has ended the stream with, or what has become of the connection.
    pub async fn message(&mut self) -> Result<Option<T>, Status> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await.transpose()
    }
}

impl<T> Stream for Streaming<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.over {
            return Poll::Ready(None);
        }
        let next = self.messages.as_mut().poll_next(context);
        self.over = matches!(next, Poll::Ready(Some(Err(_))));
        next
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        if self.over { (0, Some(0)) } else { self.messages.size_hint() }
    }
}

impl<T> fmt::Debug for Streaming<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streaming").finish_non_exhaustive()
    }
}

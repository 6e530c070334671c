//! Requests, responses and their bodies, as programs and middleware handle them.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use tokio::time::Instant;

use crate::caller::Caller;
use crate::deadlines::deadline_after;
use crate::extensions::Extensions;
use crate::metadata::Metadata;
use crate::method::MethodId;
use crate::status::Status;

/// The body of a request or a response: bytes, or a stream of pieces that are bytes each.
///
/// Middleware handles requests and responses with such bodies. Handlers and clients see the types
/// into which a [codec](crate::Codec) decodes them.
pub enum Body {
    /// A body that is complete.
    Whole(Bytes),
    /// A body that arrives piece by piece. Each piece is one message of a stream.
    Stream(Pieces),
}

/// The pieces of a body that is a stream. Nothing follows an error.
pub type Pieces = Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>;

impl Body {
    /// An empty body, for calls without arguments or results.
    #[must_use]
    pub const fn empty() -> Self {
        Self::Whole(Bytes::new())
    }

    /// Makes a body of a stream of pieces.
    pub fn stream(pieces: impl Stream<Item = Result<Bytes, Status>> + Send + 'static) -> Self {
        Self::Stream(Box::pin(pieces))
    }

    /// The bytes of a complete body.
    ///
    /// # Errors
    /// When the body is a stream.
    pub fn whole(self) -> Result<Bytes, Status> {
        match self {
            Self::Whole(bytes) => Ok(bytes),
            Self::Stream(_) => Err(Status::internal("one message was expected, and a stream came")),
        }
    }

    /// The pieces of the body. A complete body is its only piece.
    #[must_use]
    pub fn pieces(self) -> Pieces {
        match self {
            Self::Stream(pieces) => pieces,
            Self::Whole(bytes) => Box::pin(futures_util::stream::once(async { Ok(bytes) })),
        }
    }

    /// Returns a second body with the same bytes; `None` for a stream, whose pieces can be read
    /// only once.
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

/// A request of a client, with the method that is called, the body, metadata, and the caller's
/// deadline.
#[derive(Debug)]
pub struct Request<T> {
    method: MethodId,
    metadata: Metadata,
    deadline: Option<Instant>,
    caller: Option<Caller>,
    extensions: Extensions,
    waits: Option<bool>,
    body: T,
}

/// The call that a request belongs to: what was called, by whom, and until when.
pub(crate) struct Origin {
    method: MethodId,
    deadline: Option<Instant>,
    caller: Option<Caller>,
}

impl Origin {
    pub fn method(&self) -> MethodId {
        self.method
    }
}

impl<T> Request<T> {
    /// Makes a request with a body. The client that sends it fills in the method.
    pub fn new(body: T) -> Self {
        Self::to(MethodId::NONE, body)
    }

    /// Makes a request to a method.
    pub fn to(method: MethodId, body: T) -> Self {
        Self::with_parts(method, Metadata::new(), None, body)
    }

    /// The method that is called.
    pub fn method(&self) -> MethodId {
        self.method
    }

    pub(crate) fn set_method(&mut self, method: MethodId) {
        self.method = method;
    }

    /// The metadata of the request.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The metadata of the request, to be changed.
    pub fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }

    /// Who has sent the request; `None` if no server has received it, as at a client, or in a
    /// [`Router`](crate::Router) that is called as a service of its own process.
    pub fn caller(&self) -> Option<&Caller> {
        self.caller.as_ref()
    }

    pub(crate) fn set_caller(&mut self, caller: Caller) {
        self.caller = Some(caller);
    }

    /// The values that layers and interceptors have attached to the request.
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// The values that layers and interceptors have attached to the request, to be changed.
    pub fn extensions_mut(&mut self) -> &mut Extensions {
        &mut self.extensions
    }

    /// The time at which the caller stops waiting; `None` if it waits for ever.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Bounds how long the caller waits, beginning now. The server learns the bound, and stops a
    /// handler that takes longer. Calls that the handler makes inherit it.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.deadline = Some(deadline_after(timeout));
    }

    /// Sets the time at which the caller stops waiting.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Whether the call waits for a server that is gone, if the request says so.
    pub fn waits_for_ready(&self) -> Option<bool> {
        self.waits
    }

    /// Has the call wait for a server that is gone until there is a connection or the deadline has
    /// passed, or fail at once. Unless set, the channel's
    /// [`wait_for_ready`](crate::ChannelBuilder::wait_for_ready) decides.
    pub fn set_wait_for_ready(&mut self, waits: bool) {
        self.waits = Some(waits);
    }

    /// The body of the request.
    pub fn get_ref(&self) -> &T {
        &self.body
    }

    /// The body of the request, to be changed.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.body
    }

    /// Takes the body out of the request.
    pub fn into_inner(self) -> T {
        self.body
    }

    /// Replaces the body by what a function makes of it.
    pub fn map<U>(self, function: impl FnOnce(T) -> U) -> Request<U> {
        let (head, body) = self.split();
        head.with(function(body))
    }

    /// Replaces the body by what a function makes of it, unless the function fails.
    pub(crate) fn try_map<U, E>(
        self,
        function: impl FnOnce(T) -> Result<U, E>,
    ) -> Result<Request<U>, E> {
        let (head, body) = self.split();
        Ok(head.with(function(body)?))
    }

    /// Takes the body out of the request, and leaves all the rest.
    /// What a request keeps of its call, whatever an interceptor makes of it.
    pub(crate) fn origin(&self) -> Origin {
        let (method, deadline, caller) = (self.method, self.deadline, self.caller.clone());
        Origin { method, deadline, caller }
    }

    /// Has the request be that of a call.
    pub(crate) fn of_origin(self, call: &Origin) -> Self {
        let Origin { method, deadline, ref caller } = *call;
        Self { method, deadline, caller: caller.clone(), ..self }
    }

    pub(crate) fn split(self) -> (Request<()>, T) {
        let Self { method, metadata, deadline, caller, extensions, waits, body } = self;
        (Request { method, metadata, deadline, caller, extensions, waits, body: () }, body)
    }

    pub(crate) fn with_parts(
        method: MethodId,
        metadata: Metadata,
        deadline: Option<Instant>,
        body: T,
    ) -> Self {
        let (caller, extensions, waits) = (None, Extensions::new(), None);
        Self { method, metadata, deadline, caller, extensions, waits, body }
    }
}

impl Request<()> {
    /// Puts a body into a request without one.
    fn with<T>(self, body: T) -> Request<T> {
        let Self { method, metadata, deadline, caller, extensions, waits, body: () } = self;
        Request { method, metadata, deadline, caller, extensions, waits, body }
    }
}

impl Request<Body> {
    /// Returns a second request with the same body, for callers that may have to send it again;
    /// `None` if the body is a stream.
    #[must_use]
    pub fn try_clone(&self) -> Option<Self> {
        let Self { method, metadata, deadline, caller, extensions, waits, body } = self;
        Some(Self {
            method: *method,
            metadata: metadata.clone(),
            deadline: *deadline,
            caller: caller.clone(),
            extensions: extensions.clone(),
            waits: *waits,
            body: body.try_clone()?,
        })
    }
}

impl<T> From<T> for Request<T> {
    fn from(body: T) -> Self {
        Self::new(body)
    }
}

/// Something that a client can pass to a method that takes a stream: a stream of messages, or a
/// [`Request`] whose body is one and whose metadata and deadline are sent along.
///
/// ```
/// use doorbell_rpc::{IntoStreamingRequest, Request};
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
    /// The type of the stream's messages.
    type Message;
    /// The type of the stream.
    type Messages: Stream<Item = Self::Message> + Send + 'static;

    /// Makes a request whose body is the stream.
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

/// A response of a server, with the body and metadata.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Response<T> {
    metadata: Metadata,
    body: T,
}

impl<T> Response<T> {
    /// Makes a response with a body.
    pub fn new(body: T) -> Self {
        Self { metadata: Metadata::new(), body }
    }

    pub(crate) fn with_metadata(metadata: Metadata, body: T) -> Self {
        Self { metadata, body }
    }

    /// The metadata of the response.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The metadata of the response, to be changed.
    pub fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }

    /// The body of the response.
    pub fn get_ref(&self) -> &T {
        &self.body
    }

    /// The body of the response, to be changed, or to be read if it is a stream.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.body
    }

    /// Takes the body out of the response.
    pub fn into_inner(self) -> T {
        self.body
    }

    /// Takes the metadata and the body out of the response.
    pub fn into_parts(self) -> (Metadata, T) {
        (self.metadata, self.body)
    }

    /// Replaces the body by what a function makes of it.
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
/// A handler that answers with a stream makes it from any stream by [`Streaming::new`]. Nothing
/// follows an error.
pub struct Streaming<T> {
    messages: Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>,
    /// Whether an error has ended the stream, after which nothing follows.
    over: bool,
}

impl<T> Streaming<T> {
    /// Makes a stream of messages. The first error ends the stream, and is sent to the other side.
    pub fn new(messages: impl Stream<Item = Result<T, Status>> + Send + 'static) -> Self {
        Self { messages: Box::pin(messages), over: false }
    }

    /// Waits for the next message; `None` at the end of the stream.
    ///
    /// # Errors
    /// The error with which the other side has ended the stream, or the loss of the connection.
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

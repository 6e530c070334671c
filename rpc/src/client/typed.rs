//! Typed calls over any tower service, for generated clients and for calls written by hand.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use futures_util::StreamExt;
use sync_wrapper::SyncWrapper;
use tower_service::Service;

use super::channel::{Channel, Sending};
use crate::alarm::{Late, until};
use crate::codec::{Codec, encoded};
use crate::context::deadline;
use crate::deadlines::earlier;
use crate::message::{Body, IntoStreamingRequest, Request, Response, Streaming};
use crate::method::{Method, MethodId};
use crate::status::Status;

/// A client that calls methods with types. It wraps any tower service that takes requests with
/// bodies, such as a [`Channel`](crate::Channel), with or without middleware around it.
///
/// ```
/// use doorbell_rpc::{Channel, Client, Method, Status};
///
/// const ADD: Method<(u64, u64), u64> = Method::new("calculator/add");
///
/// async fn add(channel: Channel) -> Result<u64, Status> {
///     let client = Client::new(channel);
///     let response = client.unary(ADD, (2, 3)).await?;
///     Ok(response.into_inner())
/// }
/// ```
#[derive(Clone)]
pub struct Client<S>(S);

impl<S> Client<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// A client that sends its calls through a service.
    pub fn new(service: S) -> Self {
        Self(service)
    }

    /// Calls a method that takes one message and answers with one.
    ///
    /// # Errors
    /// The status with which the call failed.
    pub fn unary<A, R, C, I>(&self, method: Method<A, R, C>, request: I) -> Calling<Response<R>>
    where
        R: 'static,
        C: Codec<A> + Codec<R>,
        I: Into<Request<A>>,
    {
        let (method, request) = (method.id(), whole::<A, C>(request.into()));
        self.call(method, request, answered::<R, C>)
    }

    /// Calls a method that takes one message and answers with a stream.
    ///
    /// # Errors
    /// The status of the call, if it fails before the stream begins.
    pub fn server_streaming<A, R, C, I>(
        &self,
        method: Method<A, R, C>,
        request: I,
    ) -> Calling<Response<Streaming<R>>>
    where
        R: Send + 'static,
        C: Codec<A> + Codec<R>,
        I: Into<Request<A>>,
    {
        let (method, request) = (method.id(), whole::<A, C>(request.into()));
        self.call(method, request, answered_by_stream::<R, C>)
    }

    /// Calls a method that takes a stream and answers with one message.
    ///
    /// # Errors
    /// The status with which the call failed.
    pub fn client_streaming<A, R, C, I>(
        &self,
        method: Method<A, R, C>,
        request: I,
    ) -> Calling<Response<R>>
    where
        A: 'static,
        R: 'static,
        C: Codec<A> + Codec<R>,
        I: IntoStreamingRequest<Message = A>,
    {
        let request = request.into_streaming_request().map(pieces::<A, C>);
        let method = method.id();
        self.call(method, Ok(request), answered::<R, C>)
    }

    /// Calls a method that takes a stream and answers with a stream. The answer may begin before
    /// the request has ended.
    ///
    /// # Errors
    /// The status of the call, if it fails before the stream begins.
    pub fn streaming<A, R, C, I>(
        &self,
        method: Method<A, R, C>,
        request: I,
    ) -> Calling<Response<Streaming<R>>>
    where
        A: 'static,
        R: Send + 'static,
        C: Codec<A> + Codec<R>,
        I: IntoStreamingRequest<Message = A>,
    {
        let request = request.into_streaming_request().map(pieces::<A, C>);
        let method = method.id();
        self.call(method, Ok(request), answered_by_stream::<R, C>)
    }

    /// Calls a method. `finish` makes the result of the response.
    fn call<T: 'static>(
        &self,
        method: MethodId,
        request: Result<Request<Body>, Status>,
        finish: Finish<T>,
    ) -> Calling<T> {
        let mut request = match request {
            Ok(request) => request,
            Err(why) => return Calling::of(async { Err(why) }),
        };
        request.set_method(method);
        // A channel is always ready, and keeps the deadlines of its calls itself.
        if let Some(channel) = (&self.0 as &dyn Any).downcast_ref::<Channel>() {
            let sending = Sending::new(channel.clone(), request);
            return Calling(SyncWrapper::new(Called::OfChannel { sending, method, finish }));
        }
        let service = self.0.clone();
        Calling::of(async move { finish(method, answer(service, request).await?) })
    }
}

/// Makes the result of a call from the response.
type Finish<T> = fn(MethodId, Response<Body>) -> Result<T, Status>;

/// The future of a call that a [`Client`] makes. Dropping it gives the call up.
///
/// It has one type for all services, and is sent to other threads whatever layers a service has.
#[must_use = "a call is made when its future is polled"]
pub struct Calling<T>(SyncWrapper<Called<T>>);

#[expect(clippy::large_enum_variant, reason = "a box for each call is what this saves")]
enum Called<T> {
    /// A call by a channel, which needs no box.
    OfChannel {
        sending: Sending,
        method: MethodId,
        finish: Finish<T>,
    },
    Boxed(Pin<Box<dyn Future<Output = Result<T, Status>> + Send>>),
}

impl<T> Calling<T> {
    fn of(call: impl Future<Output = Result<T, Status>> + Send + 'static) -> Self {
        Self(SyncWrapper::new(Called::Boxed(Box::pin(call))))
    }
}

impl<T: 'static> Calling<Response<T>> {
    /// The future of the response's body alone.
    pub fn into_inner(self) -> Calling<T> {
        Calling::of(async { self.await.map(Response::into_inner) })
    }
}

impl<T> Future for Calling<T> {
    type Output = Result<T, Status>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.0.get_mut() {
            Called::OfChannel { sending, method, finish } => {
                let response = ready!(Pin::new(sending).poll(context));
                Poll::Ready(response.and_then(|response| finish(*method, response)))
            }
            Called::Boxed(call) => call.as_mut().poll(context),
        }
    }
}

impl<T> fmt::Debug for Calling<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calling").finish_non_exhaustive()
    }
}

/// Sends a request through a service once that is ready, and waits for the response. A layer that
/// waits without a bound, such as a balance without a server, does not keep the call beyond its
/// deadline.
async fn answer<S>(mut service: S, request: Request<Body>) -> Result<Response<Body>, Status>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let method = request.method();
    let deadline = earlier(request.deadline(), deadline());
    let ready = std::future::poll_fn(|context| service.poll_ready(context));
    let late = |Late| {
        Status::deadline_exceeded(format!(
            "{method} waited for a server that is ready until the call's time was over"
        ))
    };
    let ready = until(deadline, ready).await.map_err(|why| late(why).not_run())?;
    ready.map_err(|why| Status::from_error(why.into()))?;
    let answer = until(deadline, service.call(request)).await.map_err(late)?;
    answer.map_err(|why| Status::from_error(why.into()))
}

/// The request whose body is one message, encoded.
fn whole<A, C: Codec<A>>(request: Request<A>) -> Result<Request<Body>, Status> {
    request.try_map(|message| encoded::<A, C>(message).map(Body::Whole))
}

fn decode<R, C: Codec<R>>(method: MethodId, bytes: Bytes) -> Result<R, Status> {
    C::decode(bytes)
        .map_err(|why| Status::internal(format!("the answer of {method} can't be decoded: {why}")))
}

/// The response of a method that answers with one message.
fn answered<R, C: Codec<R>>(
    method: MethodId,
    response: Response<Body>,
) -> Result<Response<R>, Status> {
    response.try_map(|body| decode::<R, C>(method, body.whole()?))
}

/// The response of a method that answers with a stream.
fn answered_by_stream<R: Send + 'static, C: Codec<R>>(
    method: MethodId,
    response: Response<Body>,
) -> Result<Response<Streaming<R>>, Status> {
    Ok(response.map(|body| decoded::<R, C>(method, body)))
}

/// The messages of a body that is a stream, each decoded.
fn decoded<R: Send + 'static, C: Codec<R>>(method: MethodId, body: Body) -> Streaming<R> {
    Streaming::new(body.pieces().map(move |piece| decode::<R, C>(method, piece?)))
}

/// The body that consists of a stream of messages, each encoded.
fn pieces<A: 'static, C: Codec<A>>(messages: impl Stream<Item = A> + Send + 'static) -> Body {
    Body::stream(messages.map(encoded::<A, C>))
}

impl<S> fmt::Debug for Client<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_future_of_a_call_by_a_channel_is_moved_at_little_cost() {
        let size = size_of::<Calling<Response<Bytes>>>();
        assert!(size <= 512, "it takes {size} bytes");
    }
}

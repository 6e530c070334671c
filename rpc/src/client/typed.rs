//! Typed calls over any tower service, for generated clients and for calls written by hand.

use std::fmt;

use bytes::Bytes;
use futures_core::Stream;
use futures_util::StreamExt;
use tower_service::Service;

use crate::codec::{Codec, encoded};
use crate::message::{Body, IntoStreamingRequest, Request, Response, Streaming};
use crate::method::{Method, MethodId};
use crate::status::Status;

/// A client that calls methods with types. It wraps any tower service that takes requests with
/// bodies, such as a [`Channel`](crate::Channel), with or without middleware around it.
///
/// ```
/// use doorbell::rpc::{Channel, Client, Method, Status};
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
    S: Service<Request<Body>, Response = Response<Body>> + Clone,
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
    pub async fn unary<A, R, C: Codec<A> + Codec<R>>(
        &self,
        method: Method<A, R, C>,
        request: impl Into<Request<A>>,
    ) -> Result<Response<R>, Status> {
        let request =
            request.into().try_map(|message| encoded::<A, C>(message).map(Body::Whole))?;
        let response = self.answer(method.id(), request).await?;
        response.try_map(|body| decode::<R, C>(method.id(), body.whole()?))
    }

    /// Calls a method that takes one message and answers with a stream.
    ///
    /// # Errors
    /// The status of the call, if it fails before the stream begins.
    pub async fn server_streaming<A, R, C>(
        &self,
        method: Method<A, R, C>,
        request: impl Into<Request<A>>,
    ) -> Result<Response<Streaming<R>>, Status>
    where
        R: Send + 'static,
        C: Codec<A> + Codec<R>,
    {
        let request =
            request.into().try_map(|message| encoded::<A, C>(message).map(Body::Whole))?;
        let response = self.answer(method.id(), request).await?;
        Ok(response.map(|body| decoded::<R, C>(method.id(), body)))
    }

    /// Calls a method that takes a stream and answers with one message.
    ///
    /// # Errors
    /// The status with which the call failed.
    pub async fn client_streaming<A, R, C>(
        &self,
        method: Method<A, R, C>,
        request: impl IntoStreamingRequest<Message = A>,
    ) -> Result<Response<R>, Status>
    where
        A: 'static,
        C: Codec<A> + Codec<R>,
    {
        let request = request.into_streaming_request().map(pieces::<A, C>);
        let response = self.answer(method.id(), request).await?;
        response.try_map(|body| decode::<R, C>(method.id(), body.whole()?))
    }

    /// Calls a method that takes a stream and answers with a stream. The answer may begin before
    /// the request has ended.
    ///
    /// # Errors
    /// The status of the call, if it fails before the stream begins.
    pub async fn streaming<A, R, C>(
        &self,
        method: Method<A, R, C>,
        request: impl IntoStreamingRequest<Message = A>,
    ) -> Result<Response<Streaming<R>>, Status>
    where
        A: 'static,
        R: Send + 'static,
        C: Codec<A> + Codec<R>,
    {
        let request = request.into_streaming_request().map(pieces::<A, C>);
        let response = self.answer(method.id(), request).await?;
        Ok(response.map(|body| decoded::<R, C>(method.id(), body)))
    }

    async fn answer(
        &self,
        method: MethodId,
        mut request: Request<Body>,
    ) -> Result<Response<Body>, Status> {
        request.set_method(method);
        let mut service = self.0.clone();
        let ready = std::future::poll_fn(|context| service.poll_ready(context)).await;
        ready.map_err(|why| Status::from_error(why.into()))?;
        service.call(request).await.map_err(|why| Status::from_error(why.into()))
    }
}

fn decode<R, C: Codec<R>>(method: MethodId, bytes: Bytes) -> Result<R, Status> {
    C::decode(bytes)
        .map_err(|why| Status::internal(format!("the answer of {method} can't be decoded: {why}")))
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

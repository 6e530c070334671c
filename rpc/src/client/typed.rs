//! Calls with types: what generated clients and programs use that call by hand.

use std::fmt;

use tower_service::Service;

use crate::codec::{Codec, encoded};
use crate::message::{Body, Request, Response};
use crate::method::Method;
use crate::status::Status;

/// A service that takes requests with bodies, such as a [`Channel`](crate::Channel) with or without
/// middleware around it, from which it is called with types.
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
    /// A client of a service.
    pub fn new(service: S) -> Self {
        Self(service)
    }

    /// Calls a method that takes one message and answers with one.
    ///
    /// # Errors
    /// The status of the call.
    pub async fn unary<A, R, C: Codec<A> + Codec<R>>(
        &self,
        method: Method<A, R, C>,
        request: impl Into<Request<A>>,
    ) -> Result<Response<R>, Status> {
        let mut request = request.into();
        request.set_method(method.id());
        let request = request.try_map(|message| encoded::<A, C>(message).map(Body::Whole))?;
        let response = self.answer(request).await?;
        response.try_map(|body| {
            C::decode(body.whole()?).map_err(|why| {
                Status::internal(format!("the answer of {} can't be decoded: {why}", method.id()))
            })
        })
    }

    async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, Status> {
        let mut service = self.0.clone();
        let ready = std::future::poll_fn(|context| service.poll_ready(context)).await;
        ready.map_err(|why| Status::from_error(why.into()))?;
        service.call(request).await.map_err(|why| Status::from_error(why.into()))
    }
}

impl<S> fmt::Debug for Client<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

//! A client of servers' health.

use tower_service::Service;

use super::{CHECK, ServingStatus, WATCH};
use crate::client::{Channel, Client};
use crate::message::{Body, Request, Response, Streaming};
use crate::status::Status;

/// A client that asks a server for its [`Health`](crate::Health).
///
/// The server's services are told apart by names; the empty name stands for the server as a whole.
#[derive(Clone, Debug)]
pub struct HealthClient<S = Channel>(Client<S>);

impl<S> HealthClient<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// A client over a channel, or over a channel with middleware around it.
    pub fn new(service: S) -> Self {
        Self(Client::new(service))
    }

    /// Asks for the present status of a service.
    ///
    /// # Errors
    /// [`NotFound`](crate::Code::NotFound) if the server says nothing about such a service,
    /// [`Unimplemented`](crate::Code::Unimplemented) if it says nothing about its health at all,
    /// and [`Unavailable`](crate::Code::Unavailable) if it can't be reached or shuts down.
    pub async fn check(&self, service: &str) -> Result<ServingStatus, Status> {
        Ok(self.0.unary(CHECK, service.to_owned()).await?.into_inner())
    }

    /// Watches a service: the stream begins with the present status, and goes on with each change.
    /// A service that the server says nothing about is
    /// [`ServiceUnknown`](ServingStatus::ServiceUnknown) until the server says something. Of
    /// changes that follow each other faster than the stream is read, the last is told.
    ///
    /// The stream ends after [`NotServing`](ServingStatus::NotServing) when the server shuts down,
    /// and with an error when the connection ends. As long as it lasts it holds one of the
    /// channel's permits.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::Code::InvalidArgument) for a name of more than 256 bytes, and as
    /// [`check`](Self::check); but never `NotFound`.
    pub async fn watch(&self, service: &str) -> Result<Streaming<ServingStatus>, Status> {
        Ok(self.0.server_streaming(WATCH, service.to_owned()).await?.into_inner())
    }
}

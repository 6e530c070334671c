//! A client of the health service.

use tower_service::Service;

use super::protocol::{CHECK, ServingStatus, WATCH};
use crate::client::{Calling, Channel, Client};
use crate::message::{Body, Request, Response, Streaming};

/// A client that asks a server for its [`Health`](crate::Health).
///
/// Services of a server have names. The empty name stands for the server as a whole.
#[derive(Clone, Debug)]
pub struct HealthClient<S = Channel>(Client<S>);

impl<S> HealthClient<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// Makes a client over a channel, or over a channel with middleware around it.
    pub fn new(service: S) -> Self {
        Self(Client::new(service))
    }

    /// Asks for the present status of a service.
    ///
    /// # Errors
    /// [`NotFound`](crate::Code::NotFound) if the server has no status for the service,
    /// [`Unimplemented`](crate::Code::Unimplemented) if the server has no health service, and
    /// [`Unavailable`](crate::Code::Unavailable) if the server can't be reached or is shutting
    /// down.
    pub fn check(&self, service: &str) -> Calling<ServingStatus> {
        self.0.unary(CHECK, service.to_owned()).into_inner()
    }

    /// Watches the status of a service. The stream begins with the present status, and then yields
    /// each change. While the server has no status for the service, the status is
    /// [`ServiceUnknown`](ServingStatus::ServiceUnknown). If several changes come before the stream
    /// is read, the stream yields the last one.
    ///
    /// The stream ends after [`NotServing`](ServingStatus::NotServing) when the server shuts down,
    /// and with an error when the connection ends. The stream holds one of the channel's permits
    /// for as long as it lasts.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::Code::InvalidArgument) for a name of more than 256 bytes, and the
    /// errors of [`check`](Self::check) except `NotFound`.
    pub fn watch(&self, service: &str) -> Calling<Streaming<ServingStatus>> {
        self.0.server_streaming(WATCH, service.to_owned()).into_inner()
    }
}

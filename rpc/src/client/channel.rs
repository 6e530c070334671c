//! Channels: tower services that send requests to a server.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use doorbell_am::Name;
use doorbell_verbs::Nic;
use sync_wrapper::SyncWrapper;
use tower_service::Service;
use tracing::Instrument;

use super::session::Session;
use crate::context::Inherited;
use crate::deadlines::{deadline_after, earlier};
use crate::message::{Body, Request, Response};
use crate::meters::Meters;
use crate::observed::Observed;
use crate::status::Status;
use crate::trace;
use crate::usage::Usage;

/// A channel to a server: a tower service that sends requests over one connection, and reconnects
/// when that has ended. Clones share the connection.
///
/// The runtime in which a channel was made, or in which its bundle was made, serves the channel,
/// and has to run while calls wait, wherever these are made. When that runtime has ended, calls
/// fail with [`Unavailable`](crate::Code::Unavailable).
///
/// Calls wait while the channel connects. When its server is gone, they fail at once with
/// [`Unavailable`](crate::Code::Unavailable), unless they [wait](crate::ChannelBuilder::wait_for_ready),
/// and the channel goes on trying to connect.
///
/// `poll_ready` is always ready and reserves nothing: balancers take
/// [`WhenReady`](crate::WhenReady)s. A call takes a permit when its future is first polled, and
/// waits while too many calls are in flight. The permit belongs to the future.
#[derive(Clone)]
pub struct Channel(pub(super) Arc<Session>);

impl Channel {
    /// The name of the server that the channel connects to.
    #[must_use]
    pub fn name(&self) -> &Name {
        self.0.name()
    }

    /// Whether the channel has a connection now.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.0.connector.current().is_some()
    }

    /// The number of calls that may be begun without waiting for a permit.
    #[must_use]
    pub fn room(&self) -> usize {
        self.0.permits.left()
    }

    /// The resources that the channel holds for calls in flight.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let calls = &self.0.calls;
        Usage::of(calls.count(), &calls.streams, &calls.transfers)
    }

    /// The NIC by which the channel sends and receives. Useful for its statistics.
    #[must_use]
    pub fn nic(&self) -> &Nic {
        self.0.connector.endpoint.nic()
    }

    /// Sends a request, and waits for the response.
    ///
    /// # Errors
    /// The status that the server has answered with, or the reason why there is no answer.
    pub async fn send(&self, mut request: Request<Body>) -> Result<Response<Body>, Status> {
        let own = self.0.settings.timeout.map(deadline_after);
        let inherited = Inherited::here();
        let deadline = earlier(request.deadline().or(own), inherited.deadline);
        request.set_deadline(deadline);
        let (span, trace) = trace::call(&request, self.name(), inherited.trace);
        let observed = Observed::new(span, Meters::of_client(request.method()), deadline);
        let answer = self.0.call(request, trace).instrument(observed.span()).await;
        observed.answered(answer, Inherited::default())
    }
}

impl Service<Request<Body>> for Channel {
    type Response = Response<Body>;
    type Error = Status;
    type Future = Sending;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Sending {
        let channel = self.clone();
        Sending(SyncWrapper::new(Box::pin(async move { channel.send(request).await })))
    }
}

/// The future of a [`Channel`]'s call. Dropping it gives the call up, and tells the server.
pub struct Sending(SyncWrapper<Answering>);

type Answering = Pin<Box<dyn Future<Output = Result<Response<Body>, Status>> + Send>>;

impl Future for Sending {
    type Output = Result<Response<Body>, Status>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.get_mut().as_mut().poll(context)
    }
}

impl fmt::Debug for Sending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending").finish_non_exhaustive()
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("name", &self.name().to_string())
            .field("connected", &self.is_connected())
            .finish_non_exhaustive()
    }
}

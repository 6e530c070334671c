//! Channels: tower services that send requests to a server.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use doorbell_am::Name;
use doorbell_verbs::Nic;
use sync_wrapper::SyncWrapper;
use tokio::task::AbortHandle;
use tower_service::Service;
use tracing::Instrument;

use super::calls::Calls;
use super::connector::Connector;
use super::delivery::Delivery;
use super::numbers::Numbers;
use super::permits::Permits;
use super::response::HeldStream;
use crate::context::Inherited;
use crate::deadlines::{deadline_after, earlier};
use crate::message::{Body, Request, Response};
use crate::meters::{self, Meters};
use crate::observed::Observed;
use crate::status::Status;
use crate::trace::{self, TraceContext};
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
pub struct Channel(pub(super) Arc<Inner>);

/// The state of a channel, which all handles to it share.
pub(super) struct Inner {
    pub connector: Connector,
    pub calls: Arc<Calls>,
    /// The task that ends calls whose connections have ended.
    pub watch: AbortHandle,
    pub permits: Permits,
    /// The time allowed for calls that have no deadline of their own; `None` if unbounded.
    pub timeout: Option<Duration>,
    /// Whether calls wait for a server that is gone, unless their requests say otherwise.
    pub waits: bool,
    pub numbers: Numbers,
}

impl Channel {
    /// The name of the server that the channel connects to.
    #[must_use]
    pub fn name(&self) -> &Name {
        self.0.connector.name()
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
        self.0.connector.nic()
    }

    /// Sends a request, and waits for the response.
    ///
    /// # Errors
    /// The status that the server has answered with, or the reason why there is no answer.
    pub async fn send(&self, mut request: Request<Body>) -> Result<Response<Body>, Status> {
        let own = self.0.timeout.map(deadline_after);
        let inherited = Inherited::here();
        let deadline = earlier(request.deadline().or(own), inherited.deadline);
        request.set_deadline(deadline);
        let (span, trace) = trace::call(&request, self.name(), inherited.trace);
        let observed = Observed::new(span, Meters::of_client(request.method()), deadline);
        let answer = self.answer(request, trace).instrument(observed.span()).await;
        observed.answered(answer, Inherited::default())
    }

    /// Waits for a permit, sends a request with the context of a trace, and waits for the response.
    async fn answer(
        &self,
        request: Request<Body>,
        trace: Option<TraceContext>,
    ) -> Result<Response<Body>, Status> {
        let deadline = request.deadline();
        let permit = self.0.permits.take(deadline, self.name()).await.map_err(Status::not_run)?;
        let response = self.0.send(request, trace).await?;
        let (metadata, body) = response.into_parts();
        let body = match body {
            Body::Whole(bytes) => Body::Whole(bytes),
            Body::Stream(pieces) => {
                permit.forget();
                let channel = self.0.clone();
                Body::stream(HeldStream::new(pieces, deadline, move || channel.permits.give_back()))
            }
        };
        Ok(Response::with_metadata(metadata, body))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

impl Inner {
    /// Sends a request over the connection, and waits for the response. If the connection ends,
    /// sends the request over the next one, unless the call may have run and must not run twice.
    async fn send(
        &self,
        request: Request<Body>,
        trace: Option<TraceContext>,
    ) -> Result<Response<Body>, Status> {
        let method = request.method();
        let waits = request.waits_for_ready().unwrap_or(self.waits);
        let mut delivery = Delivery::new(request, trace, waits);
        loop {
            match delivery.attempt(&self.connector, &self.calls, &self.numbers).await {
                Ok(response) => return Ok(response),
                Err(failure) => delivery.retry_after(failure)?,
            }
            meters::resent(method);
        }
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

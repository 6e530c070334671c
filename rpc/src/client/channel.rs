//! Channels: tower services that send requests to a server, and send a call again where that is
//! safe.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use doorbell_am::Name;
use doorbell_verbs::Nic;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tower_service::Service;
use tracing::Instrument;

use super::calls::Calls;
use super::connector::Connector;
use super::failure::Failure;
use super::permits::Permits;
use super::response::HeldStream;
use crate::context::{Inherited, deadline_after, earlier};
use crate::message::{Body, Request, Response};
use crate::metadata::Metadata;
use crate::meters::{self, Meters};
use crate::observed::Observed;
use crate::status::Status;
use crate::trace::{self, TraceContext};
use crate::usage::Usage;
use crate::wire::{CallHead, Content, Flags, NO_METHOD};

/// A channel to a server: a tower service that sends requests over one connection, and reconnects
/// when that has ended. Clones share the connection.
///
/// The runtime in which a channel was made, or in which its bundle was made, serves the channel,
/// and has to run while calls wait, wherever these are made. When that runtime has ended, calls
/// fail with [`Unavailable`](crate::Code::Unavailable).
///
/// `poll_ready` is always ready and reserves nothing. A call takes a permit when its future is
/// first polled, and waits while too many calls are in flight. The permit belongs to the future.
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
    /// The number of the next call.
    pub next: AtomicU64,
}

/// How many times a call is sent again after its connection has ended.
const RESENDS: usize = 8;

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
        let permit = self.0.permits.take(deadline, self.name()).await?;
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
        let (method, deadline) = (request.method(), request.deadline());
        let mut call = 0;
        let metadata = request.metadata().clone();
        let (body, mut pieces) = match request.into_inner() {
            Body::Whole(bytes) => (bytes, None),
            Body::Stream(pieces) => (Bytes::new(), Some(pieces)),
        };
        let streams = pieces.is_some();
        let (mut sent_by, mut resends): (Option<(u64, u64)>, usize) = (None, 0);
        let mut lost = None;
        loop {
            let connection = self.connector.connection(deadline).await;
            let connection = connection.map_err(|why| behind(lost.as_ref(), why))?;
            let knows = |before| before == (connection.server, connection.session);
            if let Some(before) = sent_by
                && !method.is_idempotent()
                && !knows(before)
            {
                let why = format!(
                    "the server that is there now does not know whether {method} ran; mark the \
                     method idempotent to have it called again"
                );
                return Err(behind(lost.as_ref(), Status::unavailable(why)));
            }
            let most = connection.longest_message();
            let metadata = with_trace(&metadata, trace.as_ref(), most);
            let content = Content::new(&metadata, body.clone(), most)?;
            let outcome = match connection.prepare(&content, deadline).await {
                Err(unprepared) => Err(unprepared),
                Ok(()) => {
                    // A server forgets calls that thousands of later ones have overtaken, so a call
                    // gets its number only when it can be sent.
                    if sent_by.is_none() {
                        call = self.next.fetch_add(1, Ordering::Relaxed);
                    }
                    let head = CallHead {
                        session: connection.session,
                        call,
                        method: method.number(),
                        schema: method.schema_number(),
                        timeout: remaining(deadline)?,
                        flags: Flags { streams, ..content.flags },
                    };
                    connection.call(&self.calls, head, &content, &mut pieces, deadline).await
                }
            };
            match outcome {
                Ok(response) => return Ok(response),
                Err(Failure::Final(status)) => return Err(unknown_method(status, method)),
                Err(Failure::NotSent(status) | Failure::OutcomeUnknown(status))
                    if resends == RESENDS =>
                {
                    return Err(status);
                }
                Err(Failure::OutcomeUnknown(status)) if streams => return Err(status),
                Err(Failure::NotSent(why)) => lost = Some(why),
                Err(Failure::OutcomeUnknown(why)) => {
                    sent_by = Some((connection.server, connection.session));
                    lost = Some(why);
                }
            }
            resends += 1;
            meters::resent(method);
        }
    }
}

/// The status of a call that is not sent again because of `why`. Mentions first why the call was
/// lost before, if it was.
#[cold]
fn behind(lost: Option<&Status>, why: Status) -> Status {
    let Some(lost) = lost else { return why };
    let text = format!("{}; then: {}", lost.message(), why.message());
    Status::new(why.code(), text).with_source(why)
}

/// The metadata of a call, with the context of its trace added as far as there is room in a message
/// of at most `most` bytes.
fn with_trace<'m>(
    metadata: &'m Metadata,
    trace: Option<&TraceContext>,
    most: usize,
) -> Cow<'m, Metadata> {
    let Some(trace) = trace else { return Cow::Borrowed(metadata) };
    let mut metadata = metadata.clone();
    trace.write_within(&mut metadata, Content::most_metadata(most));
    Cow::Owned(metadata)
}

/// The microseconds until a deadline, at least one; zero if there is no deadline.
fn remaining(deadline: Option<Instant>) -> Result<u64, Status> {
    let Some(deadline) = deadline else { return Ok(0) };
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(Status::deadline_exceeded("the call's time was over before it was sent"));
    }
    Ok(u64::try_from(left.as_micros()).unwrap_or(u64::MAX).max(1))
}

/// Adds the path of the method to a status which says that the server does not have the method. The
/// server knows only the number of the path.
fn unknown_method(status: Status, method: crate::MethodId) -> Status {
    match status.code() {
        crate::Code::Unimplemented if status.message().starts_with(NO_METHOD) => {
            Status::unimplemented(format!("calling {method}: {}", status.message()))
        }
        _ => status,
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
        Sending(Box::pin(async move { channel.send(request).await }))
    }
}

/// The future of a [`Channel`]'s call. Dropping it gives the call up, and tells the server.
pub struct Sending(Pin<Box<dyn Future<Output = Result<Response<Body>, Status>> + Send>>);

impl Future for Sending {
    type Output = Result<Response<Body>, Status>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context)
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

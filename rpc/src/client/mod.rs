//! Clients: channels to servers, and how they are configured.

mod alive;
mod builder;
mod calls;
mod connection;
mod connector;
mod held;
mod lost;
mod stage;
mod typed;

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
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tower_service::Service;
use tracing::Instrument;

pub use builder::ChannelBuilder;
pub use connector::Backoff;
pub use typed::Client;

use self::calls::Calls;
use self::connector::Connector;
use self::held::Held;
use self::lost::Lost;
use crate::context::{Inherited, deadline_after, earlier};
use crate::message::{Body, Request, Response};
use crate::metadata::Metadata;
use crate::meters::{self, Meters, PermitMeter};
use crate::observed::Observed;
use crate::status::Status;
use crate::trace::{self, TraceContext};
use crate::usage::Usage;
use crate::wire::{CallHead, Content, Flags, NO_METHOD};

/// A channel to a server: a tower service that sends requests over one connection, which it makes
/// again when it has ended. Clones share the connection.
///
/// A channel is served by the runtime in which it was made, or in which its bundle was made, and
/// that has to run while calls wait, wherever they are made. When that runtime has ended, calls fail
/// with [`Unavailable`](crate::Code::Unavailable).
///
/// `poll_ready` is always ready and reserves nothing. A call takes a permit when its future first
/// runs, and waits while as many calls are in flight as may be; the permit goes with the future.
#[derive(Clone)]
pub struct Channel(Arc<Inner>);

struct Inner {
    connector: Connector,
    calls: Arc<Calls>,
    /// Ends the calls of connections that have ended.
    watch: AbortHandle,
    permits: Semaphore,
    permit_meter: PermitMeter,
    most: usize,
    /// Whether a call beyond the most in flight fails rather than waits.
    sheds: bool,
    /// How long calls have that have no deadline of their own.
    timeout: Option<Duration>,
    next: AtomicU64,
}

/// How often a call is sent again whose connection has ended.
const RESENDS: usize = 8;

impl Channel {
    /// Connects to a server.
    ///
    /// # Errors
    /// When the name is none, the device of its kind can't be opened here, or the server can't be
    /// connected to within five seconds.
    pub async fn connect(
        name: impl TryInto<Name, Error: Into<doorbell_am::NameError>>,
    ) -> Result<Self, Status> {
        Self::builder().connect(name).await
    }

    /// What a channel can be configured to be.
    pub fn builder() -> ChannelBuilder {
        ChannelBuilder::default()
    }

    /// The name of the server.
    #[must_use]
    pub fn name(&self) -> &Name {
        self.0.connector.name()
    }

    /// Whether there is a connection now.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.0.connector.current().is_some()
    }

    /// How many more calls may be begun without waiting.
    #[must_use]
    pub fn room(&self) -> usize {
        self.0.permits.available_permits()
    }

    /// What the channel holds for calls that are under way.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let calls = &self.0.calls;
        Usage::of(calls.count(), &calls.streams, &calls.transfers)
    }

    /// The NIC by which the channel sends and receives, for its statistics.
    #[must_use]
    pub fn nic(&self) -> &Nic {
        self.0.connector.nic()
    }

    /// Sends a request, and waits for the response.
    ///
    /// # Errors
    /// The status that the server has answered with, or why there is no answer.
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

    /// Sends a request with the context of a trace, when there is a permit for it, and waits for
    /// the response.
    async fn answer(
        &self,
        request: Request<Body>,
        trace: Option<TraceContext>,
    ) -> Result<Response<Body>, Status> {
        let deadline = request.deadline();
        let permit = self.0.permit(deadline).await?;
        let response = self.0.send(request, trace).await?;
        let (metadata, body) = response.into_parts();
        let body = match body {
            Body::Whole(bytes) => Body::Whole(bytes),
            Body::Stream(pieces) => {
                permit.forget();
                let channel = self.0.clone();
                Body::stream(Held::new(pieces, deadline, move || channel.give_back()))
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

/// The right of a call to be in flight, until this is dropped.
struct Permit<'i>(&'i Inner);

impl Permit<'_> {
    /// Leaves the permit to whoever [gives it back](Inner::give_back).
    fn forget(self) {
        std::mem::forget(self);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

impl Inner {
    /// Waits until a call more may be in flight.
    async fn permit(&self, deadline: Option<Instant>) -> Result<Permit<'_>, Status> {
        self.semaphore_permit(deadline).await?.forget();
        self.permit_meter.take();
        Ok(Permit(self))
    }

    /// Gives a permit back.
    fn give_back(&self) {
        self.permit_meter.give_back();
        self.permits.add_permits(1);
    }

    async fn semaphore_permit(
        &self,
        deadline: Option<Instant>,
    ) -> Result<SemaphorePermit<'_>, Status> {
        if let Ok(permit) = self.permits.try_acquire() {
            return Ok(permit);
        }
        let most = self.most;
        if self.sheds {
            return Err(Status::resource_exhausted(format!(
                "{most} calls are in flight to {}, as many as the channel allows: call again later",
                self.connector.name()
            )));
        }
        let permit = self.permits.acquire();
        let permit = match deadline {
            None => permit.await,
            Some(deadline) => tokio::time::timeout_at(deadline, permit).await.map_err(|_| {
                Status::deadline_exceeded(format!(
                    "the call waited for one of the {most} that may be in flight to {} until its time \
                     was over",
                    self.connector.name()
                ))
            })?,
        };
        Ok(permit.expect("the semaphore is never closed"))
    }

    /// Sends a request over the connection; if that ends, over the next one, unless the call may
    /// have run and must not run twice.
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
                    // A server takes numbers for old that thousands of later calls have overtaken:
                    // so a call that was not sent yet gets its number when it can be.
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
                Err(Lost::Over(status)) => return Err(unknown_method(status, method)),
                Err(Lost::Unsent(status) | Lost::Unknown(status)) if resends == RESENDS => {
                    return Err(status);
                }
                Err(Lost::Unknown(status)) if streams => return Err(status),
                Err(Lost::Unsent(why)) => lost = Some(why),
                Err(Lost::Unknown(why)) => {
                    sent_by = Some((connection.server, connection.session));
                    lost = Some(why);
                }
            }
            resends += 1;
            meters::resent(method);
        }
    }
}

/// The status of a call that is not sent again for a reason, behind what became of it when it was
/// sent last, if it was.
#[cold]
fn behind(lost: Option<&Status>, why: Status) -> Status {
    let Some(lost) = lost else { return why };
    let text = format!("{}; then: {}", lost.message(), why.message());
    Status::new(why.code(), text).with_source(why)
}

/// The metadata of a call with the context of its trace, for messages of at most `most` bytes.
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

/// The microseconds until a deadline, at least one; zero if there is none.
fn remaining(deadline: Option<Instant>) -> Result<u64, Status> {
    let Some(deadline) = deadline else { return Ok(0) };
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(Status::deadline_exceeded("the call's time was over before it was sent"));
    }
    Ok(u64::try_from(left.as_micros()).unwrap_or(u64::MAX).max(1))
}

/// The status with the path of the method if the server does not have that: it knows the number
/// alone.
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

/// The future of a call of a [`Channel`]. To drop it gives the call up, and tells the server.
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

//! Channels: tower services that send requests to a server.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use doorbell_am::Name;
use doorbell_verbs::Nic;
use futures_util::FutureExt;
use sync_wrapper::SyncWrapper;
use tower_service::Service;
use tracing::Instrument;

use super::session::{End, Going, Session, Short};
use crate::context::Inherited;
use crate::deadlines::{deadline_after, earlier};
use crate::message::{Body, Request, Response};
use crate::meters::Meters;
use crate::observed::Observed;
use crate::status::Status;
use crate::trace::{self, CallSpan};
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
    pub async fn send(&self, request: Request<Body>) -> Result<Response<Body>, Status> {
        Sending::new(self.clone(), request).await
    }

    /// Sends a request that has its deadline, in a span if a subscriber is interested, and waits
    /// for whatever there is to wait for.
    async fn send_patiently(self, request: Request<Body>) -> Result<Response<Body>, Status> {
        let deadline = request.deadline();
        let (span, trace) = trace::call(&request, self.name(), Inherited::here().trace);
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
        Sending::new(self.clone(), request)
    }
}

/// The future of a [`Channel`]'s call. Dropping it gives the call up, and tells the server.
pub struct Sending(SyncWrapper<State>);

/// The state of a call, from its first poll to its end.
enum State {
    /// The future was not polled yet.
    Fresh(Channel, Request<Body>),
    /// The request was sent at once, and its answer is waited for.
    Short(Short, Observed),
    Patient(Going),
    Over,
}

impl Sending {
    pub(super) fn new(channel: Channel, request: Request<Body>) -> Self {
        Self(SyncWrapper::new(State::Fresh(channel, request)))
    }
}

impl State {
    /// Sends a request at once if that is possible and no trace is written.
    fn begun(channel: Channel, mut request: Request<Body>) -> Self {
        let own = channel.0.settings.timeout.map(deadline_after);
        let (inherited, is_traced) = Inherited::deadline_here();
        let deadline = earlier(request.deadline().or(own), inherited);
        request.set_deadline(deadline);
        if is_traced || trace::may_be_seen() {
            return Self::Patient(Box::pin(channel.send_patiently(request)));
        }
        let method = request.method();
        match Short::send(channel.0, request) {
            Ok(short) => {
                let meters = Meters::of_client(method);
                Self::Short(short, Observed::new(CallSpan::none(), meters, deadline))
            }
            Err((session, request)) => {
                Self::Patient(Box::pin(Channel(session).send_patiently(request)))
            }
        }
    }
}

impl Future for Sending {
    type Output = Result<Response<Body>, Status>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let state = self.0.get_mut();
        if let State::Fresh(..) = state
            && let State::Fresh(channel, request) = std::mem::replace(state, State::Over)
        {
            *state = State::begun(channel, request);
        }
        if let State::Short(short, _) = state {
            let end = ready!(short.poll(context));
            let State::Short(_, observed) = std::mem::replace(state, State::Over) else {
                unreachable!("it is a short call's")
            };
            match end {
                End::Ended(answer) => {
                    return Poll::Ready(observed.answered(answer, Inherited::default()));
                }
                End::GoesOn(going) => {
                    let end = |answer| observed.answered(answer, Inherited::default());
                    *state = State::Patient(Box::pin(going.map(end)));
                }
            }
        }
        let State::Patient(going) = state else { panic!("a call is polled until it is ready") };
        let answer = ready!(going.as_mut().poll(context));
        *state = State::Over;
        Poll::Ready(answer)
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

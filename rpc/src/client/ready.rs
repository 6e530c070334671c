//! Channels whose readiness says whether there is a connection, for balancers.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use sync_wrapper::SyncWrapper;
use tower_service::Service;

use super::channel::{Channel, Sending};
use crate::message::{Body, Request, Response};
use crate::status::Status;

/// A [`Channel`] as a tower service that is ready when there is a connection. Tower's `Balance`
/// then gives no calls to servers that are gone, and takes them back as soon as there is a
/// connection again.
///
/// While there is none, `poll_ready` is pending, and the channel tries to connect. A server that
/// refuses the connection is not ready either. `poll_ready` fails only if the channel is over,
/// because the runtime has ended in which it was made.
pub struct WhenReady {
    channel: Channel,
    /// The wait for the connection, while `poll_ready` is pending.
    waits: Option<SyncWrapper<Waits>>,
}

type Waits = Pin<Box<dyn Future<Output = Result<(), Status>> + Send>>;

impl Channel {
    /// Makes a service of the channel that is ready when there is a connection, for balancers.
    #[must_use]
    pub fn when_ready(&self) -> WhenReady {
        WhenReady { channel: self.clone(), waits: None }
    }
}

impl WhenReady {
    /// The channel by which calls are sent.
    #[must_use]
    pub fn channel(&self) -> &Channel {
        &self.channel
    }
}

impl Service<Request<Body>> for WhenReady {
    type Response = Response<Body>;
    type Error = Status;
    type Future = Sending;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Status>> {
        loop {
            if self.channel.is_connected() {
                self.waits = None;
                return Poll::Ready(Ok(()));
            }
            let connects = || SyncWrapper::new(Box::pin(self.channel.0.connector.ready()) as Waits);
            let waits = self.waits.get_or_insert_with(connects);
            let ready = std::task::ready!(waits.get_mut().as_mut().poll(context));
            self.waits = None;
            ready?;
        }
    }

    fn call(&mut self, request: Request<Body>) -> Sending {
        self.channel.call(request)
    }
}

impl Clone for WhenReady {
    fn clone(&self) -> Self {
        self.channel.when_ready()
    }
}

impl fmt::Debug for WhenReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WhenReady").field(&self.channel).finish()
    }
}

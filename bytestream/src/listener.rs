//! Listeners, which accept the streams that peers open to a service.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use doorbell_verbs::floor::locked;
use doorbell_verbs::{Listener as Asks, Name, Nic, OpenError, ServiceId};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};

use crate::endpoint::Endpoint;
use crate::error::{of_listen, of_open};
use crate::stream::Stream;

/// Accepts the streams that peers open to a service, until the listener is dropped. Streams that
/// were accepted stay open.
pub struct Listener {
    endpoint: Endpoint,
    name: Name,
    streams: mpsc::Receiver<Stream>,
    acceptor: Acceptor,
    /// The task that polls the acceptor.
    task: AbortHandle,
}

/// The future that accepts peers, shared by the listener and the task that polls the future.
///
/// The future is dropped as soon as either of them is dropped. So the service is free at once when
/// the listener is dropped, and not only when the runtime has dropped the task.
struct Acceptor(Arc<Mutex<Option<Accepting>>>);

type Accepting = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Acceptor {
    fn new(accepting: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(Box::pin(accepting)))))
    }

    /// Polls the shared future until it ends or is dropped. The body of the task.
    async fn run(self) {
        poll_fn(|context| match &mut *locked(&self.0) {
            Some(accepting) => accepting.as_mut().poll(context),
            None => Poll::Ready(()),
        })
        .await;
    }

    fn stop(&self) {
        let accepting = locked(&self.0).take();
        drop(accepting);
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Before the task is stopped, which another thread may drop meanwhile.
        self.acceptor.stop();
        self.task.abort();
    }
}

impl Listener {
    /// Opens an endpoint on a device, and listens to a service there: see [`Endpoint::open`] and
    /// [`Endpoint::listen`].
    ///
    /// # Errors
    /// The errors of these two functions.
    pub async fn open(device: &str, service: ServiceId) -> io::Result<Self> {
        Endpoint::open(device).await?.listen(service).await
    }

    /// Opens an endpoint on a NIC that is open, and listens to a service there: see
    /// [`Endpoint::on`] and [`Endpoint::listen`].
    ///
    /// # Errors
    /// The errors of these two functions.
    pub async fn on(nic: &Nic, service: ServiceId) -> io::Result<Self> {
        Endpoint::on(nic).await?.listen(service).await
    }

    /// Returns the listener's name, by which peers [connect](Stream::connect). As text, it may be
    /// given to peers in any way.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Returns the endpoint at which streams are accepted.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Waits for the next stream that a peer opens. Dropping the future loses no stream.
    ///
    /// # Errors
    /// When the endpoint was [closed](Endpoint::close) or its NIC was, or the runtime has ended in
    /// which the listener was made. A peer with which no stream can be made is not an error of the
    /// listener.
    pub async fn accept(&mut self) -> io::Result<Stream> {
        self.streams.recv().await.ok_or_else(ended)
    }

    /// Polls for the next stream that a peer opens, as [`accept`](Self::accept) does.
    ///
    /// # Errors
    /// The errors of [`accept`](Self::accept).
    pub fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Stream>> {
        Poll::Ready(ready!(self.streams.poll_recv(context)).ok_or_else(ended))
    }

    /// Turns the listener into a [`Stream`](futures_core::Stream) of accepted streams, which ends
    /// with the listener: when the endpoint or its NIC is closed, or its runtime has ended. Servers
    /// such as tonic's `serve_with_incoming` take it, and end with it.
    pub fn incoming(self) -> Incoming {
        Incoming(self)
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The accepted streams of a listener, as a [`Stream`](futures_core::Stream). Made by
/// [`Listener::incoming`].
#[derive(Debug)]
pub struct Incoming(Listener);

impl Incoming {
    /// Returns the listener that accepts the streams.
    pub fn get_ref(&self) -> &Listener {
        &self.0
    }
}

impl futures_core::Stream for Incoming {
    type Item = io::Result<Stream>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.streams.poll_recv(context).map(|stream| stream.map(Ok))
    }
}

fn ended() -> io::Error {
    let what = "the listener has ended: its endpoint or its NIC was closed, or the runtime has \
                ended in which it was made";
    io::Error::new(io::ErrorKind::ConnectionAborted, what)
}

impl Endpoint {
    /// Listens for streams that peers open to a service of this endpoint's NIC.
    ///
    /// # Errors
    /// When the service has a listener already, or the endpoint is closed.
    pub async fn listen(&self, service: ServiceId) -> io::Result<Listener> {
        let (endpoint, shared) = (self.clone(), &self.0.hub.shared);
        let closing = self.0.hub.watch_closing();
        if *closing.borrow() {
            return Err(of_open(OpenError::Closed));
        }
        let backlog = shared.config.backlog;
        let asks = endpoint.nic().listen_with(service, backlog).await.map_err(of_listen)?;
        let name = asks.name();
        let (taken, streams) = mpsc::channel(backlog);
        let acceptor = Acceptor::new(accept(endpoint.clone(), asks, taken, closing));
        let task = shared.runtime.spawn(Acceptor(acceptor.0.clone()).run());
        Ok(Listener { endpoint, name, streams, acceptor, task: task.abort_handle() })
    }
}

/// Accepts peers while the backlog has room, until the endpoint is closed. Each peer is accepted by
/// a task of its own, so that a slow peer does not hold up the others.
async fn accept(
    endpoint: Endpoint,
    mut asks: Asks,
    taken: mpsc::Sender<Stream>,
    mut closing: watch::Receiver<bool>,
) {
    let mut tasks = JoinSet::new();
    loop {
        let next = async {
            let place = taken.clone().reserve_owned().await.ok()?;
            Some((place, asks.accept().await.ok()?))
        };
        let next = tokio::select! {
            biased;
            _ = closing.wait_for(|&is_closing| is_closing) => break,
            next = next => next,
        };
        let Some((place, asked)) = next else { return };
        let endpoint = endpoint.clone();
        tasks.spawn(async move {
            match endpoint.accept(asked).await {
                Ok(stream) => drop(place.send(stream)),
                Err(why) => tracing::debug!(%why, "a stream was not accepted"),
            }
        });
        while tasks.try_join_next().is_some() {}
    }
    drop((asks, taken, closing));
    // A stream that is just being accepted is ended, rather than reset.
    while tasks.join_next().await.is_some() {}
}

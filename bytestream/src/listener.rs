//! Listeners: who takes up streams that peers open.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use doorbell_verbs::{Listener as Asks, Nic, ServiceId};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::buffers::locked;
use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::error::of_listen;
use crate::name::name;
use crate::stream::Stream;

/// Takes up the streams that peers open to a service, until it is dropped. Streams that it has
/// given out stay.
pub struct Listener {
    endpoint: Endpoint,
    name: String,
    streams: mpsc::Receiver<Stream>,
    _acceptor: Acceptor,
    /// What polls the acceptor.
    task: AbortHandle,
}

/// What takes peers up, until either the listener or the task that polls it is gone. When the
/// listener is dropped, the service goes at once, and not when the task is next run: others may
/// listen there from then on.
struct Acceptor(Arc<Mutex<Option<Accepting>>>);

type Accepting = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Acceptor {
    fn new(accepting: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(Box::pin(accepting)))))
    }

    /// Takes peers up.
    async fn run(self) {
        poll_fn(|context| match &mut *locked(&self.0) {
            Some(accepting) => accepting.as_mut().poll(context),
            None => Poll::Ready(()),
        })
        .await;
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        let accepting = locked(&self.0).take();
        drop(accepting);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Listener {
    /// Opens an endpoint on a device, and listens to a service there: see [`Endpoint::open`] and
    /// [`Endpoint::listen`].
    ///
    /// # Errors
    /// As those.
    pub async fn bind(device: &str, service: ServiceId) -> io::Result<Self> {
        Endpoint::open(device).await?.listen(service).await
    }

    /// Listens to a service of a NIC, with an endpoint that is configured by default.
    ///
    /// # Errors
    /// When somebody listens there already, or the NIC has no room.
    pub async fn on(nic: &Nic, service: ServiceId) -> io::Result<Self> {
        Endpoint::on(nic, &Config::default())?.listen(service).await
    }

    /// What peers [connect](Stream::connect) to: text, which goes wherever it is needed.
    pub fn local_name(&self) -> &str {
        &self.name
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The next stream that a peer has opened. This may be dropped at any time, and no stream is
    /// lost by it.
    ///
    /// # Errors
    /// When the runtime has ended in which the listener was made. A peer that does not get through
    /// is no error of the listener.
    pub async fn accept(&mut self) -> io::Result<Stream> {
        self.streams.recv().await.ok_or_else(ended)
    }

    /// The same as a poll.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Stream>> {
        Poll::Ready(ready!(self.streams.poll_recv(context)).ok_or_else(ended))
    }

    /// The streams that peers open as a [`Stream`](futures_core::Stream), which does not end.
    pub fn incoming(self) -> Incoming {
        Incoming(self)
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The streams that peers open. See [`Listener::incoming`].
#[derive(Debug)]
pub struct Incoming(Listener);

impl Incoming {
    /// The listener.
    pub fn get_ref(&self) -> &Listener {
        &self.0
    }
}

impl futures_core::Stream for Incoming {
    type Item = io::Result<Stream>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_accept(context).map(Some)
    }
}

fn ended() -> io::Error {
    let what = "the runtime in which this listener was made has ended";
    io::Error::new(io::ErrorKind::ConnectionAborted, what)
}

/// Listens for streams to a service.
pub(crate) async fn listen(endpoint: Endpoint, service: ServiceId) -> io::Result<Listener> {
    let backlog = endpoint.0.hub.config.backlog;
    let asks = endpoint.nic().listen_with(service, backlog).await.map_err(of_listen)?;
    let name = name(endpoint.nic().address(), service);
    let (taken, streams) = mpsc::channel(backlog);
    let acceptor = Acceptor::new(accept(endpoint.clone(), asks, taken));
    let task = endpoint.0.hub.runtime.spawn(Acceptor(acceptor.0.clone()).run());
    Ok(Listener { endpoint, name, streams, _acceptor: acceptor, task: task.abort_handle() })
}

/// Takes up whoever asks, each in a task of its own, as long as there is room for the stream.
async fn accept(endpoint: Endpoint, mut asks: Asks, taken: mpsc::Sender<Stream>) {
    let mut tasks = JoinSet::new();
    loop {
        let Ok(place) = taken.clone().reserve_owned().await else { return };
        let asked = asks.accept().await;
        let endpoint = endpoint.clone();
        tasks.spawn(async move {
            match endpoint.accept(asked).await {
                Ok(stream) => drop(place.send(stream)),
                Err(why) => tracing::debug!(%why, "a stream was not accepted"),
            }
        });
        while tasks.try_join_next().is_some() {}
    }
}

//! Endpoints: opened on a device, connected, and extracted from.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use doorbell_am::{
    self as am, Bundle, CallError, CloseError, ConnectError, Event, Name, NameError, Unwelcome,
};
use doorbell_verbs::floor::watch_over;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::AbortHandle;

use super::peer::Peer;
use super::state::Shared;
use super::wire::{HELLO, VERSION, WELCOME, limits_of, limits_word};

/// An endpoint of streams: handlers of messages, and connections to others.
///
/// Clones are handles to the same endpoint. A program that is to end [closes](Self::close) the
/// endpoint, which waits until peers have what was sent to them. When the last handle is dropped
/// instead, or the runtime ends, messages that were ended go on to peers in the background, for [a
/// second](doorbell_am::EndpointConfig::linger) at most.
#[derive(Clone)]
pub struct Endpoint(Arc<Open>);

struct Open {
    endpoint: am::Endpoint,
    shared: Arc<Shared>,
    /// The tasks that watch the ends of peers.
    watches: Vec<AbortHandle>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.watches.iter().for_each(AbortHandle::abort);
        self.shared.close();
    }
}

/// The counts of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[non_exhaustive]
pub struct Statistics {
    /// The messages that have begun to come.
    pub begun: u64,
    /// The messages that were not taken to their ends: there was no handler, or the handler has
    /// failed or has returned before, or the sender has broken the rules.
    pub failed: u64,
    /// The packets, and words about messages, that break the rules.
    pub rejected: u64,
    /// The bytes that wait for handlers now, and 128 more for each packet.
    pub held: usize,
}

impl Endpoint {
    pub(super) fn new(endpoint: am::Endpoint, shared: Arc<Shared>) -> Self {
        let watches = vec![watch(&endpoint, shared.clone())];
        watch_over(&shared, endpoint.nic(), endpoint.bundle().runtime());
        let runner: Weak<dyn am::Runner> = Arc::downgrade(&(shared.clone() as _));
        shared.hub.work.begin(endpoint.bundle().run_beside(runner));
        Self(Arc::new(Open { endpoint, shared, watches }))
    }

    /// Returns the name by which others connect.
    pub fn name(&self) -> &Name {
        self.0.endpoint.name()
    }

    /// Connects to another endpoint.
    ///
    /// # Errors
    /// When the name is none, nobody answers by it in time, or who answers is no endpoint of
    /// streams.
    pub async fn connect<N>(&self, name: N) -> Result<Peer, ConnectError>
    where
        N: TryInto<Name, Error: Into<NameError>>,
    {
        let Open { endpoint, shared, .. } = &*self.0;
        let peer = endpoint.connect(name).await?;
        let name = || peer.to_string();
        let greeting = |why: CallError| match why {
            CallError::Undeliverable { .. } => {
                ConnectError::Unwelcome { name: name(), why: Unwelcome::OtherKind("streams") }
            }
            why => ConnectError::Lost { name: name(), why: Box::new(why) },
        };
        let welcome = peer.call(HELLO, [VERSION, limits_word(shared.limits)]).await;
        let welcome = welcome.map_err(greeting)?;
        let [there, limits] = welcome.arguments(WELCOME).map_err(greeting)?;
        if there != VERSION {
            let why = Unwelcome::OtherVersion { what: "streams", here: VERSION, there };
            return Err(ConnectError::Unwelcome { name: name(), why });
        }
        let closed = || ConnectError::Closed { name: name() };
        let link = shared.link(&peer).ok_or_else(closed)?;
        link.learn(limits_of(limits));
        Ok(Peer::new(&link))
    }

    /// Hands packets that have come on to handlers, until they have `limit` bytes, and runs the
    /// handlers until each waits for more. Returns how many bytes were handed on: fewer than the
    /// limit and a packet. If no packet has come, this waits for one.
    ///
    /// For [paced](super::EndpointBuilder::paced) endpoints. Others hand on everything by
    /// themselves, and zero bytes by this, at once.
    pub async fn extract(&self, limit: usize) -> usize {
        if let Some(pacer) = &self.0.shared.pacer {
            pacer.any().await;
        }
        self.try_extract(limit)
    }

    /// Hands packets on as [`extract`](Self::extract) does, or returns 0 if none has come.
    pub fn try_extract(&self, limit: usize) -> usize {
        let _runtime = self.0.endpoint.bundle().runtime().enter();
        self.0.shared.extract(limit)
    }

    /// Closes the endpoint, once peers have all that was sent to them before. Their handlers go on
    /// behind that. Messages that were begun and not ended are given up.
    ///
    /// # Errors
    /// When a peer ends the connection before it has everything, dies, or does not take everything
    /// within the [patience](doorbell_am::EndpointConfig::patience) of the endpoint of Active
    /// Messages below. The endpoint is closed all the same, and the error names the peers.
    ///
    /// If the future is dropped, the endpoint stays open, and takes no new peers.
    pub async fn close(&self) -> Result<(), CloseError> {
        self.0.shared.hub.flush();
        let closed = self.0.endpoint.close().await;
        self.0.shared.close();
        closed
    }

    /// Returns the counts of the endpoint.
    pub fn statistics(&self) -> Statistics {
        let counters = &self.0.shared.hub.counters;
        Statistics {
            begun: counters.begun.load(Ordering::Relaxed),
            failed: counters.failed.load(Ordering::Relaxed),
            rejected: counters.rejected.load(Ordering::Relaxed),
            held: counters.held.load(Ordering::Relaxed),
        }
    }

    /// Returns the NIC by which the endpoint sends and receives, for its statistics.
    pub fn nic(&self) -> &doorbell_verbs::Nic {
        self.0.endpoint.nic()
    }

    /// Waits until `condition` gives a value, and serves the endpoint meanwhile: handlers run in
    /// this task, which is faster than a wait for something that they wake. The condition must
    /// depend on what handlers do, and is tried behind them.
    pub async fn wait_until<T>(&self, mut condition: impl FnMut() -> Option<T>) -> T {
        let (bundle, shared) = (self.bundle(), &*self.0.shared);
        let work = &shared.hub.work;
        loop {
            // `None` if handlers can go on.
            let any = || if work.is_there() { Some(None) } else { condition().map(Some) };
            match bundle.wait_until_woken(any, |waker| work.arm(waker)).await {
                Some(found) => return found,
                None => _ = shared.run(),
            }
        }
    }

    /// Returns the bundle that serves the endpoint.
    pub fn bundle(&self) -> Bundle {
        self.0.endpoint.bundle()
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("name", &self.name().to_string()).finish_non_exhaustive()
    }
}

/// Ends the messages of peers whose connections have ended.
fn watch(endpoint: &am::Endpoint, shared: Arc<Shared>) -> AbortHandle {
    let mut events = endpoint.events();
    let watches = async move {
        loop {
            match events.recv().await {
                Ok(Event::Gone(peer, _)) => shared.gone(&peer),
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => shared.look_for_gone(),
                Err(RecvError::Closed) => return shared.close(),
            }
        }
    };
    endpoint.bundle().runtime().spawn(watches).abort_handle()
}

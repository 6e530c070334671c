//! Making, connecting and accepting queue pairs whose requests are futures.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use doorbell_core::nic::{self, Memory, ResourceError};

use super::config::QueuePairConfig;
use super::queue_pair::QueuePair;
use crate::connect::{Connection, Incoming, Kind, Unconnected, sealed};
use crate::dispatch::Dispatcher;
use crate::error::{ConnectError, PostReceiveError};
use crate::link::{Link, Private, Terms};
use crate::name::{Name, NameError};
use crate::nic::{Domain, Nic};

/// The part of a [`QueuePair`] that exists before it is connected.
pub struct Pending(pub(crate) Arc<Dispatcher>);

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").finish_non_exhaustive()
    }
}

impl sealed::Sealed for QueuePair {}

impl Kind for QueuePair {
    type Ends = Pending;

    fn join(Pending(pair): Pending, connection: Connection) -> Self {
        Self::new(pair, connection)
    }

    fn ends(Pending(pair): Pending) -> Box<dyn Any + Send> {
        pair.take_ends()
    }
}

impl Unconnected<QueuePair> {
    /// Posts a receive, before the peer can send any message.
    ///
    /// # Errors
    /// Returns an error as [`QueuePair::post_receive`] does.
    pub fn post_receive(&self, buffer: impl Into<Memory>) -> Result<(), PostReceiveError> {
        let Pending(pair) = self.ends.as_ref().expect("connecting consumes this value");
        pair.post_receive(buffer.into()).map(drop)
    }
}

impl Domain {
    /// Makes a queue pair whose requests are futures.
    ///
    /// # Errors
    /// Returns an error when there are as many queue pairs as configured.
    pub fn queue_pair(
        &self,
        config: &QueuePairConfig,
    ) -> Result<Unconnected<QueuePair>, ResourceError> {
        let core = |completions| nic::QueuePairConfig {
            send_depth: config.send_depth,
            receive_depth: config.receive_depth,
            shared_receives: config.shared_receives,
            ..nic::QueuePairConfig::new(self.id(), completions)
        };
        let &QueuePairConfig { rights, shared_receives, reads, rnr_retries, .. } = config;
        let terms = Terms::new(rights, shared_receives, reads, rnr_retries);
        self.nic().engine().with(|adapter| {
            let control = adapter.control();
            let ends = control.nic.queue_pair(&core(control.completions.0))?;
            let connection =
                Connection::of(self.nic().clone(), control, &ends, Link::new(ends.qpn, terms))?;
            let pair = Arc::new(Dispatcher::new(ends, config.send_depth));
            control.dispatchers.insert(connection.qpn(), pair.clone());
            Ok(Unconnected::new(Pending(pair), connection))
        })
    }

    /// Makes a queue pair, and connects it with the listener of a name, such as
    /// `udp:192.0.2.8:5000#2a` or `shm:job/1#2a`. To connect an existing queue pair, or to send
    /// private data, use [`Unconnected::connect`].
    ///
    /// # Errors
    /// Returns an error as [`Unconnected::connect`] does, and when there is no room for a queue
    /// pair.
    pub async fn connect(
        &self,
        name: impl TryInto<Name, Error: Into<NameError>>,
    ) -> Result<QueuePair, ConnectError> {
        let pair = self.queue_pair(&QueuePairConfig::default())?;
        pair.connect(name, &[]).await.map(|(pair, _)| pair)
    }
}

impl Nic {
    /// Makes a queue pair in a domain of its own, and [connects](Domain::connect) it with the
    /// listener of a name.
    ///
    /// # Errors
    /// Returns an error as [`Domain::connect`] does.
    pub async fn connect(
        &self,
        name: impl TryInto<Name, Error: Into<NameError>>,
    ) -> Result<QueuePair, ConnectError> {
        self.domain().connect(name).await
    }
}

impl Incoming {
    /// Accepts the request with a new queue pair of a domain. To accept it with an existing one,
    /// use [`Unconnected::accept`](crate::Unconnected::accept). As explained there, await each in a
    /// task of its own.
    ///
    /// # Errors
    /// Returns an error as [`Unconnected::accept`] does, and when there is no room for a queue
    /// pair.
    pub async fn accept(self, domain: &Domain) -> Result<QueuePair, ConnectError> {
        let pair = domain.queue_pair(&QueuePairConfig::default())?;
        pair.accept(self, &[]).await.map(|(pair, _): (QueuePair, Private)| pair)
    }
}

//! Queue pairs that are not connected yet.

use std::any::Any;
use std::fmt;

use doorbell_core::wire::Qpn;
use tracing::Instrument;
use tracing::field::Empty;

use super::connection::Connection;
use super::incoming::Incoming;
use crate::error::ConnectError;
use crate::link::Private;
use crate::name::{Name, NameError};

/// The kind of a queue pair, which it has once connected: a [`QueuePair`](crate::QueuePair) or
/// [`Queues`](crate::Queues).
pub trait Kind: Sized + sealed::Sealed {
    #[doc(hidden)]
    type Ends: Send + 'static;

    #[doc(hidden)]
    fn join(ends: Self::Ends, connection: Connection) -> Self;

    #[doc(hidden)]
    fn ends(ends: Self::Ends) -> Box<dyn Any + Send>;
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// A queue pair without a connection. It takes receives, and connecting consumes it.
pub struct Unconnected<K: Kind> {
    /// The program's ends of the queues, which are taken out when it is connected or dropped.
    pub(crate) ends: Option<K::Ends>,
    connection: Connection,
}

impl<K: Kind> fmt::Debug for Unconnected<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unconnected")
            .field("qpn", &self.qpn())
            .field("nic", self.connection.nic())
            .finish_non_exhaustive()
    }
}

impl<K: Kind> Unconnected<K> {
    pub(crate) fn new(ends: K::Ends, connection: Connection) -> Self {
        Self { ends: Some(ends), connection }
    }

    /// Returns the queue pair's number.
    pub fn qpn(&self) -> Qpn {
        self.connection.qpn()
    }

    /// Returns a handle to the connection that the queue pair will have. The handle stays valid
    /// when this is consumed.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn joined(mut self) -> K {
        let ends = self.ends.take().expect("connecting consumes this value");
        K::join(ends, self.connection.clone())
    }

    /// Asks the listener of a name for a connection, with up to 92 bytes of private data. Returns
    /// the queue pair, and the private data of the answer.
    ///
    /// The name is what the peer's [`Listener::name`](crate::Listener::name) returns: the
    /// [address](crate::Nic::address) of its NIC, and a service. On `udp` the address may name a
    /// host: `udp:node7:5000`, or `udp:node7` at port 4791. The system's resolver looks the name
    /// up, on a thread that may block. Of its results, the first address of the same family as this
    /// NIC's is used.
    ///
    /// A peer whose device takes only smaller packets than this NIC's is asked again with those.
    ///
    /// More than 76 bytes leave no room in the request to agree on extensions to the standard, and
    /// each NIC takes the other for a standard one: writes carry no metadata then, and more packets
    /// are acknowledged than need be.
    ///
    /// A program that uses `rdma_cm` listens to [a port](crate::ServiceId::from_tcp_port). A request for a
    /// port carries up to 56 bytes, and up to 40 beside an agreement on extensions. The program
    /// gets 56 bytes, with zeros behind those that were sent.
    ///
    /// # Errors
    /// Returns an error when the address can't be reached, or the host has none of this NIC's
    /// family; at once when the system of the peer's host says that nobody is at the port of `udp`,
    /// so that a program which waits for its peer to start asks again after a pause; when no answer
    /// comes for [`connect_timeout`](crate::Config::connect_timeout), or the program there does not
    /// decide for [`accept_timeout`](crate::Config::accept_timeout); when the peer refuses; or when
    /// the private data is too long. To give up earlier, drop the future: the peer is told.
    pub async fn connect(
        self,
        name: impl TryInto<Name, Error: Into<NameError>>,
        private: &[u8],
    ) -> Result<(K, Private), ConnectError> {
        self.connection.is_made_in_band()?;
        let name: Name = name.try_into().map_err(Into::into)?;
        let (to, service, qpn) = (name.address(), name.service(), self.qpn());
        let span = tracing::debug_span!("connect", to, %service, %qpn, peer = Empty);
        let told = self.connection.ask(to, service, private).instrument(span.clone()).await?;
        // The peer was not known when the span began.
        span.record("peer", self.connection.peer());
        Ok((self.joined(), told))
    }

    /// Accepts a peer's request for a connection, with up to 196 bytes of private data. More than
    /// 180 leave no room to agree on extensions to the standard, as with
    /// [`connect`](Self::connect). When this returns, the connection is established; the private
    /// data is that of the peer's confirmation.
    ///
    /// The peer has yet to confirm the connection. If the request was forged, no confirmation
    /// comes, and this waits for a while. A server that accepts one peer after the other in a
    /// single task makes the others wait meanwhile: accept each peer in a task of its own.
    ///
    /// # Errors
    /// Returns an error when the peer has given the request up, or has not confirmed it within
    /// [`connect_timeout`](crate::Config::connect_timeout); when the request had to make room for
    /// others; or when the private data is too long.
    pub async fn accept(
        self,
        incoming: Incoming,
        private: &[u8],
    ) -> Result<(K, Private), ConnectError> {
        self.connection.is_made_in_band()?;
        let (service, peer) = (incoming.request().service, incoming.request().qpn);
        let span = tracing::debug_span!("accept", %service, qpn = %self.qpn(), %peer);
        let told = self.connection.take_up(incoming, private).instrument(span).await?;
        Ok((self.joined(), told))
    }
}

impl<K: Kind> Drop for Unconnected<K> {
    fn drop(&mut self) {
        if let Some(ends) = self.ends.take() {
            self.connection.leave(K::ends(ends));
        }
    }
}

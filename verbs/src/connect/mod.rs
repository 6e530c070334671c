//! How queue pairs meet, and part.

mod exchange;
mod listener;

use std::any::Any;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use doorbell_core::cm::Request;
use doorbell_core::encap::Host;
use doorbell_core::nic::{Memory, QueuePairEnds, ReceiveRequest, Refused, Way};
use doorbell_core::wire::cm::{CmPort, InitiatorDepth, IpCm, IpPair, ResponderResources};
use doorbell_core::wire::{Gid, Qpn, ServiceId};
use doorbell_transports::{Address, GrantError};
use tokio::sync::oneshot;
use tracing::Instrument;
use tracing::field::{DisplayValue, Empty, display};

pub use exchange::Side;
pub(crate) use exchange::{Told, meet};
pub(crate) use listener::{Asked, Listeners, Listening, listen};
pub use listener::{Incoming, Listener, StopListening};

pub(crate) use crate::control::{Calls, established, replied};
pub use crate::link::Private;
pub(crate) use crate::nic::names::{find, find_own};

use crate::error::{ConnectError, PostReceiveError};
use crate::mapped::Mapped;
use crate::memory::{Registered, RemoteMemory};
use crate::nic::Nic;
use crate::pair::{Ending, Link, Pair, QueuePair, Stand};
use crate::progress::{Control, Errand, Granted, Leaving, granted_as, let_others_run};
use crate::queues::Queues;
use crate::waiting::attend;

/// A connection of a queue pair. Clones are handles to the same.
#[derive(Clone, Debug)]
pub struct Connection {
    nic: Nic,
    link: Arc<Link>,
}

/// Handles to the same connection are equal.
impl PartialEq for Connection {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.link, &other.link)
    }
}

impl Eq for Connection {}

impl Connection {
    pub(crate) fn new(nic: Nic, link: Arc<Link>) -> Self {
        Self { nic, link }
    }

    /// The queue pair's number.
    pub fn qpn(&self) -> Qpn {
        self.link.qpn
    }

    /// The NIC.
    pub fn nic(&self) -> &Nic {
        &self.nic
    }

    /// The address of the peer's NIC, and the port that it is spoken to at, once the connection is
    /// being made; none on a device whose peers have no such address, as on `shm`.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        self.link.peer_address()
    }

    /// Where it stands.
    pub fn stand(&self) -> Stand {
        self.link.stand()
    }

    /// Whether the queue pair takes no more receives from the queue that it shares, and the
    /// completions of all that it took are there: what
    /// [`AsyncEvent::LastReceive`](crate::AsyncEvent::LastReceive) tells of, without the number,
    /// which may be another's by then. Of one that shares none it is never so.
    pub fn had_last_receive(&self) -> bool {
        self.link.had_last_receive()
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Waits until it is over, and says why.
    pub async fn ended(&self) -> Ending {
        attend(self.nic.shared(), self.link.ended()).await
    }

    /// Demands a sign of life from the peer: if nothing comes by this connection within
    /// [`KeepAlive::busy`](crate::KeepAlive::busy), it is over, with
    /// [`Cause::PeerSilent`](crate::Cause::PeerSilent), as it is when the peer dies under a
    /// request.
    ///
    /// This is for a program that waits for the peer's *program*, for an answer to a message that
    /// was sent and acknowledged long ago: nothing is under way then, and that the peer has died
    /// would be noticed only after [`KeepAlive::idle`](crate::KeepAlive::idle). Who waits for long
    /// probes again and again, each half of `busy`, say. It is the peer's NIC that answers: a
    /// program that is slow but alive is not taken for dead.
    ///
    /// This returns at once, and may be called from anywhere. It has no effect on a connection that
    /// is over, not made yet, or without answers, nor where a probe is under way; nor on a device
    /// that tells itself when a peer has ended, as `shm` does.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use doorbell::verbs::{Buf, QueuePair};
    /// # async fn asks(pair: QueuePair) -> Result<(), Box<dyn std::error::Error>> {
    /// pair.send(Buf::from(b"how much is it?".to_vec())).await?;
    /// let mut answer = std::pin::pin!(pair.recv(Buf::with_capacity(64)));
    /// let price = loop {
    ///     match tokio::time::timeout(Duration::from_millis(500), &mut answer).await {
    ///         // If the peer has died, this is the error that says so.
    ///         Ok(answered) => break answered?,
    ///         Err(_) => pair.connection().probe(),
    ///     }
    /// };
    /// # Ok(())
    /// # }
    /// ```
    #[cold]
    pub fn probe(&self) {
        if self.link.ask_probe() {
            self.nic.shared().run(Errand::Probe(self.link.clone()));
        }
    }

    /// Ends it, with up to 220 bytes for the peer, and waits until the peer knows, or does not
    /// answer. What is posted and not done is flushed on both sides: await before what is to be
    /// carried out. One that is over says again why. Of one whose terms were
    /// [exchanged](Unconnected::exchange) elsewhere, the peer is to be told there: by the end of a
    /// TCP connection that was kept, say.
    ///
    /// # Errors
    /// When the bytes are too many, or it is not connected yet: it stays as it was then. And when
    /// somebody else is just ending it.
    pub async fn disconnect(&self, private: &[u8]) -> Result<Ending, ConnectError> {
        let span = tracing::debug_span!("disconnect", qpn = %self.qpn(), peer = self.peer());
        self.parts(private).instrument(span).await
    }

    async fn parts(&self, private: &[u8]) -> Result<Ending, ConnectError> {
        self.nic.shared().with(|machine| {
            machine.catch_up();
            machine.control().disconnect(&self.link, private)
        })?;
        Ok(self.ended().await)
    }

    /// The peer's queue pair, for spans, where it is known.
    fn peer(&self) -> Option<DisplayValue<Qpn>> {
        self.link.ways(|ways| ways.peer).map(display)
    }

    /// Lets the peer [map](Self::map) memory that was [registered to
    /// be](crate::Domain::register_shared): it then reads and writes it as its own, in nanoseconds.
    /// It can't be taken back.
    ///
    /// It is granted to the peer's program, and not to its queue pair alone: whoever has mapped
    /// memory needs no key to change it, by other connections to this NIC neither, of whatever
    /// domain.
    ///
    /// # Errors
    /// When the memory was not registered so, or with another NIC, or peers may not write there; or
    /// when the peer is not on this machine.
    pub fn grant(&self, memory: &Registered) -> Result<(), GrantError> {
        let device = self.nic.shared().capabilities.name;
        let unsupported = GrantError::Unsupported { device };
        let Some(shared) = memory.shared(&self.nic)? else { return Err(unsupported) };
        let Some(path) = self.link.ways(|ways| ways.path.as_ref().map(|&(_, path)| path)) else {
            return Err(unsupported);
        };
        let tag = granted_as(&memory.remote());
        self.nic.shared().with(|machine| machine.grant(path, tag, shared))
    }

    /// Maps memory of the peer's: waits until the peer has [granted](Self::grant) what this names,
    /// or a part of, for as long as that takes: who can't be sure that it will limits that, as by
    /// [`timeout`](tokio::time::timeout). What is [`Mapped`] is written without a packet, by queue
    /// pairs, too.
    ///
    /// # Errors
    /// When the connection ends before.
    pub async fn map(&self, memory: RemoteMemory) -> Result<Mapped, Ending> {
        let Some(path) = self.link.ways(|ways| ways.path.as_ref().map(|&(_, path)| path)) else {
            return Err(self.ended().await);
        };
        let (nic, rkey) = (&self.nic, memory.rkey());
        let take = |control: &mut Control| {
            control.grants.take(path, rkey).map(|Granted { base, region, .. }| {
                let id = control.nic.map(path, rkey, base, region.clone());
                Mapped::new(nic.clone(), id, region)
            })
        };
        loop {
            let mut woken = match nic.shared().with(|machine| take(machine.control())) {
                Ok(mapped) => return Ok(mapped),
                Err(woken) => woken,
            };
            attend(nic.shared(), async {
                tokio::select! {
                    biased;
                    // It has arrived, or was pushed out by others, or somebody else took it.
                    _ = &mut woken => Ok(()),
                    ending = self.link.ended() => Err(ending),
                }
            })
            .await?;
        }
    }

    /// Lets go of the queue pair, whose queues' ends go along.
    pub(crate) fn leave(&self, ends: Box<dyn Any + Send>) {
        let leaving = Leaving { link: self.link.clone(), ends };
        self.nic.shared().run(Errand::Leave(leaving));
    }
}

/// What a queue pair is when it is connected: a [`QueuePair`] or [`Queues`].
pub trait Kind: Sized + sealed::Sealed {
    #[doc(hidden)]
    type Ends: Send + 'static;

    #[doc(hidden)]
    fn join(ends: Self::Ends, connection: Connection) -> Self;

    #[doc(hidden)]
    fn ends(ends: Self::Ends) -> Box<dyn Any + Send>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for crate::pair::QueuePair {}
    impl Sealed for crate::queues::Queues {}
}

/// What a [`QueuePair`] and its futures will share.
pub struct Pending(pub(crate) Arc<Pair>);

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").finish_non_exhaustive()
    }
}

impl Kind for QueuePair {
    type Ends = Pending;

    fn join(Pending(pair): Pending, connection: Connection) -> Self {
        Self::new(pair, connection)
    }

    fn ends(Pending(pair): Pending) -> Box<dyn Any + Send> {
        pair.take_ends()
    }
}

impl Kind for Queues {
    type Ends = QueuePairEnds;

    fn join(ends: QueuePairEnds, connection: Connection) -> Self {
        Self::new(ends, connection)
    }

    fn ends(ends: QueuePairEnds) -> Box<dyn Any + Send> {
        Box::new(ends)
    }
}

/// A queue pair that is not connected: it takes receives, and is consumed by being connected.
pub struct Unconnected<K: Kind> {
    /// There until it is connected, or dropped.
    ends: Option<K::Ends>,
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

    /// The queue pair's number.
    pub fn qpn(&self) -> Qpn {
        self.connection.qpn()
    }

    /// The connection that it will have: a handle, which stays where it is consumed.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    fn joined(mut self) -> K {
        let ends = self.ends.take().expect("it was not connected before");
        K::join(ends, self.connection.clone())
    }

    /// Asks whoever listens to a service at an address for a connection, with up to 92 bytes for
    /// it. What it answers comes with the queue pair.
    ///
    /// The address is what the peer's [`Nic::address`] tells, as text. On `udp` it may name a host:
    /// `udp:node7:5000`, or `udp:node7` at port 4791. The system's resolver looks the name up, on a
    /// thread that may block, and of what it finds the first address is taken that is of the same
    /// family as this NIC's.
    ///
    /// A peer whose device takes only smaller packets than this NIC's is asked again with those.
    ///
    /// With more than 76 bytes there is no room left in the request to agree on what two NICs of
    /// this kind can do beyond the standard, and each takes the other for a standard one: writes
    /// carry no metadata then, and more is acknowledged than need be.
    ///
    /// A program that uses `rdma_cm` listens to [a port](ServiceId::from_tcp_port). A request for a
    /// port carries up to 56 bytes, and up to 40 beside an agreement; the program gets 56, of which
    /// those that are not said are zero.
    ///
    /// # Errors
    /// When the address can't be reached, or the host has none of this NIC's family; when nothing
    /// comes back from there for [`connect_timeout`](crate::Config::connect_timeout), or the
    /// program there does not decide for [`accept_timeout`](crate::Config::accept_timeout); when
    /// the peer refuses, or there are more bytes. To give up earlier, drop the future: the peer is
    /// told.
    pub async fn connect(
        self,
        to: &str,
        service: ServiceId,
        private: &[u8],
    ) -> Result<(K, Private), ConnectError> {
        self.connection.link.makes_in_band()?;
        let qpn = self.qpn();
        let span = tracing::debug_span!("connect", to, %service, %qpn, peer = Empty);
        let told = self.connection.ask(to, service, private).instrument(span.clone()).await?;
        // Of whom nothing was known when it began.
        span.record("peer", self.connection.peer());
        Ok((self.joined(), told))
    }

    /// Takes up a connection that a peer asks for, with up to 196 bytes for it; more than 180 leave
    /// no room to agree on what goes beyond the standard, as with [`connect`](Self::connect). It
    /// stands when this returns, with what the peer said last.
    ///
    /// The peer has yet to confirm it, and one that does not, as if the request came from a
    /// stranger who is not where it says, is waited for for a while. A server that takes up one
    /// peer after the other in a single task keeps the others waiting meanwhile: have each awaited
    /// in a task of its own.
    ///
    /// # Errors
    /// When the peer has given it up, or has not confirmed it within
    /// [`connect_timeout`](crate::Config::connect_timeout); when so many peers ask at a time that
    /// it had to make room for others; or when there are more bytes.
    pub async fn accept(
        self,
        incoming: Incoming,
        private: &[u8],
    ) -> Result<(K, Private), ConnectError> {
        self.connection.link.makes_in_band()?;
        let (service, peer) = (incoming.request().service, incoming.request().qpn);
        let span = tracing::debug_span!("accept", %service, qpn = %self.qpn(), %peer);
        let told = self.connection.take_up(incoming, private).instrument(span).await?;
        Ok((self.joined(), told))
    }
}

/// Of the connection alone, for queues are not shared between threads while this waits.
impl Connection {
    async fn ask(
        &self,
        to: &str,
        service: ServiceId,
        private: &[u8],
    ) -> Result<Private, ConnectError> {
        let (shared, link) = (self.nic.shared(), &self.link);
        let address = find(&self.nic, to).await?;
        let way = reach(&self.nic, &address).await?;
        let peer = as_asked(to, &address);
        let whom = Whom { peer: peer.clone(), service };
        let answered = shared.with(|machine| {
            machine.catch_up();
            machine.control().call(link, way, whom, private)
        })?;
        tracing::debug!("connects");
        let given_up = |_| Err(ConnectError::GivenUp { peer, service });
        attend(shared, answered).await.unwrap_or_else(given_up)
    }

    async fn take_up(&self, incoming: Incoming, private: &[u8]) -> Result<Private, ConnectError> {
        let (shared, asked) = (self.nic.shared(), incoming.decide());
        let service = asked.request.service;
        let peer = peer_of(&shared.address, asked.way.way());
        let answered = shared.with(|machine| {
            machine.catch_up();
            machine.control().accept(&self.link, asked, peer.clone(), private)
        })?;
        let given_up = |_| Err(ConnectError::GivenUp { peer, service });
        attend(shared, answered).await.unwrap_or_else(given_up)
    }
}

impl Unconnected<QueuePair> {
    /// Posts a buffer for a message to come, before the peer can send any.
    ///
    /// # Errors
    /// As [`QueuePair::post_receive`].
    pub fn post_receive(&self, buffer: impl Into<Memory>) -> Result<(), PostReceiveError> {
        let Pending(pair) = self.ends.as_ref().expect("it was not connected before");
        pair.post_receive(buffer.into()).map(drop)
    }
}

impl Unconnected<Queues> {
    /// Posts a place for a message to come, before the peer can send any.
    ///
    /// # Errors
    /// As [`ReceiveQueue::post`](crate::ReceiveQueue::post).
    pub fn post_receive(
        &mut self,
        id: u64,
        memory: impl Into<Memory>,
    ) -> Result<(), Refused<ReceiveRequest>> {
        let ends = self.ends.as_mut().expect("it was not connected before");
        ends.receive.post(ReceiveRequest { id, memory: memory.into() })
    }
}

impl<K: Kind> Drop for Unconnected<K> {
    fn drop(&mut self) {
        if let Some(ends) = self.ends.take() {
            self.connection.leave(K::ends(ends));
        }
    }
}

/// The way to a peer's device, which may have to be looked for.
pub(crate) async fn reach(nic: &Nic, to: &Address) -> Result<Way, ConnectError> {
    loop {
        let shared = nic.shared();
        if let Some(way) = shared.with(|machine| machine.reach(to))? {
            return Ok(way);
        }
        // A device that looks for a neighbour says so for no longer than it looks.
        if !shared.turn() {
            let mut once = false;
            std::future::poll_fn(|context| match std::mem::replace(&mut once, true) {
                true => std::task::Poll::Ready(()),
                false => let_others_run(context),
            })
            .await;
        }
    }
}

/// The address of a peer that was asked for by `text`, for errors: with the address that was found,
/// if the text names a host.
fn as_asked(text: &str, address: &Address) -> String {
    match text.parse::<Address>() {
        Ok(_) => text.to_owned(),
        Err(_) => format!("{address} ({text})"),
    }
}

/// With whom a connection is to be, for errors: the address, and the service that is asked for.
pub(crate) struct Whom {
    pub peer: String,
    pub service: ServiceId,
}

/// The address of the peer at the end of a way that leads there, as text, on a device of the same
/// kind as the one of this address.
fn peer_of(own: &Address, way: &Way) -> String {
    let outer = match way {
        Way::Link(link) => return format!("the end of link {}", link.0),
        Way::Network(outer) => outer,
    };
    let (_, Host { gid, port }) = outer.hosts();
    let ip = gid.to_ipv4().map_or(IpAddr::V6(gid.into()), IpAddr::V4);
    match own {
        Address::Udp(_) => Address::Udp(SocketAddr::new(ip, port.0)).to_string(),
        Address::Packet(_) => Address::Packet(outer.ethernet().destination).to_string(),
        _ => Address::PacketV2(ip).to_string(),
    }
}

/// The addresses and the port that stand in a request for a port, as `rdma_cm` tells them.
fn addressing(qpn: Qpn, (from, to): (Gid, Gid)) -> IpCm {
    let addresses = match (from.to_ipv4(), to.to_ipv4()) {
        (Some(source), Some(destination)) => IpPair::V4 { source, destination },
        _ => IpPair::V6 { source: from.into(), destination: to.into() },
    };
    // Nobody answers to it: it only tells requesters apart.
    IpCm { source_port: CmPort(0xC000 | qpn.get() as u16), addresses }
}

/// What is proposed for a connection.
pub(crate) fn proposal(
    link: &Link,
    way: &Way,
    service: ServiceId,
    psn: doorbell_core::wire::Psn,
) -> Request {
    let (from, to) = match way {
        Way::Network(outer) => outer.gids(),
        Way::Link(_) => (Gid::default(), Gid::default()),
    };
    Request {
        responder_resources: ResponderResources(link.terms.reads),
        initiator_depth: InitiatorDepth(link.terms.reads),
        flow_control: !link.terms.shares_receives,
        srq: link.terms.shares_receives,
        rnr_retry_count: link.terms.rnr_retries,
        addressing: service.ip_port().map(|_| addressing(link.qpn, (from, to))),
        ..Request::new(service, link.qpn, psn, from, to)
    }
}

/// Whoever waits for a connection.
pub(crate) type Answer = oneshot::Sender<Result<Private, ConnectError>>;
pub(crate) type Answered = oneshot::Receiver<Result<Private, ConnectError>>;

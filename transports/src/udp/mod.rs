//! RoCE v2 through ordinary UDP sockets: no privilege, any network that IP crosses, several
//! processes a machine.
//!
//! A device is an address and a port. At RoCE's own port, 4791, it speaks to standard peers (the
//! kernel's driver, adapters) and to others of its kind there; at any other port, to others of its
//! kind at such ports.
//!
//! One socket listens. Peers that are sent to often have one each beside it, connected to them: the
//! kernel finds their way once, and gives their datagrams to that socket. Peers with connections
//! have precedence over those that are only sent datagrams, and nobody gets such a socket by being
//! answered. Nobody else can take the port; in the microsecond in which such a socket is bound,
//! only a process of the same user.
//!
//! What the kernel does not send to one peer is lost for that peer alone. A frame for which the
//! listener has no room, since much of what it sent waits for hosts that do not answer, waits
//! aside: peers with sockets of their own go on.
//!
//! A frame is as long as the interface lets it be, whatever ICMP messages say of links further on:
//! they are logged, and change nothing, for anybody can forge them. Both ends agree on the size of
//! packets when they connect.
//!
//! Runs leave and arrive whole where the system has segmentation offload for UDP, and it has
//! whenever the interface sums checksums. Where sending one is refused, to that peer goes a frame a
//! packet from then on.
//!
//! Where the system of a peer's host says that the peer's port is closed, since the process there
//! has ended, the NIC [hears](Inbox::port_closed) of that and asks the peer at once; or the port is
//! that of a peer which is asked for a connection, and the connection fails at once.
//!
//! A device of a client need not hear anybody but those whom it has asked:
//! [`Udp::without_strangers`]. [`Udp::own_address_towards`] tells at which of this machine's
//! addresses it is to be opened for one of them.
//!
//! # Wildcards
//! A device has one address, for every packet's ICRC covers the addresses that it is from and for,
//! and peers know the NIC by one. So a device that is opened at `0.0.0.0` or `[::]` is bound to one
//! address of that family, the one by which other machines come: which the default route leaves
//! from; without such a route the first of an interface that is up, that is neither loopback's nor
//! link-local; or else loopback's. [`Device::address`] tells which. Peers on the same machine come
//! by that one, too: at 127.0.0.1 or at addresses of other interfaces nobody answers, unless other
//! devices are opened there. `[::]` is IPv6 alone.
//!
//! # Bounds
//! [`MOST_PEERS`] connected sockets, with 8 MiB each of what has arrived and 2 MiB of what is to
//! leave, as the kernel counts, if it lets this process ask for so much (`net.core.rmem_max`,
//! `wmem_max`). Of senders without one, the last few hundred are remembered. 64 messages that ports
//! are closed wait to be told. A device without strangers keeps each address that it has reached.

mod headers;
mod often;
mod own;
mod peer;
mod receiving;
mod sender;
mod sending;

use std::io;
use std::iter;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use doorbell_core::encap::{Full, Opener, Path, PathId, Run};
use doorbell_core::nic::{Inbox, Outbox, Way};
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::{Headers, PathMtu, UdpPort};

use self::often::{Often, Traffic};
use self::peer::{ClosedPorts, Peer};
use self::sender::{REMEMBERED, Sender, Senders};
use self::sending::Waiting;
use crate::address::{Address, ReachError};
use crate::burst::Burst;
use crate::clock::Clock;
use crate::device::{Capabilities, Device, Statistics, Trouble};
use crate::host_name::HostName;
use crate::open::OpenError;
use crate::raw::{LONGEST, Link};
use crate::sys::interface;
use crate::sys::sentry::Sentry;
use crate::sys::udp::{Name, RECEIVE_BUFFER, SEND_BUFFER, UdpSocket};
use crate::sys::watch::Watch;

/// What it is called.
const NAME: &str = "udp";

/// How many peers have sockets of their own at once.
pub const MOST_PEERS: usize = 64;

/// The socket that all share, among those that are looked at; a peer's is its index and one.
const LISTENER: usize = 0;

/// A UDP socket spoken to by RoCE v2.
pub struct Udp {
    own: SocketAddr,
    listener: UdpSocket,
    senders: Senders,
    /// The most packets of a frame by the listener.
    run_most: u32,
    peers: Vec<Peer>,
    /// Whether their sockets can be bound to all addresses, and then have ours.
    anywhere: bool,
    /// One to try ways with.
    scout: UdpSocket,
    often: Often,
    /// Whether peers can have sockets of their own: over IPv4, only if identifications are shown.
    connects: bool,
    /// Who is to have one, and for what.
    wanted: Option<(SocketAddr, Traffic)>,
    /// Whether a peer's identification must still be learnt.
    unsettled: bool,
    /// Whether the log says already that a router calls the way to some peer narrow.
    narrow: bool,

    /// The frame being filled, and where it will go.
    frame: Box<[u8]>,
    headers_len: usize,
    run: Option<Run>,
    /// Whether it was to leave by a peer's own socket, and there was no room.
    stuck: bool,
    /// A frame for which there was no room at the listener, and memory for another when there is
    /// none.
    waiting: Option<Waiting>,
    spare: Box<[u8]>,
    /// The sockets at which room is waited for: a peer's, the listener.
    waits_for_room: [Option<usize>; 2],
    target: Target,
    closed: ClosedPorts,
    /// To whom the system does not send runs.
    uncut: Vec<SocketAddr>,

    buffer: Box<[u8]>,
    opener: Opener,
    burst: Burst,
    turns: Turns,
    watch: Watch,
    sentry: Sentry,

    address: Address,
    capabilities: Capabilities,
    statistics: Statistics,
    clock: Clock,
    link: Link,
}

/// Where frames go.
struct Target {
    to: SocketAddr,
    name: Name,
    /// The peer whose socket takes them there, if it is not the listener's.
    peer: Option<usize>,
    /// How many packets a frame may have by the listener.
    run: u32,
}

/// Which socket is looked at, and when the others are.
#[derive(Default)]
struct Turns {
    /// The one that is looked at: it is watched only while somebody sleeps. The others always are.
    hot: usize,
    hot_is_watched: bool,
    /// Whether somebody sleeps, or is about to: all are watched until that is over.
    asleep: bool,
    /// How often it was looked at in vain.
    idle: u32,
    /// How often it was looked at since the others were, and how often it may be.
    looks: u32,
    most: u32,
}

impl Udp {
    /// Opens a socket at an address of this machine's, or at the one that a
    /// [wildcard](self#wildcards) stands for. If the port is 0, the system chooses one.
    ///
    /// # Errors
    /// When no interface here has the address, or the interface is down or its MTU too small; when
    /// somebody has the port; when there is no address that the wildcard could stand for.
    pub fn open(own: SocketAddr) -> Result<Self, OpenError> {
        let own = if own.ip().is_unspecified() { own::behind_wildcard(own)? } else { own };
        let system = |source| OpenError::System { device: NAME, what: format!("at {own}"), source };
        let listener = UdpSocket::open(own).map_err(system)?;
        let nobodys = || {
            let (address, there) = (own.ip(), interface::addresses());
            OpenError::NoAddress { device: NAME, address, there }
        };
        let holder = interface::holder(own.ip()).map_err(system)?.ok_or_else(nobodys)?;
        let (link, found) = Link::of_any_kind(NAME, &holder)?;
        let own = on_interface(own, found.index);
        listener.bind(own).map_err(|source| refused(own, source))?;
        Self::over(listener, link).map_err(system)
    }

    /// Opens a socket at an address of this machine's that the resolver has for a host name. If
    /// that has several of this machine's, those that are not loopback's go first, and among them
    /// those of IPv4. This blocks the thread while the name is looked up.
    ///
    /// # Errors
    /// When the resolver does not know the name, or none of its addresses is this machine's; and as
    /// [`open`](Self::open).
    pub fn open_named(host: &HostName) -> Result<Self, OpenError> {
        Self::open(Self::own_address(host)?)
    }

    /// The address at which [`open_named`](Self::open_named) opens a socket, for programs that look
    /// names up on threads of their own. This blocks the thread.
    ///
    /// # Errors
    /// When the resolver does not know the name, or none of its addresses is this machine's.
    pub fn own_address(host: &HostName) -> Result<SocketAddr, OpenError> {
        own::behind_name(host)
    }

    /// The address of this machine's from which the system's route leads to a peer: at a loopback
    /// address for a peer at one. With port 0, for the system to choose one; or with RoCE's own
    /// port, if that is the peer's, which answers to no other; at a loopback address of IPv4, it is
    /// that of an address of the loopback network which is drawn at random. Nothing is sent.
    ///
    /// # Errors
    /// When no route leads to the peer, or the address can be no peer's.
    pub fn own_address_towards(peer: SocketAddr) -> Result<SocketAddr, ReachError> {
        own::towards(peer)
    }

    /// The same device, but that it takes packets only from addresses that it has
    /// [reached](Device::reach) itself. Those of others are dropped before anything of them is
    /// read, and [counted](Statistics::strangers). At RoCE's own port, to which standard peers send
    /// from any, all ports of a host that was reached are its; elsewhere only the one that was
    /// reached.
    #[must_use]
    pub fn without_strangers(mut self) -> Self {
        self.senders.keep_out_strangers();
        self
    }

    fn over(listener: UdpSocket, link: Link) -> io::Result<Self> {
        let own = listener.local()?;
        let scout = UdpSocket::open(own)?;
        scout.bind(scoped(SocketAddr::new(own.ip(), 0), own))?;
        let run_most = most_segments(&scout)?;
        if run_most > 1 {
            listener.put_together(true)?;
        }
        Ok(Self {
            own,
            senders: Senders::new(own),
            run_most,
            peers: Vec::with_capacity(MOST_PEERS),
            scout,
            anywhere: own.is_ipv6(),
            often: Often::default(),
            connects: true,
            wanted: None,
            unsettled: false,
            frame: vec![0; LONGEST].into(),
            run: None,
            stuck: false,
            waiting: None,
            spare: vec![0; LONGEST].into(),
            waits_for_room: [None; 2],
            headers_len: headers::len(own),
            target: Target { to: own, name: Name::of(own), peer: None, run: run_most },
            closed: ClosedPorts::default(),
            uncut: Vec::new(),
            narrow: false,
            buffer: vec![0; LONGEST].into(),
            opener: Opener::default(),
            burst: Burst::new(),
            turns: Turns::default(),
            watch: Watch::new()?,
            sentry: Sentry::new()?,
            address: Address::Udp(own),
            capabilities: Capabilities {
                name: NAME,
                mtu: link.mtu,
                run: run_most,
                segmentation: run_most > 1 && link.segments(),
                checksum: true,
                lossless: false,
                mapping: false,
                simulated: false,
                memory: (MOST_PEERS + 2) * 2 * (RECEIVE_BUFFER + SEND_BUFFER)
                    + 3 * LONGEST
                    + REMEMBERED * size_of::<Option<(SocketAddr, Sender)>>(),
            },
            statistics: Statistics::default(),
            clock: Clock::new(),
            link,
            listener,
        })
    }

    /// The same device, but that it sends a frame a packet, and has none put together for it: to
    /// compare.
    #[must_use]
    pub fn without_offload(mut self) -> Self {
        (self.run_most, self.capabilities.run, self.capabilities.segmentation) = (1, 1, false);
        self.target.run = 1;
        // What could be switched on can be switched off.
        let _ = self.listener.put_together(false);
        self
    }

    /// How many peers have sockets of their own at this moment.
    pub fn connected(&self) -> usize {
        self.peers.len()
    }

    /// The addresses of the peers that have sockets of their own at this moment.
    pub fn peers(&self) -> impl Iterator<Item = SocketAddr> {
        self.peers.iter().map(|peer| peer.address)
    }
}

/// What is wrong with an address that can't be had.
fn refused(own: SocketAddr, source: io::Error) -> OpenError {
    match source.kind() {
        io::ErrorKind::AddrInUse => OpenError::Taken {
            device: NAME,
            what: own.to_string(),
            by: None,
            source,
            advice: "name another port, or port 0, for the system to choose one",
        },
        io::ErrorKind::PermissionDenied => OpenError::Privilege {
            device: NAME,
            what: own.to_string(),
            source,
            advice: "ports above 1023 are everybody's",
        },
        _ => OpenError::System { device: NAME, what: format!("at {own}"), source },
    }
}

/// An address with the interface that has it, where one is needed and none was named.
fn on_interface(own: SocketAddr, index: u32) -> SocketAddr {
    match own {
        SocketAddr::V6(v6) if v6.scope_id() == 0 => {
            headers::scoped(*v6.ip(), v6.port(), index).into()
        }
        _ => own,
    }
}

/// How many packets the system cuts a frame into: a socket sends itself some.
fn most_segments(scout: &UdpSocket) -> io::Result<u32> {
    let itself = Name::of(scout.local()?);
    let cuts = |most: &u32| scout.send_run(&[0; 128][..*most as usize], Some(1), Some(&itself));
    Ok([128, 64].into_iter().find(|most| cuts(most).is_ok()).unwrap_or(1))
}

/// What is wrong with a peer's address to which the system knows no way from `own`.
fn no_way(peer: &Address, (own, to): (SocketAddr, SocketAddr), source: io::Error) -> ReachError {
    let link_local = |address: SocketAddr| match address {
        SocketAddr::V6(v6) => v6.ip().is_unicast_link_local(),
        SocketAddr::V4(_) => false,
    };
    let why = match source.kind() {
        io::ErrorKind::PermissionDenied => {
            "it is the broadcast address of a network here, or a route or a filter here forbids it"
        }
        io::ErrorKind::InvalidInput if own.ip().is_loopback() && !to.ip().is_loopback() => {
            "from a loopback address only this machine is reached; open the device at the address \
             of an interface"
        }
        io::ErrorKind::InvalidInput if link_local(to) && !link_local(own) => {
            "a link-local address means nothing without an interface; open the device at a \
             link-local address of the interface that the peer is behind"
        }
        _ => return ReachError::System { address: peer.clone(), source },
    };
    ReachError::NoPeers { address: peer.clone(), why }
}

/// An address with the scope of our own, where it has one.
fn scoped(address: SocketAddr, own: SocketAddr) -> SocketAddr {
    match (address, own) {
        (SocketAddr::V6(v6), SocketAddr::V6(own)) => {
            headers::scoped(*v6.ip(), v6.port(), own.scope_id()).into()
        }
        _ => address,
    }
}

impl Outbox for Udp {
    #[inline]
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        self.encode(path, headers, payload).map(|()| 0)
    }

    #[inline]
    fn flush(&mut self) {
        self.send();
        if self.waiting.is_some() {
            self.send_waiting();
        }
    }

    fn delivered(&mut self, _: PathId) -> u64 {
        0
    }
}

impl Device for Udp {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    #[inline]
    fn receive(&mut self, inbox: &mut impl Inbox) -> usize {
        self.take_turn(inbox)
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn address(&self) -> &Address {
        &self.address
    }

    fn reach(&mut self, peer: &Address) -> Result<Option<Way>, ReachError> {
        let &Address::Udp(to) = peer else {
            let (address, takes) = (peer.clone(), "udp:IP:PORT");
            return Err(ReachError::Kind { address, device: NAME, takes });
        };
        let to = scoped(to, self.own);
        if let Some(why) = headers::not_a_peers(to) {
            return Err(ReachError::NoPeers { address: peer.clone(), why });
        }
        let Some(outer) = headers::between(self.own, to) else {
            let takes = if self.own.is_ipv4() { "udp:IPv4:PORT" } else { "udp:[IPv6]:PORT" };
            return Err(ReachError::Kind { address: peer.clone(), device: NAME, takes });
        };
        let (own, roce) = (self.own.port(), UdpPort::ROCE_V2.0);
        if (own == roce) != (to.port() == roce) {
            return Err(ReachError::Port { address: peer.clone(), own });
        }
        self.scout.connect(to).map_err(|why| no_way(peer, (self.own, to), why))?;
        let beside = PathMtu::LEAST_INTERFACE - PathMtu::Mtu256.bytes();
        let least = self.capabilities.mtu.bytes() + beside;
        match self.scout.narrower_than(least) {
            Some(mtu) => {
                Err(ReachError::Narrow { address: peer.clone(), mtu, least: least as u32 })
            }
            None => {
                self.senders.reached(to);
                Ok(Some(Way::Network(outer)))
            }
        }
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.sentry.readiness()
    }

    fn arm(&mut self, until: Option<Time>) -> io::Result<()> {
        self.statistics.sleeps += 1;
        self.watch_all()?;
        let after = until.map(|until| until.since(self.now()));
        self.sentry.arm(iter::once(self.watch.as_raw_fd()), after)
    }

    fn disarm(&mut self) {
        self.sentry.disarm(iter::once(self.watch.as_raw_fd()));
        self.wait_for_room_no_more();
        self.turns.asleep = false;
    }

    fn trouble(&mut self) -> Option<Trouble> {
        self.link.trouble(self.listener.as_fd())
    }

    fn statistics(&mut self) -> Statistics {
        let peers = self.peers.iter().map(|peer| peer.socket.overrun()).sum::<u64>();
        self.statistics.overrun = self.listener.overrun() + peers;
        self.statistics
    }
}

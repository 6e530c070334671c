//! The parts of a device, and how they are at first.

use std::io;
use std::net::SocketAddr;

use doorbell_core::encap::{Opener, Run, Sealed};

use super::error::NAME;
use super::headers;
use super::peer::{ClosedPorts, Peer};
use super::sender::{REMEMBERED, Sender, Senders};
use super::traffic::{FrequentPeers, Traffic};
use crate::address::Address;
use crate::burst::Burst;
use crate::clock::Clock;
use crate::device::{Capabilities, Statistics};
use crate::raw::{BoundInterface, LONGEST};
use crate::stamp::WallClock;
use crate::sys::epoll::Epoll;
use crate::sys::epoll_timer::EpollTimer;
use crate::sys::udp::{EncodedAddress, RECEIVE_BUFFER, SEND_BUFFER, UdpSocket};

/// The most peers that have sockets of their own at once.
pub const MOST_PEERS: usize = 64;

/// The number of the listener among the sockets of a device. The number of a peer's socket is one
/// more than the peer's place.
pub(super) const LISTENER: usize = 0;

/// A UDP socket spoken to by RoCE v2.
pub struct Udp {
    pub(super) own: SocketAddr,
    pub(super) listener: UdpSocket,
    pub(super) senders: Senders,
    /// The most packets of a frame that leaves by the listener.
    pub(super) run_most: u32,
    pub(super) peers: Vec<Peer>,
    /// True if peers' sockets can be bound to all addresses, and have this device's address once
    /// they are connected.
    pub(super) anywhere: bool,
    /// A socket that is connected to a peer to find out whether a way leads there.
    pub(super) scout: UdpSocket,
    pub(super) frequent: FrequentPeers,
    /// True if peers can have sockets of their own: over IPv4, only if the system shows
    /// identifications.
    pub(super) connects: bool,
    /// The peer that is to get a socket of its own next, and the traffic that it is for.
    pub(super) wanted: Option<(SocketAddr, Traffic)>,
    /// True if some peer's identification must still be learnt.
    pub(super) unsettled: bool,
    /// True once the log says that a router calls the way to some peer narrow.
    pub(super) narrow: bool,

    /// Memory for the frame that is being filled.
    pub(super) frame: Box<[u8]>,
    pub(super) headers_len: usize,
    pub(super) run: Option<Run>,
    /// The traffic classes of the frame that is being filled, and of what the listener sends.
    pub(super) class: u8,
    pub(super) listeners_class: u8,
    /// True if the frame was to leave by a peer's own socket, and there was no room.
    pub(super) stuck: bool,
    /// A frame for which there was no room at the listener.
    pub(super) waiting: Option<DeferredFrame>,
    /// Memory for another frame, when none is deferred.
    pub(super) spare: Box<[u8]>,
    /// The sockets that are watched for room to send: a peer's, the listener.
    pub(super) waits_for_room: [Option<usize>; 2],
    pub(super) target: Target,
    pub(super) closed: ClosedPorts,
    /// The addresses to which the system does not send runs.
    pub(super) uncut: Vec<SocketAddr>,

    pub(super) buffer: Box<[u8]>,
    pub(super) opener: Opener,
    pub(super) burst: Burst,
    pub(super) turns: Turns,
    pub(super) watch: Epoll,
    pub(super) timer: EpollTimer,

    pub(super) address: Address,
    pub(super) capabilities: Capabilities,
    pub(super) statistics: Statistics,
    pub(super) clock: Clock,
    pub(super) wall: WallClock,
    pub(super) interface: BoundInterface,
}

/// Where the frames go that are being filled.
pub(super) struct Target {
    pub(super) to: SocketAddr,
    /// The address as the kernel reads it.
    pub(super) encoded: EncodedAddress,
    /// The place of the peer whose own socket the frames leave by; `None` if they leave by the
    /// listener.
    pub(super) peer: Option<usize>,
    /// How many packets a frame may have that leaves by the listener.
    pub(super) run: u32,
}

/// A frame for which the listener has no room at the moment.
pub(super) struct DeferredFrame {
    pub(super) frame: Box<[u8]>,
    pub(super) sealed: Sealed,
    pub(super) class: u8,
    pub(super) to: EncodedAddress,
}

/// The socket that each turn looks at, and counts by which the others have their turn.
#[derive(Default)]
pub(super) struct Turns {
    /// The socket that each turn looks at. It is watched only while somebody sleeps, and the others
    /// always.
    pub(super) hot: usize,
    pub(super) hot_is_watched: bool,
    /// True while somebody sleeps, or is about to. All sockets are watched meanwhile.
    pub(super) asleep: bool,
    /// How often the hot socket was looked at in vain, without a frame in between.
    pub(super) idle: u32,
    /// How often the hot socket was looked at since the others were.
    pub(super) looks: u32,
    /// How often the hot socket may be looked at before the others are.
    pub(super) most: u32,
}

impl Udp {
    /// Makes a device of a socket that is bound, on an interface.
    pub(super) fn over(listener: UdpSocket, interface: BoundInterface) -> io::Result<Self> {
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
            frequent: FrequentPeers::default(),
            connects: true,
            wanted: None,
            unsettled: false,
            frame: vec![0; LONGEST].into(),
            run: None,
            class: 0,
            listeners_class: 0,
            stuck: false,
            waiting: None,
            spare: vec![0; LONGEST].into(),
            waits_for_room: [None; 2],
            headers_len: headers::len(own),
            target: Target { to: own, encoded: EncodedAddress::of(own), peer: None, run: run_most },
            closed: ClosedPorts::default(),
            uncut: Vec::new(),
            narrow: false,
            buffer: vec![0; LONGEST].into(),
            opener: Opener::default(),
            burst: Burst::new(),
            turns: Turns::default(),
            watch: Epoll::new()?,
            timer: EpollTimer::new()?,
            address: Address::Udp(own),
            capabilities: Capabilities {
                name: NAME,
                mtu: interface.mtu,
                encrypted_mtu: interface.encrypted_mtu,
                run: run_most,
                segmentation: run_most > 1 && interface.segments(),
                checksum: true,
                lossless: false,
                mapping: false,
                simulated: false,
                labels: false,
                memory: (MOST_PEERS + 2) * 2 * (RECEIVE_BUFFER + SEND_BUFFER)
                    + 3 * LONGEST
                    + REMEMBERED * size_of::<Option<(SocketAddr, Sender)>>(),
            },
            statistics: Statistics::default(),
            clock: Clock::new(),
            wall: WallClock::default(),
            interface,
            listener,
        })
    }
}

/// Finds out how many packets the system cuts a frame into, by having a socket send itself some.
fn most_segments(scout: &UdpSocket) -> io::Result<u32> {
    let itself = EncodedAddress::of(scout.local()?);
    let cuts = |most: &u32| scout.send_run(&[0; 128][..*most as usize], Some(1), Some(&itself));
    Ok([128, 64].into_iter().find(|most| cuts(most).is_ok()).unwrap_or(1))
}

/// Adds the interface of the device's own address to a link-local address.
pub(super) fn scoped(address: SocketAddr, own: SocketAddr) -> SocketAddr {
    match (address, own) {
        (SocketAddr::V6(v6), SocketAddr::V6(own)) => {
            headers::scoped(*v6.ip(), v6.port(), own.scope_id()).into()
        }
        _ => address,
    }
}

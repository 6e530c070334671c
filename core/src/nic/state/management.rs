//! Queue pair 1, the general services interface: the management datagrams by which connections are
//! made.
//!
//! These datagrams are not for a program's receives, but for the connection manager of whoever runs
//! the NIC. They wait here for it, and what it sends waits here for the device. Each queue is
//! bounded, and what comes beyond is dropped, as it may be anywhere else on its way.

use std::collections::VecDeque;

use crate::encap::{Outer, Path, PathId};
use crate::nic::device::flow::Flow;
use crate::nic::device::outbox::Outbox;
use crate::nic::state::full_links::FullLinks;
use crate::payload::Payload;
use crate::wire::cm::{Mad, QuotedRequest};
use crate::wire::{
    Bth, Deth, Extensions, Grh, Headers, Ipv4, Ipv6, Opcode, Packet, Pkey, Psn, Qkey, Qpn,
};

/// The most datagrams that wait, each way.
const MOST: usize = 256;

/// The way that a management datagram came, by which its answer goes back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Way {
    /// A link of the device's own, which leads to one peer.
    Link(PathId),
    /// A network, with these outer headers: those of a received datagram lead here; turned around,
    /// they lead back.
    Network(Outer),
}

impl Way {
    /// Returns the way back. What routers and switches changed in the headers is undone, or an
    /// answer would leave with the hops that were left, and marked congested.
    #[must_use]
    pub fn back(self) -> Self {
        match self {
            Self::Link(link) => Self::Link(link),
            Self::Network(outer) => Self::Network(fresh(outer.turned())),
        }
    }

    /// Whether two ways end at the same device.
    pub fn ends_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Link(own), Self::Link(others)) => own == others,
            (Self::Network(own), Self::Network(others)) => own.hosts().1 == others.hosts().1,
            _ => false,
        }
    }

    /// Returns the path along this way. Its identifier is `id`, unless the way is a link, which has
    /// its own.
    pub fn path(&self, id: PathId) -> Path {
        match self {
            Self::Link(link) => Path::link(*link),
            Self::Network(outer) => Path::new(id, *outer),
        }
    }
}

/// Makes headers such as a sender sends, of those that a receiver saw.
fn fresh(outer: Outer) -> Outer {
    // A peer may ask switches to mark its packets. This side does not act on marks, and asks for
    // none.
    let unmarked = |class: u8| class & !Outer::ECN;
    let ipv6 =
        |ip: Ipv6| Ipv6 { traffic_class: unmarked(ip.traffic_class), hop_limit: Outer::HOPS, ..ip };
    match outer {
        Outer::V1(e, Grh(ip)) => Outer::V1(e, Grh(ipv6(ip))),
        Outer::V2Ipv4(e, ip, udp) => {
            Outer::V2Ipv4(e, Ipv4 { tos: unmarked(ip.tos), ttl: Outer::HOPS, ..ip }, udp)
        }
        Outer::V2Ipv6(e, ip, udp) => Outer::V2Ipv6(e, ipv6(ip), udp),
    }
}

/// A management datagram that was received.
#[derive(Clone, Debug)]
pub struct Management {
    /// The way that the datagram came.
    pub way: Way,
    /// The queue pair that sent the datagram.
    pub source: Qpn,
    /// The bytes of the datagram.
    pub bytes: [u8; Mad::LEN],
}

/// The error that too many management datagrams wait to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{MOST} management datagrams wait to be sent already: transmit, and send it again")]
pub struct TooMany;

/// The management datagrams that wait, each way.
pub(crate) struct Mailbox {
    arrived: VecDeque<Management>,
    leaving: VecDeque<(Path, [u8; Mad::LEN])>,
    next: Psn,
    /// How many events of bounced requests nobody has taken yet.
    bounced_pending: usize,
}

impl Default for Mailbox {
    fn default() -> Self {
        Self {
            arrived: VecDeque::new(),
            leaving: VecDeque::new(),
            next: Psn::new(0),
            bounced_pending: 0,
        }
    }
}

impl Mailbox {
    /// Takes a packet to queue pair 1. Returns whether it is a management datagram, and there was
    /// room.
    pub fn take<P: Payload>(&mut self, flow: Flow<'_>, packet: &Packet<P>) -> bool {
        let Extensions::Deth(Deth { qkey: Qkey::GSI, source, .. }) = packet.headers.extensions
        else {
            return false;
        };
        if packet.payload.len() != Mad::LEN || self.arrived.len() == MOST {
            return false;
        }
        let way = match flow {
            Flow::Link(link) => Way::Link(link),
            Flow::Network(_, outer) => Way::Network(*outer),
        };
        let mut bytes = [0; Mad::LEN];
        packet.payload.copy_to(&mut bytes);
        self.arrived.push_back(Management { way, source, bytes });
        true
    }

    /// Returns the request for a connection that a closed port has sent back, of which it is known
    /// how the packet began: its BTH, and some of what is behind that. Returns `None` if the packet
    /// was another datagram, or if very many events of this kind wait already; requests are
    /// repeated in any case.
    pub fn bounced(&mut self, bth: Bth, behind: &[u8]) -> Option<QuotedRequest> {
        /// How many bytes the header between the BTH and the datagram has.
        const DETH: usize = 8;
        let datagram = behind.get(DETH..).filter(|_| bth.opcode() == Opcode::UdSendOnly)?;
        let request = Mad::quoted_request(datagram).filter(|_| self.bounced_pending < MOST)?;
        self.bounced_pending += 1;
        Some(request)
    }

    /// Notes that an event of a bounced request was taken.
    pub fn bounced_taken(&mut self) {
        self.bounced_pending -= 1;
    }

    #[inline]
    pub fn has_arrived(&self) -> bool {
        !self.arrived.is_empty()
    }

    pub fn arrived(&mut self) -> Option<Management> {
        self.arrived.pop_front()
    }

    pub fn send(&mut self, path: Path, bytes: [u8; Mad::LEN]) -> Result<(), TooMany> {
        if self.leaving.len() == MOST {
            return Err(TooMany);
        }
        self.leaving.push_back((path, bytes));
        Ok(())
    }

    #[inline]
    pub fn has_work(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Gives the device what it has room for. If there are links, those in `full` are skipped.
    /// Returns how many packets were sent.
    #[cold]
    pub fn transmit<O: Outbox>(&mut self, outbox: &mut O, mut full: Option<&mut FullLinks>) -> u64 {
        let mut sent = 0;
        for _ in 0..self.leaving.len() {
            let Some((path, bytes)) = self.leaving.front() else { break };
            let link = path.id();
            let bth = Bth::new(Opcode::UdSendOnly, Qpn::GSI, self.next).with_pkey(Pkey::DEFAULT);
            let deth = Deth { qkey: Qkey::GSI, source: Qpn::GSI, reserved: 0 };
            let headers = Headers { bth, extensions: Extensions::Deth(deth) };
            let waits = full.as_ref().is_some_and(|full| full.has(link));
            if waits || outbox.push(path, headers, &bytes[..]).is_err() {
                let Some(full) = &mut full else { break };
                full.add(link);
                self.leaving.rotate_left(1);
                continue;
            }
            self.next = self.next.add(1);
            sent += 1;
            self.leaving.pop_front();
        }
        sent
    }
}

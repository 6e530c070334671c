//! Those who send to a device, and what must be known to check what they send.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;

use doorbell_core::encap::{IpIdRecovery, Opener, Outer};
use doorbell_core::nic::{Flow, Inbox};
use doorbell_core::wire::UdpPort;

use super::headers;

/// Who sends from a socket of its own to ours.
#[derive(Clone, Debug)]
pub struct Sender {
    /// The headers of what it sends.
    outer: Outer,
    /// The same, such that what answers them comes from here: to RoCE's own port a standard peer
    /// sends from any, expects to be answered from the same, and does not look. Ours is the one.
    shown: Outer,
    /// Its identifications, which the system does not show.
    ids: IpIdRecovery,
}

impl Sender {
    /// Somebody not heard before; `None` if that is nobody who could be answered, or the two
    /// addresses are of different kinds.
    pub fn new(from: SocketAddr, own: SocketAddr) -> Option<Self> {
        let outer = headers::between(from, own)?;
        let answered = match own.port() {
            port if port == UdpPort::ROCE_V2.0 => SocketAddr::new(from.ip(), port),
            _ => from,
        };
        if headers::not_a_peers(answered).is_some() {
            return None;
        }
        let shown = headers::between(answered, own)?;
        Some(Self { outer, shown, ids: IpIdRecovery::default() })
    }

    /// Takes apart a datagram of this sender's, or several of `segment` bytes each, and hands the
    /// packets to `inbox`. An empty datagram carries none: peers send them to learn which
    /// identifications the system gives to what they send.
    #[inline]
    pub fn deliver(
        &mut self,
        opener: &mut Opener,
        datagrams: &[u8],
        segment: Option<u16>,
        inbox: &mut impl Inbox,
    ) {
        if datagrams.is_empty() {
            return;
        }
        match opener.datagram(&self.outer, &mut self.ids, datagrams, segment) {
            Err(why) => inbox.malformed(why),
            Ok(mut arrival) => {
                while let Some(packet) = arrival.next() {
                    match packet {
                        Ok(packet) => {
                            inbox.packet(Flow::Network(arrival.flow(), &self.shown), &packet);
                        }
                        Err(why) => inbox.malformed(why),
                    }
                }
            }
        }
    }
}

/// How many are remembered.
pub const REMEMBERED: usize = 256;

/// Those that were heard last, each where the hash of its address says: whoever has the same takes
/// the place, and the other is heard as if for the first time when it comes again.
pub struct Senders {
    own: SocketAddr,
    hasher: RandomState,
    places: Box<[Option<(SocketAddr, Sender)>]>,
    last: usize,
    /// The addresses that were reached, if nobody else is heard.
    reached: Option<HashSet<SocketAddr>>,
}

impl Senders {
    pub fn new(own: SocketAddr) -> Self {
        let places = vec![None; REMEMBERED].into();
        Self { own, hasher: RandomState::new(), places, last: 0, reached: None }
    }

    /// From now on, nobody is heard but who is [reached](Self::reached).
    pub fn keep_out_strangers(&mut self) {
        self.reached = Some(HashSet::new());
        self.places.fill(None);
    }

    /// Notes that this device has found the way to an address itself.
    pub fn reached(&mut self, to: SocketAddr) {
        let place = self.place(to);
        if let Some(reached) = &mut self.reached {
            reached.insert(place);
        }
    }

    /// Whether somebody at an address is heard who was not heard before.
    fn is_heard(&self, from: SocketAddr) -> bool {
        self.reached.as_ref().is_none_or(|reached| reached.contains(&self.place(from)))
    }

    /// The address by which somebody is known: at RoCE's own port, peers send from any.
    fn place(&self, mut address: SocketAddr) -> SocketAddr {
        if self.own.port() == UdpPort::ROCE_V2.0 {
            address.set_port(UdpPort::ROCE_V2.0);
        }
        address
    }

    /// Whoever sends from that address, unless it is a stranger who is not to be heard.
    #[inline]
    pub fn from(&mut self, from: SocketAddr) -> Option<&mut Sender> {
        if !self.is_at(self.last, from) {
            self.last = self.hasher.hash_one(from) as usize % REMEMBERED;
            if !self.is_at(self.last, from) {
                let sender = Sender::new(from, self.own).filter(|_| self.is_heard(from))?;
                self.places[self.last] = Some((from, sender));
            }
        }
        self.places[self.last].as_mut().map(|(_, sender)| sender)
    }

    #[inline]
    fn is_at(&self, place: usize, from: SocketAddr) -> bool {
        self.places[place].as_ref().is_some_and(|(address, _)| *address == from)
    }
}

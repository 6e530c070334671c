//! The senders of what a device receives, and what is needed to check their packets.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;

use doorbell_core::encap::{IpIdRecovery, Opener, Outer};
use doorbell_core::nic::{Flow, Inbox};
use doorbell_core::wire::UdpPort;

use super::headers;

/// A socket that sends to this device.
#[derive(Clone, Debug)]
pub struct Sender {
    /// The headers of what the sender sends.
    outer: Outer,
    /// The headers that the NIC is told, and answers along. A standard peer sends to RoCE's own
    /// port from any port of its own, and expects answers at RoCE's port: so these have that port.
    shown: Outer,
    /// The identifications of the sender's packets, which the system does not show.
    ids: IpIdRecovery,
}

impl Sender {
    /// Makes a sender of which nothing was received yet. `None` if the address could not be
    /// answered, or the two addresses are of different families.
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
    /// identifications the system gives to what they send. `marked` says whether a switch has
    /// marked them.
    #[inline]
    pub fn deliver(
        &mut self,
        opener: &mut Opener,
        datagrams: &[u8],
        (segment, marked): (Option<u16>, bool),
        inbox: &mut impl Inbox,
    ) {
        if datagrams.is_empty() {
            return;
        }
        match opener.datagram(&self.outer, &mut self.ids, datagrams, segment) {
            Err(why) => inbox.malformed(why),
            Ok(mut arrival) => {
                let with_mark;
                let shown = match marked {
                    true => {
                        with_mark = self.shown.marked();
                        &with_mark
                    }
                    false => &self.shown,
                };
                while let Some(packet) = arrival.next() {
                    match packet {
                        Ok(packet) => {
                            inbox.packet(Flow::Network(arrival.flow(), shown), &packet);
                        }
                        Err(why) => inbox.malformed(why),
                    }
                }
            }
        }
    }
}

/// The number of senders that are remembered.
pub const REMEMBERED: usize = 256;

/// The senders that were heard last, in a table by the hash of the address. Of two with the same
/// hash, the later one takes the place, and the other is new again when it sends again.
pub struct Senders {
    own: SocketAddr,
    hasher: RandomState,
    places: Box<[Option<(SocketAddr, Sender)>]>,
    last: usize,
    /// The addresses that this device has reached, if it hears no others.
    reached: Option<HashSet<SocketAddr>>,
}

impl Senders {
    pub fn new(own: SocketAddr) -> Self {
        let places = vec![None; REMEMBERED].into();
        Self { own, hasher: RandomState::new(), places, last: 0, reached: None }
    }

    /// Makes the device hear only addresses that it has [reached](Self::reached).
    pub fn keep_out_strangers(&mut self) {
        self.reached = Some(HashSet::new());
        self.places.fill(None);
    }

    /// Records that this device has found the way to an address itself.
    pub fn reached(&mut self, to: SocketAddr) {
        let place = self.place(to);
        if let Some(reached) = &mut self.reached {
            reached.insert(place);
        }
    }

    /// Returns whether a sender at an address that is not in the table is heard.
    fn is_heard(&self, from: SocketAddr) -> bool {
        self.reached.as_ref().is_none_or(|reached| reached.contains(&self.place(from)))
    }

    /// Returns the address by which a sender is known. To RoCE's own port, peers send from any
    /// port.
    fn place(&self, mut address: SocketAddr) -> SocketAddr {
        if self.own.port() == UdpPort::ROCE_V2.0 {
            address.set_port(UdpPort::ROCE_V2.0);
        }
        address
    }

    /// Returns the sender at an address, or `None` for a stranger who is not to be heard.
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

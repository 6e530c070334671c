//! Who is where on this Ethernet.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use doorbell_core::encap::{Outer, Path};
use doorbell_core::nic::Way;
use doorbell_core::time::Time;
use doorbell_core::wire::{Ethernet, Mac, UdpPort};

use super::network::Network;
use super::question::{self, Heard, ICMPV6, Own, Whom};
use super::{ARP_SLOTS, NAME};
use crate::address::{Address, ReachError};
use crate::clock::Clock;
use crate::device::Trouble;
use crate::raw::Peers;
use crate::sys::packet::{PacketSocket, ReceiveRing};

/// The most neighbours that are remembered.
pub const MOST: usize = 1024;
/// How often an address is asked for before nobody has it, and how long each answer is waited for.
const TRIES: u32 = 3;
const PATIENCE: Duration = Duration::from_secs(1);

/// A protocol of its own that neighbours speak over IPv4, with a socket for it. Over IPv6 their
/// frames come among the others: another socket would look at each of those.
pub(super) struct Arp {
    pub socket: PacketSocket,
    pub ring: ReceiveRing,
}

/// The neighbours of a device.
pub struct Neighbours {
    network: Network,
    arp: Option<Arp>,
    table: Table,
}

impl fmt::Debug for Neighbours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Neighbours").field("known", &self.table.entries).finish_non_exhaustive()
    }
}

/// Who was asked for, by their IP addresses.
struct Table {
    own: Own,
    entries: HashMap<IpAddr, Neighbour>,
    /// How many of them are being asked for.
    asked: usize,
    /// Whether one of them has moved while it may have been spoken to.
    moved: bool,
    /// Who has the same IP address as this device.
    double: Option<Mac>,
}

#[derive(Clone, Copy, Debug)]
enum Neighbour {
    Asked { tries: u32, until: Time },
    Known(Mac),
    Silent,
}

impl Neighbours {
    pub(super) fn new(mac: Mac, network: Network, arp: Option<Arp>) -> Self {
        let (own, entries) = (Own { mac, ip: network.own() }, HashMap::new());
        Self { network, arp, table: Table { own, entries, asked: 0, moved: false, double: None } }
    }

    /// Who has the same IP address as this device, as far as was heard.
    pub(super) fn double(&self) -> Option<Mac> {
        self.table.double
    }

    /// Asks everybody who has this device's own address.
    pub(super) fn probe(&self, socket: &PacketSocket) {
        self.table.ask(self.table.own.ip, Whom::Group, socket);
    }

    /// Tells everybody that this device has it.
    pub(super) fn announce(&self, socket: &PacketSocket) {
        let _ = socket.send(question::tell(self.table.own, None).bytes());
    }

    /// The headers of what goes from the device to itself.
    pub(super) fn to_self(&self) -> Outer {
        self.table.outer(self.table.own.ip, self.table.own.mac)
    }
}

impl Table {
    // A question that the interface refuses is asked again like one that nobody heard.
    fn ask(&self, about: IpAddr, whom: Whom, socket: &PacketSocket) {
        let _ = socket.send(question::ask(self.own, about, whom).bytes());
    }

    fn hear(&mut self, frame: &[u8], socket: &PacketSocket) {
        let Some(heard) = question::hear(frame) else { return };
        let (ip, mac) = match heard {
            Heard::Asked { ip, mac, .. } => (ip, mac),
            Heard::Told { ip, mac } => (Some(ip), mac),
        };
        // One's own words may come back.
        if mac == self.own.mac {
            return;
        }
        match ip {
            Some(ip) if ip == self.own.ip => self.double = Some(mac),
            Some(ip) => self.learn(ip, mac),
            None => {}
        }
        if let Heard::Asked { about, ip, mac } = heard
            && about == self.own.ip
        {
            let asker = ip.map(|ip| (ip, mac));
            let _ = socket.send(question::tell(self.own, asker).bytes());
        }
    }

    /// Notes where a neighbour is, if anybody here wants to know.
    fn learn(&mut self, ip: IpAddr, mac: Mac) {
        let Some(neighbour) = self.entries.get_mut(&ip) else { return };
        match std::mem::replace(neighbour, Neighbour::Known(mac)) {
            Neighbour::Asked { .. } => self.asked -= 1,
            Neighbour::Known(before) => self.moved |= before != mac,
            Neighbour::Silent => {}
        }
    }

    /// Asks again for those who have not answered in time.
    #[cold]
    fn insist(&mut self, now: Time, socket: &PacketSocket) {
        let mut again = Vec::new();
        for (&ip, neighbour) in &mut self.entries {
            let Neighbour::Asked { tries, until } = neighbour else { continue };
            if *until > now {
                continue;
            }
            if *tries == TRIES {
                *neighbour = Neighbour::Silent;
                self.asked -= 1;
            } else {
                (*tries, *until) = (*tries + 1, now + PATIENCE);
                again.push(ip);
            }
        }
        for ip in again {
            self.ask(ip, Whom::Everybody, socket);
        }
    }

    /// Room for one more, in which somebody may stand who did not answer.
    fn make_room(&mut self) -> bool {
        if self.entries.len() >= MOST {
            self.entries.retain(|_, neighbour| !matches!(neighbour, Neighbour::Silent));
        }
        self.entries.len() < MOST
    }

    /// The headers of what goes to a neighbour.
    fn outer(&self, ip: IpAddr, mac: Mac) -> Outer {
        let Own { mac: own_mac, ip: own } = self.own;
        let from = SocketAddr::new(own, flow(own, ip).0);
        let outer = Outer::v2((own_mac, mac), from, SocketAddr::new(ip, UdpPort::ROCE_V2.0));
        outer.expect("neighbours' addresses are of one kind")
    }

    /// Addresses a frame to where its neighbour is now.
    #[cold]
    fn find(&self, path: &Path, frame: &mut [u8]) {
        let to = match path.outer() {
            Outer::V2Ipv4(_, ip, _) => IpAddr::V4(ip.destination),
            Outer::V2Ipv6(_, ip, _) => IpAddr::V6(ip.destination.into()),
            Outer::V1(..) => return,
        };
        if let Some(Neighbour::Known(mac)) = self.entries.get(&to) {
            frame[..6].copy_from_slice(&mac.0);
        }
    }
}

/// The source port that two hosts use, by which what is in between spreads flows: the same in both
/// directions, as the answers take it over.
fn flow(one: IpAddr, other: IpAddr) -> UdpPort {
    let bytes = |ip| match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    };
    let mixed = bytes(one)
        .into_iter()
        .chain(bytes(other))
        .fold(0u32, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    UdpPort(0xC000 | (mixed ^ mixed >> 16) as u16 & 0x3FFF)
}

impl Peers for Neighbours {
    const RUNS: bool = true;
    const MEMORY: usize = MOST * size_of::<(IpAddr, Neighbour)>()
        + ReceiveRing::memory(super::ARP_SLOT, super::ARP_SLOTS);

    fn reach(
        &mut self,
        peer: &Address,
        clock: &Clock,
        socket: &PacketSocket,
    ) -> Result<Option<Way>, ReachError> {
        let (table, own, address) = (&mut self.table, self.network.own(), || peer.clone());
        let ip = match *peer {
            Address::PacketV2(ip) if ip.is_ipv4() == own.is_ipv4() => ip,
            _ => {
                let takes =
                    if own.is_ipv4() { "packet-v2:IP, of IPv4" } else { "packet-v2:IP, of IPv6" };
                return Err(ReachError::Kind { address: address(), device: NAME, takes });
            }
        };
        if let Some(why) = self.network.not_a_neighbours(ip) {
            return Err(ReachError::NoPeers { address: address(), why });
        }
        if !self.network.holds(ip) {
            let own = self.network.to_string();
            return Err(ReachError::Beyond { address: address(), own, device: NAME });
        }
        if ip == own {
            let why = "it is the device's own, and no interface hears itself";
            return Err(ReachError::Nobody { address: address(), why });
        }
        match table.entries.get(&ip).copied() {
            Some(Neighbour::Known(mac)) => Ok(Some(Way::Network(table.outer(ip, mac)))),
            Some(Neighbour::Asked { .. }) => Ok(None),
            Some(Neighbour::Silent) => {
                table.entries.remove(&ip);
                let why = "three times asked for its Ethernet address, a second each";
                Err(ReachError::Nobody { address: address(), why })
            }
            None if !table.make_room() => {
                Err(ReachError::TooMany { address: address(), most: MOST })
            }
            None => {
                let until = clock.now() + PATIENCE;
                table.entries.insert(ip, Neighbour::Asked { tries: 1, until });
                table.asked += 1;
                table.ask(ip, Whom::Group, socket);
                Ok(None)
            }
        }
    }

    #[inline]
    fn take(&mut self, frame: &[u8], socket: &PacketSocket) -> bool {
        /// Where the next header of IPv6 stands. Over IPv4 nothing but RoCE passes the filter.
        const NEXT: usize = Ethernet::LEN + 6;
        let about_peers = self.arp.is_none() && frame.get(NEXT) == Some(&ICMPV6.0);
        if about_peers {
            self.table.hear(frame, socket);
        }
        about_peers
    }

    #[inline]
    fn turn(&mut self, clock: &Clock, socket: &PacketSocket) -> usize {
        let (mut heard, table) = (0, &mut self.table);
        if let Some(Arp { ring, .. }) = &mut self.arp {
            while heard < ARP_SLOTS && ring.next(|came| table.hear(came.frame, socket)).is_some() {
                heard += 1;
            }
        }
        if table.asked > 0 {
            table.insist(clock.now(), socket);
        }
        heard
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.arp.as_ref().map(|arp| arp.socket.as_fd())
    }

    fn next(&self) -> Option<Time> {
        let waits = self.table.entries.values().filter_map(|neighbour| match neighbour {
            Neighbour::Asked { until, .. } => Some(*until),
            _ => None,
        });
        if self.table.asked > 0 { waits.min() } else { None }
    }

    #[inline]
    fn redirect(&self, path: &Path, frame: &mut [u8]) {
        if self.table.moved {
            self.table.find(path, frame);
        }
    }

    fn trouble(&mut self) -> Option<Trouble> {
        self.table.double.map(|mac| Trouble {
            what: format!("address {}", self.network.own()),
            found: format!("{mac} has it, too"),
            advice: "give one of them another, and open its device anew",
        })
    }
}

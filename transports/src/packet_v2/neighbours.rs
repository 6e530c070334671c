//! The neighbours of a device: the Ethernet addresses at which IP addresses are.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use doorbell_core::encap::{Outer, Path};
use doorbell_core::nic::Way;
use doorbell_core::time::Time;
use doorbell_core::wire::{Ethernet, Mac, UdpPort};

use super::discovery::{self, Heard, ICMPV6, Station, Whom};
use super::network::Network;
use crate::address::{Address, ReachError};
use crate::clock::Clock;
use crate::device::Trouble;
use crate::raw::Peers;
use crate::sys::packet::{PacketSocket, ReceiveRing};

/// The name of the device, which addresses and errors begin with.
pub(super) const NAME: &str = "packet-v2";

/// The size of a slot in the ring for ARP: room for a frame, and for what the kernel says of it.
pub(super) const ARP_SLOT: usize = 256;
/// The number of slots in the ring for ARP.
pub(super) const ARP_SLOTS: usize = 64;

/// The most neighbours that are remembered.
pub const MOST: usize = 1024;
/// How often an address is asked for, before nobody is taken to have it.
const TRIES: u32 = 3;
/// How long the answer to each question is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// The socket for ARP, by which neighbours ask and tell over IPv4. Over IPv6 their frames come by
/// the device's own socket: another socket would have to look at each frame of the protocol.
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

/// The neighbours that were asked for, by their IP addresses.
struct Table {
    own: Station,
    entries: HashMap<IpAddr, Neighbour>,
    /// How many neighbours are being asked for at present.
    asked: usize,
    /// True once a neighbour has moved to another Ethernet address, to which paths may not lead.
    moved: bool,
    /// The Ethernet address of another station that has the same IP address as this device.
    rival: Option<Mac>,
}

/// The state of a neighbour that was asked for.
#[derive(Clone, Copy, Debug)]
enum Neighbour {
    /// The neighbour was asked for so many times, and its answer is waited for.
    Asked { tries: u32, until: Time },
    /// The neighbour is at this Ethernet address.
    Known(Mac),
    /// The neighbour has not answered.
    Silent,
}

impl Neighbours {
    pub(super) fn new(mac: Mac, network: Network, arp: Option<Arp>) -> Self {
        let (own, entries) = (Station { mac, ip: network.own() }, HashMap::new());
        Self { network, arp, table: Table { own, entries, asked: 0, moved: false, rival: None } }
    }

    /// Returns the Ethernet address of another station with the same IP address, if one was heard.
    pub(super) fn rival(&self) -> Option<Mac> {
        self.table.rival
    }

    /// Asks all stations whether one has this device's own address.
    pub(super) fn probe(&self, socket: &PacketSocket) {
        self.table.ask(self.table.own.ip, Whom::Group, socket);
    }

    /// Tells all stations that this device has its address.
    pub(super) fn announce(&self, socket: &PacketSocket) {
        let _ = socket.send(discovery::tell(self.table.own, None).bytes());
    }

    /// Returns the headers of what goes from the device to itself.
    pub(super) fn to_self(&self) -> Outer {
        self.table.outer(self.table.own.ip, self.table.own.mac)
    }
}

impl Table {
    /// Asks for an address. If the interface refuses the frame, it is asked again like a question
    /// that nobody answered.
    fn ask(&self, about: IpAddr, whom: Whom, socket: &PacketSocket) {
        let _ = socket.send(discovery::ask(self.own, about, whom).bytes());
    }

    /// Learns from a frame that is about neighbours, and answers a question for the own address.
    fn hear(&mut self, frame: &[u8], socket: &PacketSocket) {
        let Some(heard) = discovery::hear(frame) else { return };
        let (ip, mac) = match heard {
            Heard::Asked { ip, mac, .. } => (ip, mac),
            Heard::Told { ip, mac } => (Some(ip), mac),
        };
        // The device's own frames may come back.
        if mac == self.own.mac {
            return;
        }
        match ip {
            Some(ip) if ip == self.own.ip => self.rival = Some(mac),
            Some(ip) => self.learn(ip, mac),
            None => {}
        }
        if let Heard::Asked { about, ip, mac } = heard
            && about == self.own.ip
        {
            let asker = ip.map(|ip| Station { mac, ip });
            let _ = socket.send(discovery::tell(self.own, asker).bytes());
        }
    }

    /// Records where a neighbour is, if it was asked for.
    fn learn(&mut self, ip: IpAddr, mac: Mac) {
        let Some(neighbour) = self.entries.get_mut(&ip) else { return };
        match std::mem::replace(neighbour, Neighbour::Known(mac)) {
            Neighbour::Asked { .. } => self.asked -= 1,
            Neighbour::Known(before) => self.moved |= before != mac,
            Neighbour::Silent => {}
        }
    }

    /// Asks again for neighbours that have not answered in time.
    #[cold]
    fn ask_again(&mut self, now: Time, socket: &PacketSocket) {
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

    /// Makes room for another neighbour, by forgetting those that did not answer. Returns whether
    /// there is room.
    fn make_room(&mut self) -> bool {
        if self.entries.len() >= MOST {
            self.entries.retain(|_, neighbour| !matches!(neighbour, Neighbour::Silent));
        }
        self.entries.len() < MOST
    }

    /// Returns the headers of what goes to a neighbour.
    fn outer(&self, ip: IpAddr, mac: Mac) -> Outer {
        let Station { mac: own_mac, ip: own } = self.own;
        let from = SocketAddr::new(own, flow(own, ip).0);
        let outer = Outer::v2((own_mac, mac), from, SocketAddr::new(ip, UdpPort::ROCE_V2.0));
        outer.expect("neighbours' addresses are of one kind")
    }

    /// Changes the destination of a frame to the Ethernet address that its neighbour has now.
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

/// Returns the source port between two hosts, by which routers and switches spread flows. It is the
/// same in both directions, as answers take it over.
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
    const MEMORY: usize =
        MOST * size_of::<(IpAddr, Neighbour)>() + ReceiveRing::memory(ARP_SLOT, ARP_SLOTS);

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
        /// The offset of the next header in IPv6. Over IPv4, only RoCE passes the filter.
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
            table.ask_again(clock.now(), socket);
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
        self.table.rival.map(|mac| Trouble {
            what: format!("address {}", self.network.own()),
            found: format!("{mac} has it, too"),
            advice: "give one of them another, and open its device anew",
        })
    }
}

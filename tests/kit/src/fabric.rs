//! NICs at the stations of a [`Network`], and connection managers beside them.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::time::Duration;

use doorbell_core::cm::{self, ConnectionManager};
use doorbell_core::connect::Route;
use doorbell_core::encap::{Full, Opener, Outer, Path, PathId, Run, Version};
use doorbell_core::nic::{
    Change, Config, Connection, Flow, Inbox, Nic, Outbox, Rights, Seed, Sending, Way,
};
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::{
    EtherType, Ethernet, FlowLabel, Gid, Grh, Headers, InetChecksum, IpId, IpProtocol, Ipv4, Ipv6,
    Mac, PathMtu, Pkey, Qpn, Udp, UdpPort,
};

use crate::managers::{Manager, customary};
use crate::network::{Event, Network, StationId};

/// Which node of a fabric: they are numbered as they were added, from 0.
pub type NodeId = usize;

/// Several NICs and the network between them, in one virtual time.
///
/// Programs are whoever holds the queues that [`nic`](Self::nic) gave: they post, ring, and call
/// [`turn`](Self::turn), or let a [`step`](Self::step) do it.
pub struct Fabric {
    /// The network. A lossless fabric counts on it to be that: no faults, no full switches.
    pub network: Network,
    /// How many packets a NIC's device takes before it is full, and needs a microsecond to send them.
    pub room: usize,
    nodes: Vec<Node>,
    version: Version,
    lossless: bool,
    seed: u64,
    config: Config,
}

struct Node {
    nic: Nic,
    manager: Option<Manager>,
    station: StationId,
    opener: Opener,
    port: Port,
    starts: u64,
}

/// An EtherType that IEEE 802 leaves to local experiments: how far a lossless peer has come.
const PROGRESS: EtherType = EtherType(0x88B5);

/// How long a full device takes to have room again.
const SENT_AFTER: Duration = Duration::from_micros(1);

/// The longest frame that a port encodes.
const LONGEST: usize = 4096 + 128;

/// A station's interface, as the NIC's device.
struct Port {
    frames: VecDeque<Vec<u8>>,
    room: usize,
    next_id: u16,
    /// On a lossless fabric, the way to each peer: the NIC's own paths are mere links there.
    links: Vec<Path>,
    /// Tickets given, and found delivered, by the number of the path.
    tickets: Vec<u64>,
    delivered: Vec<u64>,
    /// Packets taken from each peer since it was last told, and in all.
    taken: Vec<(bool, u64)>,
}

impl Port {
    fn new(peers: usize) -> Self {
        Self {
            frames: VecDeque::new(),
            room: usize::MAX,
            next_id: 0,
            links: Vec::new(),
            tickets: vec![0; peers],
            delivered: vec![0; peers],
            taken: vec![(false, 0); peers],
        }
    }
}

impl Outbox for Port {
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        if self.frames.len() >= self.room {
            return Err(Full);
        }
        let path = self.links.get(path.id().0 as usize).unwrap_or(path);
        let mut frame = vec![0; LONGEST];
        let mut run = Run::begin(path, &mut frame, IpId(self.next_id), 1);
        run.push(path, &mut frame, headers, payload)?;
        let sealed = run.seal(&mut frame);
        frame.truncate(sealed.len);
        self.next_id = self.next_id.wrapping_add(1);
        self.frames.push_back(frame);
        let ticket = &mut self.tickets[path.id().0 as usize];
        *ticket += 1;
        Ok(*ticket)
    }

    fn flush(&mut self) {}

    fn delivered(&mut self, path: PathId) -> u64 {
        self.delivered[path.0 as usize]
    }
}

/// A node's hardware address, and from it all others.
///
/// Those of the first 256 differ from each other in more bits than a fault flips. Otherwise one of
/// a corrupted frame might be another's, and teach switches a way to that on which it is not.
fn mac(node: NodeId) -> Mac {
    let [.., a, b] = (node as u64).to_be_bytes();
    Mac([2, b, b, b, a, b])
}

fn node_of(Mac([.., a, b]): Mac) -> NodeId {
    usize::from(u16::from_be_bytes([a, b]))
}

/// The number of the path that a route leads along: the peer's.
fn number(route: &Route) -> PathId {
    match route.way() {
        Way::Link(link) => *link,
        Way::Network(outer) => PathId(node_of(outer.ethernet().destination) as u32),
    }
}

fn ipv4(node: NodeId) -> Ipv4Addr {
    let [.., a, b] = (node as u64 + 1).to_be_bytes();
    Ipv4Addr::new(10, 0, a, b)
}

/// The outer headers from one node to another. They allow marks of congestion.
fn outer(version: Version, from: NodeId, to: NodeId) -> Outer {
    let ethernet = |ethertype| Ethernet { destination: mac(to), source: mac(from), ethertype };
    let ipv6 = |next_header| Ipv6 {
        traffic_class: 2,
        flow_label: FlowLabel::new(0),
        payload_length: 0,
        next_header,
        hop_limit: 64,
        source: Gid::from_mac(mac(from)),
        destination: Gid::from_mac(mac(to)),
    };
    let (source, destination) = (UdpPort(0xC000), UdpPort::ROCE_V2);
    let udp = Udp { source, destination, length: 0, checksum: InetChecksum(0) };
    match version {
        Version::V1 => Outer::V1(ethernet(EtherType::ROCE), Grh(ipv6(IpProtocol::IBA))),
        Version::V2Ipv4 => {
            let ip = Ipv4 {
                tos: 2,
                total_length: 0,
                id: IpId(0),
                dont_fragment: true,
                ttl: 64,
                protocol: IpProtocol::UDP,
                source: ipv4(from),
                destination: ipv4(to),
            };
            Outer::V2Ipv4(ethernet(EtherType::IPV4), ip, udp)
        }
        Version::V2Ipv6 => Outer::V2Ipv6(ethernet(EtherType::IPV6), ipv6(IpProtocol::UDP), udp),
    }
}

impl Fabric {
    /// A fabric without nodes, on which all chance comes from `seed`. With `config.lossless`, its
    /// NICs are told what was delivered, and recover from nothing.
    pub fn new(seed: u64, version: Version, config: Config) -> Self {
        let lossless = config.lossless;
        let network = Network::new(seed);
        let (nodes, room) = (Vec::new(), usize::MAX);
        Self { network, room, nodes, version, lossless, seed, config }
    }

    /// Adds a node: a station, and a NIC at it.
    pub fn node(&mut self) -> NodeId {
        let (node, station) = (self.nodes.len(), self.network.station());
        let nic = self.new_nic(node, 0);
        for (other, to) in self.nodes.iter_mut().enumerate() {
            to.port.tickets.push(0);
            to.port.delivered.push(0);
            to.port.taken.push((false, 0));
            if self.lossless {
                to.port.links.push(way(self.version, other, node));
            }
        }
        let port = self.new_port(node, node + 1);
        let opener = Opener::default();
        self.nodes.push(Node { nic, manager: None, station, opener, port, starts: 0 });
        node
    }

    fn new_port(&self, node: NodeId, peers: usize) -> Port {
        let links = if self.lossless { peers } else { 0 };
        let links = (0..links).map(|peer| way(self.version, node, peer)).collect();
        Port { links, ..Port::new(peers) }
    }

    /// What the randomness of one start of a node comes from.
    fn seed_of(&self, node: NodeId, starts: u64) -> u64 {
        self.seed ^ (node as u64 + 1) << 40 ^ (starts + 1) << 20
    }

    fn new_nic(&self, node: NodeId, starts: u64) -> Nic {
        let seed = Seed::from_number(self.seed_of(node, starts));
        Nic::new(self.config, seed).expect("a numbering that can be")
    }

    /// Adds a node with a connection manager beside its NIC; `settle` may change what that is
    /// configured to be.
    pub fn managed_node(&mut self, settle: impl FnOnce(&mut cm::Config)) -> NodeId {
        let node = self.node();
        let mut config = customary(node);
        settle(&mut config);
        let seed = self.seed_of(node, 0) ^ 1;
        self.nodes[node].manager = Some(Manager::new(config, seed));
        node
    }

    /// The connection manager of a node that has one. What it is told takes effect with the next
    /// [`turn`](Self::turn), which also hands it what has come.
    pub fn manager(&mut self, node: NodeId) -> &mut ConnectionManager<Route> {
        let manager = self.nodes[node].manager.as_mut();
        &mut manager.expect("a node that was added as a managed one").own
    }

    /// The way from the manager of one node to that of another.
    pub fn route(&self, from: NodeId, to: NodeId) -> Route {
        match self.lossless {
            true => Route::new(Way::Link(PathId(to as u32))),
            false => Route::along(&self.path(from, to)),
        }
    }

    /// The path of queue pairs to where a manager's route leads.
    pub fn path_along(&self, route: &Route) -> Path {
        route.path(number(route))
    }

    /// The station of a node, to plug cables into.
    pub fn station(&self, node: NodeId) -> StationId {
        self.nodes[node].station
    }

    /// The NIC of a node.
    pub fn nic(&mut self, node: NodeId) -> &mut Nic {
        &mut self.nodes[node].nic
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.network.now()
    }

    /// The way from one node to another: on a lossless fabric, a mere link.
    pub fn path(&self, from: NodeId, to: NodeId) -> Path {
        match self.lossless {
            true => Path::link(PathId(to as u32)),
            false => way(self.version, from, to),
        }
    }

    /// Switches a node off and on: a new NIC and a new manager, with nothing of the old ones but
    /// their address.
    pub fn restart(&mut self, node: NodeId) {
        let starts = self.nodes[node].starts + 1;
        let nic = self.new_nic(node, starts);
        let (station, peers) = (self.nodes[node].station, self.nodes.len());
        let (opener, port) = (Opener::default(), self.new_port(node, peers));
        let seed = self.seed_of(node, starts) ^ 1;
        let manager = self.nodes[node].manager.take().map(|old| Manager::new(old.config, seed));
        self.nodes[node] = Node { nic, manager, station, opener, port, starts };
        self.network.restart(station);
    }

    /// Connects two queue pairs in the reset state, each with its number; `settle` may change how
    /// each of them answers and sends.
    pub fn connect(
        &mut self,
        (a, qpn_a): (NodeId, Qpn),
        (b, qpn_b): (NodeId, Qpn),
        mtu: PathMtu,
        mut settle: impl FnMut(&mut Connection, &mut Sending),
    ) {
        let first = [self.nic(a).first_psn(), self.nic(b).first_psn()];
        for (node, qpn, peer_node, peer, own, theirs) in
            [(a, qpn_a, b, qpn_b, first[0], first[1]), (b, qpn_b, a, qpn_a, first[1], first[0])]
        {
            let path = self.path(node, peer_node);
            let mut connection = Connection::new(peer, path, mtu, theirs);
            let mut sending = Sending::new(own);
            settle(&mut connection, &mut sending);
            self.ready(node, qpn, connection, sending);
        }
    }

    /// Takes a queue pair from the reset state to sending.
    pub fn ready(&mut self, node: NodeId, qpn: Qpn, connection: Connection, sending: Sending) {
        let init = Change::Init { rights: Rights::REMOTE, pkey: Pkey::DEFAULT };
        let connection = Change::ReadyToReceive(Box::new(connection));
        for change in [init, connection, Change::ReadyToSend(sending)] {
            self.nic(node).change(qpn, change).expect("a queue pair in the reset state");
        }
    }

    /// Has a node's NIC do what was posted and what is due, and sends its frames.
    pub fn turn(&mut self, node: NodeId) {
        let now = self.network.now();
        let Node { nic, manager, station, port, .. } = &mut self.nodes[node];
        port.room = self.room.max(1);
        nic.advance(now);
        loop {
            if let Some(manager) = manager {
                manager.turn(nic, now, number);
            }
            nic.transmit(port);
            if self.lossless {
                // Each frame is a burst of its own here, and was taken before this.
                nic.look(port);
                nic.collect();
            }
            if !nic.has_work() || port.frames.len() >= port.room {
                break;
            }
        }
        for frame in port.frames.drain(..) {
            self.network.send(*station, frame);
        }
        for peer in 0..port.taken.len() {
            let (news, taken) = port.taken[peer];
            if self.lossless && news && !nic.owes() {
                port.taken[peer].0 = false;
                self.network.send(*station, progress(node, peer, taken));
            }
        }
        // What a full device had no room for goes when that has sent what it was given.
        let again = nic.has_work().then(|| now + SENT_AFTER);
        let managers = manager.as_ref().and_then(|manager| manager.own.next_timeout());
        let wake = [again, nic.next_timeout(), managers].into_iter().flatten().min();
        self.network.wake_at(*station, wake);
    }

    /// Goes on to the next thing that happens to a node, until `until` at most: the node, whose NIC
    /// has seen to it.
    pub fn step(&mut self, until: Time) -> Option<NodeId> {
        let (station, event) = self.network.step(until)?;
        let node = self.nodes.iter().position(|node| node.station == station)?;
        if let Event::Frame(frame) = event {
            self.arrive(node, &frame);
        }
        self.turn(node);
        Some(node)
    }

    /// Takes a frame in at a node, as if it had come by the network.
    pub fn arrive(&mut self, node: NodeId, frame: &[u8]) {
        let now = self.network.now();
        let Node { nic, opener, port, .. } = &mut self.nodes[node];
        nic.advance(now);
        let Ok((ethernet, rest)) = Ethernet::parse(frame) else { return };
        // A switch that does not know an address floods: what is for others is passed over.
        if ethernet.destination != mac(node) {
            return;
        }
        let from = node_of(ethernet.source);
        if self.lossless && ethernet.ethertype == PROGRESS {
            if let Some(&taken) = rest.first_chunk() {
                port.delivered[from] = u64::from_be_bytes(taken);
            }
            return;
        }
        match self.lossless {
            true => by_link(nic, opener, frame, PathId(from as u32)),
            false => nic.frame(opener, frame, None),
        }
        if let Some((news, taken)) = port.taken.get_mut(from) {
            (*news, *taken) = (true, *taken + 1);
        }
    }

    /// Runs until `done`, or until a time has passed in which it was not. Whether it was.
    pub fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let until = self.now() + limit;
        for node in 0..self.nodes.len() {
            self.turn(node);
        }
        while !done(self) {
            if self.step(until).is_none() {
                return done(self);
            }
        }
        true
    }
}

/// The way from one node to another, by the network.
fn way(version: Version, from: NodeId, to: NodeId) -> Path {
    Path::new(PathId(to as u32), outer(version, from, to))
}

/// Gives a NIC the packets of a frame as what a link brought.
fn by_link(nic: &mut Nic, opener: &mut Opener, frame: &[u8], link: PathId) {
    let arrival = match opener.open(frame, None) {
        Ok(arrival) => arrival,
        Err(why) => return nic.malformed(why),
    };
    for packet in arrival {
        match packet {
            Ok(packet) => nic.packet(Flow::Link(link), &packet),
            Err(why) => nic.malformed(why),
        }
    }
}

/// Tells `to` how many of its packets `from` has taken, and answered for.
fn progress(from: NodeId, to: NodeId, taken: u64) -> Vec<u8> {
    let ethernet = Ethernet { destination: mac(to), source: mac(from), ethertype: PROGRESS };
    let mut frame = ethernet.to_bytes().to_vec();
    frame.extend_from_slice(&taken.to_be_bytes());
    frame
}

//! NICs at the stations of a [`Network`], with connection managers beside them.
//!
//! `layouts` puts nodes and switches together as experiments have them.
//! `connection_manager` is the manager beside a NIC, and `ready` takes a queue pair from one state
//! to the next. `real_fabric` has the NICs over real devices, each of which is a `real_device`.

mod connection_manager;
mod layouts;
mod ready;
mod real_device;
mod real_fabric;

use std::time::Duration;

use doorbell_core::cm::{self, ConnectionManager};
use doorbell_core::connect::Route;
use doorbell_core::encap::{Path, PathId, Version};
use doorbell_core::nic::{Config, Connection, Nic, Seed, Sending, Way};
use doorbell_core::time::Time;
use doorbell_core::wire::{Mac, PathMtu, Qpn};

use crate::ids::StationId;
use crate::network::Counters;
use crate::network::{Event, Network};
use crate::station::addressing::{mac, number_of, path_between};
use crate::station::port::Port;
use connection_manager::{Manager, default_config};
pub use layouts::{LeafSpine, LeafSpineSize, Star};
pub use ready::ready;
use real_device::{RealDevice, RealTime};

/// The number of a node of a fabric. Nodes are numbered from 0 as they were added.
pub type NodeId = usize;

/// Several NICs and the network between them, in one virtual time.
///
/// The test plays the programs: it holds the queues that [`nic`](Self::nic) gave, posts requests,
/// rings doorbells, and calls [`turn`](Self::turn), or lets a [`step`](Self::step) do that.
pub struct Fabric {
    /// The network between the NICs. For a lossless fabric, the network must be lossless: no
    /// faults, no full switches.
    pub network: Network,
    /// The packets that a NIC's device takes before it is full, and needs a microsecond to send
    /// them.
    pub room: usize,
    pub(crate) nodes: Vec<Node>,
    /// The node at each station, by the stations' numbers.
    node_at: Vec<Option<NodeId>>,
    /// The time of a fabric over real devices.
    pub(crate) real_time: Option<RealTime>,
    version: Version,
    pub(crate) lossless: bool,
    seed: u64,
    config: Config,
}

pub(crate) struct Node {
    pub(crate) nic: Nic,
    manager: Option<Manager>,
    station: StationId,
    port: Port,
    /// The device of the node, in a fabric over real devices.
    pub(crate) real: Option<RealDevice>,
    starts: u64,
    /// Whether the node has sent something since its clock was read.
    late: bool,
    /// The frames that have come since the node was stopped; `None` if the node runs.
    waiting: Option<Vec<Vec<u8>>>,
    /// The time until which the node's processor is busy; `None` if it is free. The frames that
    /// come meanwhile are in `queued`.
    busy: Option<Time>,
    queued: Vec<Vec<u8>>,
}

/// The time after which a full device has room again.
const SENT_AFTER: Duration = Duration::from_micros(1);

/// The number of the path along a route: that of the peer.
fn number(route: &Route) -> PathId {
    match route.way() {
        Way::Link(link) => *link,
        Way::Network(outer) => PathId(number_of(outer.ethernet().destination) as u32),
    }
}

impl Fabric {
    /// Makes a fabric without nodes, in which all chance comes from `seed`. With `config.lossless`,
    /// the NICs are told what was delivered, and recover from nothing.
    pub fn new(seed: u64, version: Version, config: Config) -> Self {
        let lossless = config.lossless;
        let network = Network::new(seed);
        let (nodes, room) = (Vec::new(), usize::MAX);
        let node_at = Vec::new();
        Self { network, room, nodes, node_at, real_time: None, version, lossless, seed, config }
    }

    /// Adds a node, which is a station with a NIC.
    pub fn node(&mut self) -> NodeId {
        let (node, station) = (self.nodes.len(), self.network.station());
        let nic = self.new_nic(node, 0);
        let port = Port::new(node, self.version, self.lossless);
        self.node_at.resize(station.index() + 1, None);
        self.node_at[station.index()] = Some(node);
        self.nodes.push(Node {
            nic,
            manager: None,
            station,
            port,
            real: None,
            starts: 0,
            late: false,
            waiting: None,
            busy: None,
            queued: Vec::new(),
        });
        node
    }

    /// The seed for one start of a node.
    fn seed_of(&self, node: NodeId, starts: u64) -> u64 {
        self.seed ^ (node as u64 + 1) << 40 ^ (starts + 1) << 20
    }

    fn new_nic(&self, node: NodeId, starts: u64) -> Nic {
        let seed = Seed::from_number(self.seed_of(node, starts));
        Nic::new(self.config, seed).expect("a numbering that can be")
    }

    /// Adds a node with a connection manager beside its NIC. `settle` may change the manager's
    /// configuration.
    pub fn managed_node(&mut self, settle: impl FnOnce(&mut cm::Config)) -> NodeId {
        let node = self.node();
        let mut config = default_config(node);
        settle(&mut config);
        let seed = self.seed_of(node, 0) ^ 1;
        self.nodes[node].manager = Some(Manager::new(config, seed));
        node
    }

    /// The connection manager of a node that has one. Calls to the manager take effect with the
    /// next [`turn`](Self::turn), which also hands received datagrams to it.
    pub fn manager(&mut self, node: NodeId) -> &mut ConnectionManager<Route> {
        let manager = self.nodes[node].manager.as_mut();
        &mut manager.expect("a node that was added as a managed one").own
    }

    /// The route from the manager of one node to the manager of another.
    pub fn route(&self, from: NodeId, to: NodeId) -> Route {
        match self.lossless {
            true => Route::new(Way::Link(PathId(to as u32))),
            false => Route::along(&self.path(from, to)),
        }
    }

    /// The path for queue pairs along a manager's route.
    pub fn path_along(&self, route: &Route) -> Path {
        route.path(number(route))
    }

    /// The station of a node, to plug cables into.
    pub fn station(&self, node: NodeId) -> StationId {
        self.nodes[node].station
    }

    /// The hardware address of a node, by which switches know it.
    pub fn address(&self, node: NodeId) -> Mac {
        mac(node)
    }

    /// The NIC of a node.
    pub fn nic(&mut self, node: NodeId) -> &mut Nic {
        &mut self.nodes[node].nic
    }

    /// The number of nodes of the fabric.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The virtual time of the fabric.
    pub fn now(&self) -> Time {
        self.real_time.as_ref().map_or(self.network.now(), RealTime::now)
    }

    /// The time of the next possible event; `None` if nothing will happen by itself.
    pub fn next_at(&mut self) -> Option<Time> {
        if self.real_time.is_some() { self.next_at_real() } else { self.network.next_at() }
    }

    /// The number of packets that are on their way.
    pub fn in_flight(&mut self) -> usize {
        if self.real_time.is_some() { self.under_way() as usize } else { self.network.in_flight() }
    }

    /// The counts of packets by what has become of them so far.
    pub fn counters(&mut self) -> Counters {
        if self.real_time.is_some() { self.counters_real() } else { *self.network.counters() }
    }

    /// The path from one node to another. On a lossless fabric the path is a mere link.
    pub fn path(&self, from: NodeId, to: NodeId) -> Path {
        match self.nodes.get(from).and_then(|node| node.real.as_ref()) {
            Some(real) => real.path(to),
            None if self.lossless => Path::link(PathId(to as u32)),
            None => path_between(self.version, from, to),
        }
    }

    /// Restarts a node with a new NIC and a new manager, which keep nothing of the old ones but the
    /// address.
    pub fn restart(&mut self, node: NodeId) {
        let starts = self.nodes[node].starts + 1;
        let nic = self.new_nic(node, starts);
        let station = self.nodes[node].station;
        let port = Port::new(node, self.version, self.lossless);
        let seed = self.seed_of(node, starts) ^ 1;
        let manager = self.nodes[node].manager.take().map(|old| old.anew(seed));
        let (busy, queued) = (None, Vec::new());
        let (real, late, waiting) = (None, false, None);
        self.nodes[node] =
            Node { nic, manager, station, port, real, starts, late, waiting, busy, queued };
        self.network.restart(station);
    }

    /// Connects two queue pairs in the reset state, each given by node and number. `settle` may
    /// change the connection and the sending of each.
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

    /// Takes a queue pair from the reset state to ready to send.
    pub fn ready(&mut self, node: NodeId, qpn: Qpn, connection: Connection, sending: Sending) {
        ready(self.nic(node), qpn, connection, sending);
    }

    /// Has a node's NIC carry out posted requests and due timers, and sends its frames.
    pub fn turn(&mut self, node: NodeId) {
        if self.real_time.is_some() {
            return self.turn_real(node);
        }
        if self.nodes[node].waiting.is_some() {
            return;
        }
        let Node { station, busy, .. } = self.nodes[node];
        if busy > Some(self.network.now()) {
            return self.network.wake_at(station, busy);
        }
        self.nodes[node].busy = None;
        for frame in std::mem::take(&mut self.nodes[node].queued) {
            self.arrive(node, &frame);
        }
        self.advance(node);
        let now = self.network.now();
        let Node { nic, manager, station, port, .. } = &mut self.nodes[node];
        port.room = self.room.max(1);
        loop {
            if let Some(manager) = manager {
                manager.turn(nic, now, number);
            }
            if self.lossless {
                nic.collect(port);
            }
            nic.transmit(port);
            if !nic.has_work() || port.frames.len() >= port.room {
                break;
            }
        }
        for frame in port.frames.drain(..) {
            self.network.send(*station, frame);
        }
        port.settle(nic.unsent_responses(), |frame| self.network.send(*station, frame));
        // The packets for which a full device had no room follow once the device has sent the
        // others.
        let again = nic.has_work().then(|| now + SENT_AFTER);
        let managers = manager.as_ref().and_then(|manager| manager.own.next_timeout());
        let wake = [again, nic.next_timeout(), managers].into_iter().flatten().min();
        self.network.wake_at(*station, wake);
    }

    /// Goes on to the next event at a node, until `until` at most, and has the node's NIC handle
    /// it. Returns the node.
    pub fn step(&mut self, until: Time) -> Option<NodeId> {
        if self.real_time.is_some() {
            return self.step_real(until);
        }
        let (station, event) = self.network.step(until)?;
        let node = self.node_at.get(station.index()).copied().flatten()?;
        if let Event::Frame(frame) = event {
            let is_busy = !self.is_free(node);
            match &mut self.nodes[node] {
                Node { waiting: Some(waiting), .. } => waiting.push(frame),
                Node { queued, .. } if is_busy => queued.push(frame),
                _ => self.arrive(node, &frame),
            }
        }
        self.turn(node);
        Some(node)
    }

    /// Keeps a node's processor busy for `time`, behind what keeps it busy already. Meanwhile the
    /// NIC takes no turn, since on a host without an adapter the NIC is the processor's work, too:
    /// posted requests leave, and frames are taken in, when the processor is free. A test spends
    /// the cost of an operation on its host this way, in virtual time.
    ///
    /// This works only over a simulated network.
    pub fn work(&mut self, node: NodeId, time: Duration) {
        assert!(self.real_time.is_none(), "real devices have processors of their own");
        let now = self.network.now();
        let Node { station, busy, .. } = &mut self.nodes[node];
        *busy = Some(busy.unwrap_or(now) + time);
        self.network.wake_at(*station, *busy);
    }

    /// Returns whether a node's processor has done all its [work](Self::work).
    pub fn is_free(&self, node: NodeId) -> bool {
        self.nodes[node].busy.is_none()
    }

    /// Gives a frame to a node, as if the frame had come by the network.
    pub fn arrive(&mut self, node: NodeId, frame: &[u8]) {
        self.advance(node);
        let Node { nic, port, .. } = &mut self.nodes[node];
        port.arrive(frame, nic);
    }

    fn advance(&mut self, node: NodeId) {
        let now = self.network.now();
        let Node { nic, late, .. } = &mut self.nodes[node];
        if std::mem::take(late) {
            nic.skip_time(now);
        }
        nic.advance(now);
    }

    /// Stops a node, as a process that gets no processor: frames to the node wait, and nothing that
    /// is due is done.
    pub fn stop(&mut self, node: NodeId) {
        self.nodes[node].waiting = Some(Vec::new());
    }

    /// Resumes a stopped node as a program goes on: it takes in the frames that have come, and does
    /// what is due afterwards. The clock is read before, unless the node has
    /// [sent](Self::send_late) something since it was stopped.
    pub fn resume(&mut self, node: NodeId) {
        let now = self.network.now();
        let Node { nic, port, waiting, late, .. } = &mut self.nodes[node];
        if !*late {
            nic.set_time(now);
        }
        for frame in waiting.take().into_iter().flatten() {
            port.arrive(&frame, nic);
        }
        self.turn(node);
    }

    /// Has a node's NIC send posted requests without reading the clock, as a program does that
    /// posts after a pause in which nobody took turns. The NIC's next turn reads the clock.
    pub fn send_late(&mut self, node: NodeId) {
        let Node { nic, station, port, late, .. } = &mut self.nodes[node];
        *late = true;
        nic.transmit(port);
        for frame in port.frames.drain(..) {
            self.network.send(*station, frame);
        }
    }

    /// Runs until `done` returns true, for `limit` at most. Returns whether `done` has returned
    /// true.
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

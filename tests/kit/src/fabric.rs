//! NICs at the stations of a [`Network`], and connection managers beside them.

use std::time::Duration;

use doorbell_core::cm::{self, ConnectionManager};
use doorbell_core::connect::Route;
use doorbell_core::encap::{Path, PathId, Version};
use doorbell_core::nic::{Config, Connection, Nic, Seed, Sending, Way};
use doorbell_core::time::Time;
use doorbell_core::wire::{PathMtu, Qpn};

use crate::counters::Counters;
use crate::managers::{Manager, customary};
use crate::network::{Event, Network, StationId};
use crate::over::{Real, World};
use crate::port::Port;
use crate::rig::ready;
use crate::ways::{number_of, way};

/// Which node of a fabric: they are numbered as they were added, from 0.
pub type NodeId = usize;

/// Several NICs and the network between them, in one virtual time.
///
/// Programs are whoever holds the queues that [`nic`](Self::nic) gave: they post, ring, and call
/// [`turn`](Self::turn), or let a [`step`](Self::step) do it.
pub struct Fabric {
    /// The network. A lossless fabric counts on it to be that: no faults, no full switches.
    pub network: Network,
    /// How many packets a NIC's device takes before it is full, and needs a microsecond to send
    /// them.
    pub room: usize,
    pub(crate) nodes: Vec<Node>,
    /// Of a fabric over real devices.
    pub(crate) world: Option<World>,
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
    /// Its device, if the fabric is over real ones.
    pub(crate) real: Option<Real>,
    starts: u64,
    /// Whether it has worked since its clock was read.
    late: bool,
    /// Frames that have come since it was stopped, if it is.
    waiting: Option<Vec<Vec<u8>>>,
    /// Until when the node's processor is busy, if it is, and the frames that have come meanwhile.
    busy: Option<Time>,
    queued: Vec<Vec<u8>>,
}

/// How long a full device takes to have room again.
const SENT_AFTER: Duration = Duration::from_micros(1);

/// The number of the path that a route leads along: the peer's.
fn number(route: &Route) -> PathId {
    match route.way() {
        Way::Link(link) => *link,
        Way::Network(outer) => PathId(number_of(outer.ethernet().destination) as u32),
    }
}

impl Fabric {
    /// A fabric without nodes, on which all chance comes from `seed`. With `config.lossless`, its
    /// NICs are told what was delivered, and recover from nothing.
    pub fn new(seed: u64, version: Version, config: Config) -> Self {
        let lossless = config.lossless;
        let network = Network::new(seed);
        let (nodes, room) = (Vec::new(), usize::MAX);
        Self { network, room, nodes, world: None, version, lossless, seed, config }
    }

    /// Adds a node: a station, and a NIC at it.
    pub fn node(&mut self) -> NodeId {
        let (node, station) = (self.nodes.len(), self.network.station());
        let nic = self.new_nic(node, 0);
        let port = Port::new(node, self.version, self.lossless);
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
        self.world.as_ref().map_or(self.network.now(), World::now)
    }

    /// When something may happen next; never, if nothing will by itself.
    pub fn next_at(&mut self) -> Option<Time> {
        if self.world.is_some() { self.next_over() } else { self.network.next_at() }
    }

    /// How many packets are on their way.
    pub fn in_flight(&mut self) -> usize {
        if self.world.is_some() { self.under_way() as usize } else { self.network.in_flight() }
    }

    /// What became of the packets so far.
    pub fn counters(&mut self) -> Counters {
        if self.world.is_some() { self.counters_over() } else { *self.network.counters() }
    }

    /// The way from one node to another: on a lossless fabric, a mere link.
    pub fn path(&self, from: NodeId, to: NodeId) -> Path {
        match self.nodes.get(from).and_then(|node| node.real.as_ref()) {
            Some(real) => real.path(to),
            None if self.lossless => Path::link(PathId(to as u32)),
            None => way(self.version, from, to),
        }
    }

    /// Switches a node off and on: a new NIC and a new manager, with nothing of the old ones but
    /// their address.
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
        ready(self.nic(node), qpn, connection, sending);
    }

    /// Has a node's NIC do what was posted and what is due, and sends its frames.
    pub fn turn(&mut self, node: NodeId) {
        if self.world.is_some() {
            return self.turn_over(node);
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
        port.settle(nic.owes(), |frame| self.network.send(*station, frame));
        // What a full device had no room for goes when that has sent what it was given.
        let again = nic.has_work().then(|| now + SENT_AFTER);
        let managers = manager.as_ref().and_then(|manager| manager.own.next_timeout());
        let wake = [again, nic.next_timeout(), managers].into_iter().flatten().min();
        self.network.wake_at(*station, wake);
    }

    /// Goes on to the next thing that happens to a node, until `until` at most: the node, whose NIC
    /// has seen to it.
    pub fn step(&mut self, until: Time) -> Option<NodeId> {
        if self.world.is_some() {
            return self.step_over(until);
        }
        let (station, event) = self.network.step(until)?;
        let node = self.nodes.iter().position(|node| node.station == station)?;
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

    /// Has a node's processor be busy for so long, behind whatever it is busy with already. Until it
    /// is free its NIC takes no turn, since on a host without an adapter that is the processor's
    /// work, too: what was posted leaves, and what comes is taken in, when it is free. A program
    /// spends so what an operation of its host costs, in virtual time.
    ///
    /// Only over a simulated network.
    pub fn work(&mut self, node: NodeId, time: Duration) {
        assert!(self.world.is_none(), "real devices have processors of their own");
        let now = self.network.now();
        let Node { station, busy, .. } = &mut self.nodes[node];
        *busy = Some(busy.unwrap_or(now) + time);
        self.network.wake_at(*station, *busy);
    }

    /// Whether a node's processor has nothing left to do of its [work](Self::work).
    pub fn is_free(&self, node: NodeId) -> bool {
        self.nodes[node].busy.is_none()
    }

    /// Takes a frame in at a node, as if it had come by the network.
    pub fn arrive(&mut self, node: NodeId, frame: &[u8]) {
        self.advance(node);
        let Node { nic, port, .. } = &mut self.nodes[node];
        port.arrive(frame, nic);
    }

    fn advance(&mut self, node: NodeId) {
        let now = self.network.now();
        let Node { nic, late, .. } = &mut self.nodes[node];
        if std::mem::take(late) {
            nic.leap(now);
        }
        nic.advance(now);
    }

    /// Stops a node, as a process is that gets no processor: what comes to it waits, and nothing is
    /// done that is due.
    pub fn stop(&mut self, node: NodeId) {
        self.nodes[node].waiting = Some(Vec::new());
    }

    /// Lets a node that was stopped go on as a program does: it takes in what has come, and does
    /// what is due afterwards. The clock is read before, unless the node has
    /// [sent](Self::send_late) something since it was stopped.
    pub fn resume(&mut self, node: NodeId) {
        let now = self.network.now();
        let Node { nic, port, waiting, late, .. } = &mut self.nodes[node];
        if !*late {
            nic.tell(now);
        }
        for frame in waiting.take().into_iter().flatten() {
            port.arrive(&frame, nic);
        }
        self.turn(node);
    }

    /// Has a node's NIC send what was posted without a look at the clock, as a program does that
    /// posts after a pause in which nobody took turns. Its next turn reads the clock.
    pub fn send_late(&mut self, node: NodeId) {
        let Node { nic, station, port, late, .. } = &mut self.nodes[node];
        *late = true;
        nic.transmit(port);
        for frame in port.frames.drain(..) {
            self.network.send(*station, frame);
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

//! Nodes with a program each, joined and connected.

use std::time::Duration;

use doorbell_core::encap::Version;
use doorbell_core::memory::{Buf, Region};
use doorbell_core::nic::*;
use doorbell_core::wire::{PathMtu, Qpn, RemoteAddr};
use doorbell_simulation::{Fabric, LinkConfig, LinkId, NodeId};

/// What a program holds of its node.
pub struct End {
    pub node: NodeId,
    pub qpn: Qpn,
    pub domain: Domain,
    pub queue_id: CompletionQueueId,
    pub queue: CompletionQueue,
    pub send: SendQueue,
    pub receive: ReceiveQueue,
}

impl End {
    /// A queue pair of `node` with queues of `depth`, and a completion queue of `capacity` to it
    /// alone.
    pub fn new(fabric: &mut Fabric, node: NodeId, depth: usize, capacity: usize) -> Self {
        Self::of(fabric, node, Transport::Reliable, depth, capacity)
    }

    /// The same with another transport.
    pub fn of(
        fabric: &mut Fabric,
        node: NodeId,
        transport: Transport,
        depth: usize,
        capacity: usize,
    ) -> Self {
        let nic = fabric.nic(node);
        let domain = nic.domain();
        let (queue_id, queue) = nic.completion_queue(capacity).unwrap();
        let config = QueuePairConfig {
            transport,
            send_depth: depth,
            receive_depth: depth,
            ..QueuePairConfig::new(domain, queue_id)
        };
        let QueuePairEnds { qpn, send, receive } = nic.queue_pair(&config).unwrap();
        Self { node, qpn, domain, queue_id, queue, send, receive }
    }

    /// Posts a request and rings.
    pub fn post(&mut self, request: WorkRequest) {
        self.send.post(request).unwrap();
        self.send.ring();
    }

    /// Posts a receive.
    pub fn receive(&mut self, id: u64, memory: impl Into<Memory>) {
        self.receive.post(ReceiveRequest { id, memory: memory.into() }).unwrap();
    }

    /// Posts `count` receives of `room` bytes, numbered from 0.
    pub fn receives(&mut self, count: u64, room: usize) {
        (0..count).for_each(|id| self.receive(id, Buf::with_capacity(room)));
    }

    /// Registers memory that peers may do everything with.
    pub fn open(&self, fabric: &mut Fabric, len: usize) -> (Region, Registration) {
        let region = Region::new(len);
        let rights = Rights::LOCAL_WRITE | Rights::REMOTE | Rights::REMOTE_INVALIDATE;
        let nic = fabric.nic(self.node);
        let registration = nic.register(self.domain, region.clone(), rights).unwrap();
        (region, registration)
    }

    /// Has the queue pair forget its connection.
    pub fn reset(&mut self, fabric: &mut Fabric) -> Result<(), ChangeError> {
        fabric.nic(self.node).reset(&mut self.send, &mut self.receive)
    }

    /// What completed.
    pub fn poll(&mut self) -> Vec<Completion> {
        std::iter::from_fn(|| self.queue.poll()).collect()
    }
}

/// How long peers may be silent in most tests: a second while they are waited for.
pub const BRIEF: KeepAlive =
    KeepAlive { idle: Duration::from_secs(30), busy: Duration::from_secs(1) };

/// How two nodes are joined.
pub struct Setup {
    pub seed: u64,
    pub version: Version,
    pub config: Config,
    pub cable: LinkConfig,
    pub mtu: PathMtu,
    pub depth: usize,
    pub capacity: usize,
    pub transport: Transport,
}

impl Default for Setup {
    /// A perfect cable of a microsecond, packets of 1024 bytes, queues of 64.
    fn default() -> Self {
        Self {
            seed: 1,
            version: Version::V2Ipv4,
            config: Config {
                queue_pairs: 16,
                registrations: 16,
                keep_alive: BRIEF,
                ..Config::default()
            },
            cable: LinkConfig { mtu: 9000, ..LinkConfig::default() },
            mtu: PathMtu::Mtu1024,
            depth: 64,
            capacity: 256,
            transport: Transport::Reliable,
        }
    }
}

/// The same over devices that cannot lose.
pub fn lossless() -> Setup {
    let config = Config { lossless: true, ..Setup::default().config };
    Setup { config, ..Setup::default() }
}

/// Two nodes and the cable between them.
pub struct Two {
    pub fabric: Fabric,
    pub cable: LinkId,
    pub a: End,
    pub b: End,
}

impl Setup {
    /// Two nodes with a queue pair each, in the reset state.
    pub fn unconnected(&self) -> Two {
        let mut fabric = Fabric::new(self.seed, self.version, self.config);
        let nodes = [fabric.node(), fabric.node()];
        let stations = nodes.map(|node| fabric.station(node));
        let cable = fabric.network.link(stations[0], stations[1], self.cable);
        let (transport, depth, capacity) = (self.transport, self.depth, self.capacity);
        let [a, b] = nodes.map(|node| End::of(&mut fabric, node, transport, depth, capacity));
        Two { fabric, cable, a, b }
    }

    /// The same, connected.
    pub fn connected(&self, settle: impl FnMut(&mut Connection, &mut Sending)) -> Two {
        let mut two = self.unconnected();
        let Two { fabric, a, b, .. } = &mut two;
        fabric.connect((a.node, a.qpn), (b.node, b.qpn), self.mtu, settle);
        two
    }
}

impl Two {
    /// Two nodes as most tests want them.
    pub fn new() -> Self {
        Setup::default().connected(|_, _| {})
    }

    /// Runs until so many completions have come on each side, and returns those.
    pub fn run(&mut self, at_a: usize, at_b: usize) -> (Vec<Completion>, Vec<Completion>) {
        let Self { fabric, a, b, .. } = self;
        let (mut found_a, mut found_b) = (Vec::new(), Vec::new());
        let done = fabric.run_until(Duration::from_secs(20), |_| {
            found_a.extend(a.poll());
            found_b.extend(b.poll());
            found_a.len() >= at_a && found_b.len() >= at_b
        });
        let counters = self.counters();
        assert!(done, "{at_a} and {at_b}, but: {found_a:#?} {found_b:#?} {counters:#?}");
        (found_a, found_b)
    }

    /// Runs for as long as that.
    pub fn run_for(&mut self, time: Duration) {
        self.fabric.run_until(time, |_| false);
    }

    pub fn counters(&mut self) -> (Counters, Counters) {
        (*self.fabric.nic(self.a.node).counters(), *self.fabric.nic(self.b.node).counters())
    }
}

/// Bytes that differ from place to place.
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 256) as u8).collect()
}

/// A send of a few bytes.
pub fn short(id: u64) -> WorkRequest {
    WorkRequest::send(id, inline(&id.to_ne_bytes()))
}

pub fn inline(bytes: &[u8]) -> Inline {
    Inline::new(bytes).unwrap()
}

/// A place in a peer's registered memory.
pub fn at(registration: &Registration, offset: u64) -> RemoteAddr {
    RemoteAddr(registration.address.0 + offset)
}

/// The bytes that a receive brought.
pub fn bytes(completion: &Completion) -> &[u8] {
    match &completion.memory {
        Memory::Buf(buf) => buf,
        other => panic!("{other:?} is no buffer"),
    }
}

/// What memory holds.
pub fn content(region: &Region) -> Vec<u8> {
    let mut bytes = vec![0; region.len()];
    region.read_at(0, &mut bytes).unwrap();
    bytes
}

/// What became of each.
pub fn outcomes(completions: &[Completion]) -> Vec<(u64, Result<Done, Failure>)> {
    completions.iter().map(|completion| (completion.id, completion.outcome)).collect()
}

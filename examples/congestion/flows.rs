//! Flows between the nodes of a fabric: each is a connection, by which a node writes to another.

use std::collections::VecDeque;
use std::time::Duration;

use doorbell::protocol::memory::Region;
use doorbell::protocol::nic::{
    CompletionQueue, CompletionQueueId, Config, Domain, QueuePairConfig, QueuePairEnds,
    Registration, Rights, WorkRequest,
};
use doorbell::protocol::time::Time;
use doorbell::protocol::wire::PathMtu;
use doorbell_simulation::{Fabric, NodeId};

use crate::runs::Transport;

/// The bytes of memory at each node.
const MEMORY: usize = 256 << 10;

/// For how long a flow that makes no progress is not given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// The bytes of a short message.
const SHORT: u64 = 64;

/// The operation by which a flow moves its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// From the node that posts.
    Write,
    /// To the node that posts.
    Read,
}

/// The settings that all flows of a run share.
#[derive(Clone, Copy)]
pub struct Settings {
    pub transport: Transport,
    pub mtu: PathMtu,
    /// The most bytes of a flow that are unacknowledged.
    pub window: u32,
    /// The most bytes of a message, and how many messages are posted at a time.
    pub message: u64,
    pub depth: usize,
    pub operation: Operation,
    /// How many routes a connection tries.
    pub paths: u8,
}

/// A node with its memory.
struct Place {
    node: NodeId,
    domain: Domain,
    queue_id: CompletionQueueId,
    queue: CompletionQueue,
    memory: Registration,
}

/// Messages that one node writes to another, or reads from it, one after the other.
pub struct Flow {
    from: usize,
    pair: QueuePairEnds,
    /// The ends of the queue pair at the other node, which only take in what is written.
    _peer: QueuePairEnds,
    to: Registration,
    operation: Operation,
    /// The most bytes of a message, and how many are posted at a time.
    message: u64,
    depth: usize,
    /// When the messages that are under way were posted.
    posted: VecDeque<Time>,
    /// How long each message took, in nanoseconds.
    pub took: Vec<u64>,
    /// How many bytes are still to be posted; `None` if the flow never ends.
    left: Option<u64>,
    /// How many bytes were acknowledged.
    pub done: u64,
    /// When a message of it came last, and the longest that there was none since counting began.
    last: Time,
    longest_pause: Duration,
    /// When all of it was.
    pub ended: Option<Time>,
}

impl Flow {
    /// Has the flow end with the messages that are posted.
    pub fn end(&mut self) {
        self.left = Some(0);
    }
}

/// Nodes, and the flows between them.
pub struct Flows {
    pub fabric: Fabric,
    places: Vec<Place>,
    /// The place of each node, by the nodes' numbers.
    place_of: Vec<usize>,
    pub flows: Vec<Flow>,
    /// How many time-outs there were before counting began.
    pub timeouts_before: u64,
    settings: Settings,
}

/// The configuration of a NIC with so many connections.
pub fn config(connections: usize) -> Config {
    Config { queue_pairs: connections.max(1), registrations: 2, ..Config::default() }
}

impl Flows {
    pub fn new(mut fabric: Fabric, nodes: &[NodeId], settings: Settings, most: usize) -> Self {
        let places = nodes.iter().map(|&node| {
            let nic = fabric.nic(node);
            let domain = nic.domain();
            let (queue_id, queue) = nic.completion_queue(4 * most + 8).expect("room");
            let region = Region::new(MEMORY);
            let memory = nic
                .register(
                    domain,
                    region,
                    Rights::LOCAL_WRITE | Rights::REMOTE_WRITE | Rights::REMOTE_READ,
                )
                .expect("room");
            Place { node, domain, queue_id, queue, memory }
        });
        let places: Vec<_> = places.collect();
        let mut place_of = vec![0; fabric.nodes()];
        places.iter().enumerate().for_each(|(at, place)| place_of[place.node] = at);
        Self { fabric, places, place_of, flows: Vec::new(), timeouts_before: 0, settings }
    }

    /// Adds a flow of so many bytes from one node to another, by their places.
    pub fn add(&mut self, from: usize, to: usize, bytes: Option<u64>) {
        let Settings { message, depth, operation, .. } = self.settings;
        self.add_flow((from, to), operation, message, depth, bytes);
    }

    /// Adds a flow of short messages that are written one after the other, without end.
    pub fn add_short(&mut self, from: usize, to: usize) {
        self.add_flow((from, to), Operation::Write, SHORT, 1, None);
    }

    fn add_flow(
        &mut self,
        (from, to): (usize, usize),
        operation: Operation,
        message: u64,
        depth: usize,
        left: Option<u64>,
    ) {
        let Self { fabric, places, settings, .. } = self;
        let Settings { transport, mtu, window, paths, .. } = *settings;
        let mut pair_at = |place: &Place| {
            let config = QueuePairConfig {
                send_depth: settings.depth,
                receive_depth: 1,
                ..QueuePairConfig::new(place.domain, place.queue_id)
            };
            fabric.nic(place.node).queue_pair(&config).expect("room for another")
        };
        let (pair, peer) = (pair_at(&places[from]), pair_at(&places[to]));
        let ends = [(places[from].node, pair.qpn), (places[to].node, peer.qpn)];
        let selective = transport == Transport::Selective;
        fabric.connect(ends[0], ends[1], mtu, |connection, sending| {
            sending.window = (window / mtu.bytes() as u32).max(1);
            (connection.selective, sending.selective) = (selective, selective);
            (sending.congestion, sending.paths) = (selective, paths);
            // Without control, whole seconds may pass before anything of a flow comes through.
            sending.patience = PATIENCE;
        });
        let to = places[to].memory;
        self.flows.push(Flow {
            from,
            pair,
            _peer: peer,
            to,
            operation,
            message,
            depth,
            posted: VecDeque::new(),
            took: Vec::new(),
            left,
            done: 0,
            last: Time::ZERO,
            longest_pause: Duration::ZERO,
            ended: None,
        });
    }

    /// Posts what there is room for.
    fn post(&mut self, index: usize) -> bool {
        let mut posted = false;
        loop {
            let flow = &mut self.flows[index];
            if flow.posted.len() == flow.depth || flow.left == Some(0) {
                return posted;
            }
            let len = flow.left.map_or(flow.message, |left| left.min(flow.message));
            flow.left = flow.left.map(|left| left - len);
            flow.posted.push_back(self.fabric.now());
            self.post_message(index, len);
            posted = true;
        }
    }

    /// Posts a message.
    fn post_message(&mut self, index: usize, len: u64) {
        let flow = &mut self.flows[index];
        let data = self.places[flow.from].memory.segment(0, len as u32);
        let (id, address, rkey) = ((index as u64) << 20 | len, flow.to.address, flow.to.rkey);
        let request = match flow.operation {
            Operation::Write => WorkRequest::write(id, address, rkey, data),
            Operation::Read => WorkRequest::read(id, address, rkey, data),
        };
        flow.pair.send.post(request.awaited()).expect("there is room");
        flow.pair.send.ring();
    }

    /// Runs until all flows have ended, or for so long. Returns whether all have ended.
    pub fn run(&mut self, limit: Duration) -> bool {
        let until = self.fabric.now() + limit;
        for index in 0..self.flows.len() {
            self.post(index);
        }
        for place in &self.places {
            self.fabric.turn(place.node);
        }
        let mut open = self.flows.iter().filter(|flow| flow.ended.is_none()).count();
        while open > 0 {
            let Some(node) = self.fabric.step(until) else { return false };
            open -= self.collect(node);
        }
        true
    }

    /// Forgets what was done until now, so that what is counted is what is done from now on.
    pub fn begin_counting(&mut self) {
        self.timeouts_before = self.timeouts();
        for flow in &mut self.flows {
            flow.done = 0;
            flow.took.clear();
            (flow.last, flow.longest_pause) = (self.fabric.now(), Duration::ZERO);
        }
    }

    /// The longest that no message of some flow came, since counting began.
    pub fn longest_pause(&self) -> Duration {
        let now = self.fabric.now();
        let pause = |flow: &Flow| flow.longest_pause.max(now.since(flow.last));
        self.flows.iter().map(pause).max().unwrap_or_default()
    }

    /// How many time-outs there were at all nodes.
    pub fn timeouts(&mut self) -> u64 {
        let Self { fabric, places, .. } = self;
        places.iter().map(|place| fabric.nic(place.node).counters().timeouts).sum()
    }

    /// Takes what was completed at a node, and posts more. Returns how many flows have ended.
    fn collect(&mut self, node: NodeId) -> usize {
        let (mut ended, mut posted) = (0, false);
        for index in self.take(node) {
            let flow = &mut self.flows[index];
            if flow.left == Some(0) && flow.posted.is_empty() {
                flow.ended = Some(self.fabric.now());
                ended += 1;
            }
            posted |= self.post(index);
        }
        if posted {
            self.fabric.turn(node);
        }
        ended
    }

    /// Takes what was completed at a node. Returns the flows that it was of.
    fn take(&mut self, node: NodeId) -> Vec<usize> {
        let place = self.place_of[node];
        let mut completed = Vec::new();
        while let Some(completion) = self.places[place].queue.poll() {
            completion.outcome.expect("losses are made good");
            let (index, len) = ((completion.id >> 20) as usize, completion.id & 0xF_FFFF);
            let flow = &mut self.flows[index];
            flow.done += len;
            let posted = flow.posted.pop_front().expect("it was posted");
            let now = self.fabric.now();
            flow.took.push(now.since(posted).as_nanos() as u64);
            flow.longest_pause = flow.longest_pause.max(now.since(flow.last));
            flow.last = now;
            completed.push(index);
        }
        completed
    }
}

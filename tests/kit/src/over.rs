//! NICs over real devices, as a fabric.
//!
//! While packets are on their way, time is the world's. Where none is, nothing can happen before
//! the next timer goes off, and time goes on to that at once: who waits for a second need not wait
//! for one.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use doorbell_core::encap::{Full, Host, Path, PathId, Version};
use doorbell_core::nic::{Config, Flow, Inbox, Nic, Outbox};
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::{Headers, Malformed, Packet};
use doorbell_transports::{AnyDevice, Clock, Device};

use crate::counters::Counters;
use crate::fabric::{Fabric, Node, NodeId};

/// How long packets are waited for that were sent, did not arrive, and were not counted as lost.
const LOST_AFTER: Duration = Duration::from_millis(50);

/// How long somebody who can't know better looks whether a packet arrives.
const LOOK: Duration = Duration::from_micros(100);

/// How often the devices of a pair are asked for each other's address: they answer each other.
const MOST_QUESTIONS: usize = 100_000;

/// What real devices need that a simulated network does not.
pub(crate) struct World {
    clock: Clock,
    /// How far time went on at once, in all.
    skipped: Duration,
    /// When something last arrived, and the node that it is looked at first.
    last: Time,
    next: NodeId,
    /// Packets that were waited for in vain.
    forgotten: u64,
}

impl World {
    pub(crate) fn now(&self) -> Time {
        self.clock.now() + self.skipped
    }
}

/// A node's device, and what became of the packets that went through it.
pub(crate) struct Real {
    device: AnyDevice,
    /// The ways to all nodes; that to itself is never used.
    paths: Vec<Path>,
    /// Of each link on which nothing is lost: the last ticket, and the last that was delivered when
    /// the NIC was about to collect.
    tickets: BTreeMap<u32, (u64, u64)>,
    arrived: u64,
}

impl Real {
    pub(crate) fn path(&self, to: NodeId) -> Path {
        self.paths[to].clone()
    }

    /// Looks what was delivered. Whether something was.
    fn hear(&mut self) -> bool {
        let mut news = false;
        for (&path, (_, delivered)) in &mut self.tickets {
            let before = std::mem::replace(delivered, self.device.delivered(PathId(path)));
            news |= *delivered != before;
        }
        news
    }
}

impl Outbox for Real {
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        let ticket = self.device.push(path, headers, payload)?;
        self.tickets.entry(path.id().0).or_default().0 = ticket;
        Ok(ticket)
    }

    fn prepare(&mut self, path: PathId) {
        self.device.prepare(path);
    }

    fn flush(&mut self) {
        self.device.flush();
    }

    fn delivered(&mut self, path: PathId) -> u64 {
        self.device.delivered(path)
    }
}

/// A NIC whose packets are counted.
struct Counting<'a>(&'a mut Nic, &'a mut u64);

impl Inbox for Counting<'_> {
    fn packet<P: Payload>(&mut self, flow: Flow<'_>, packet: &Packet<P>) {
        *self.1 += 1;
        self.0.packet(flow, packet);
    }

    fn malformed(&mut self, why: Malformed) {
        *self.1 += 1;
        self.0.malformed(why);
    }

    fn gone(&mut self, link: PathId) {
        self.0.gone(link);
    }

    fn port_closed(&mut self, at: Host, quoted: &[u8]) {
        self.0.port_closed(at, quoted);
    }
}

/// Whether a NIC has something to do by itself.
fn is_due(nic: &Nic, now: Time) -> bool {
    nic.has_work() || nic.next_timeout().is_some_and(|at| at <= now)
}

impl Fabric {
    /// A fabric with a node over each of these devices, all of one kind, on which all chance but
    /// that of the devices comes from `seed`. Nothing of its [`network`](Self::network) has a
    /// meaning, and its nodes are neither restarted nor managed.
    ///
    /// # Panics
    /// When the devices do not find each other.
    pub fn over(seed: u64, config: Config, devices: impl IntoIterator<Item = AnyDevice>) -> Self {
        let mut fabric = Self::new(seed, Version::V1, config);
        let (clock, skipped) = (Clock::new(), Duration::ZERO);
        fabric.world = Some(World { clock, skipped, last: Time::ZERO, next: 0, forgotten: 0 });
        for device in devices {
            assert_eq!(device.capabilities().lossless, config.lossless, "as its NIC is told");
            let node = fabric.node();
            let (paths, tickets) = (Vec::new(), BTreeMap::new());
            fabric.nodes[node].real = Some(Real { device, paths, tickets, arrived: 0 });
        }
        for from in 0..fabric.nodes.len() {
            for to in 0..fabric.nodes.len() {
                let path = fabric.meet(from, to);
                fabric.real(from).paths.push(path);
            }
        }
        fabric
    }

    fn real(&mut self, node: NodeId) -> &mut Real {
        self.nodes[node].real.as_mut().expect("a node over a device")
    }

    fn world(&mut self) -> &mut World {
        self.world.as_mut().expect("a fabric over devices")
    }

    /// Finds the way from one node to another.
    fn meet(&mut self, from: NodeId, to: NodeId) -> Path {
        if from == to {
            return Path::link(PathId(u32::MAX));
        }
        let address = self.real(to).device.address().clone();
        for _ in 0..MOST_QUESTIONS {
            let found = self.real(from).device.reach(&address).expect("it is there");
            if let Some(way) = found {
                return way.path(PathId(to as u32));
            }
            for node in 0..self.nodes.len() {
                self.take_in(node);
            }
            thread::yield_now();
        }
        panic!("{address} did not answer");
    }

    /// Receives a burst at a node, and does what is due there. Whether anything came.
    fn take_in(&mut self, node: NodeId) -> bool {
        let now = self.now();
        let lossless = self.lossless;
        let Node { nic, real, .. } = &mut self.nodes[node];
        let real = real.as_mut().expect("a node over a device");
        // Whatever the NIC may do now is news.
        let mut news = is_due(nic, now);
        nic.advance(now);
        let found = real.device.receive(&mut Counting(nic, &mut real.arrived)) > 0;
        news |= found;
        if lossless {
            news |= real.hear();
            nic.collect(real);
        }
        nic.transmit(real);
        if lossless {
            real.device.settle(nic.owes());
        }
        if news {
            self.world().last = now;
        }
        news
    }

    /// Has a node's NIC do what was posted and what is due.
    pub(crate) fn turn_over(&mut self, node: NodeId) {
        let now = self.now();
        let Node { nic, real, .. } = &mut self.nodes[node];
        nic.advance(now);
        nic.transmit(real.as_mut().expect("a node over a device"));
    }

    /// Goes on until something comes to a node, or is due there.
    pub(crate) fn step_over(&mut self, until: Time) -> Option<NodeId> {
        loop {
            for _ in 0..self.nodes.len() {
                let count = self.nodes.len();
                let world = self.world();
                let node = world.next;
                world.next = (node + 1) % count;
                if self.take_in(node) {
                    return Some(node);
                }
            }
            let now = self.now();
            if now >= until {
                return None;
            }
            match self.next_over() {
                _ if self.under_way() > 0 => thread::yield_now(),
                // Nothing happens by itself before that.
                next => {
                    let next = next.map_or(until, |at| at.min(until));
                    self.world().skipped += next.since(now);
                }
            }
        }
    }

    /// When something may happen next.
    pub(crate) fn next_over(&mut self) -> Option<Time> {
        if self.under_way() > 0 {
            return Some(self.now() + LOOK);
        }
        let now = self.now();
        let nics = self.nodes.iter().map(|node| &node.nic);
        nics.filter_map(|nic| if is_due(nic, now) { Some(now) } else { nic.next_timeout() }).min()
    }

    /// Packets that were sent, and neither arrived nor were given up.
    pub(crate) fn under_way(&mut self) -> u64 {
        if self.lossless {
            let of = |real: &Real| -> u64 {
                let tickets = real.tickets.values();
                tickets.map(|(given, had)| given.saturating_sub(*had)).sum()
            };
            return self.nodes.iter().filter_map(|node| node.real.as_ref()).map(of).sum();
        }
        let missing = self.missing();
        let (now, world) = (self.now(), self.world());
        if now.since(world.last) > LOST_AFTER {
            world.forgotten = missing;
        }
        missing.saturating_sub(world.forgotten)
    }

    /// Packets that were sent and have not arrived.
    fn missing(&mut self) -> u64 {
        let (mut sent, mut arrived) = (0, 0);
        for node in &mut self.nodes {
            let real = node.real.as_mut().expect("a node over a device");
            sent += real.device.statistics().packets_sent;
            arrived += real.arrived;
        }
        sent.saturating_sub(arrived)
    }

    /// What became of the packets, as far as it is known.
    pub(crate) fn counters_over(&mut self) -> Counters {
        let lost = if self.lossless { 0 } else { self.missing() };
        Counters { lost, ..Counters::default() }
    }
}

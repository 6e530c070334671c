//! Fabrics whose NICs are over real devices.
//!
//! While packets are on their way, time is that of the machine's clock. If no packet is, nothing
//! can happen before the next timer goes off, and that idle time is skipped: a test that waits for
//! a second takes less.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use doorbell_core::encap::{Host, Path, PathId, Version};
use doorbell_core::nic::{Config, Flow, Inbox, Nic};
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::{Malformed, Packet};
use doorbell_transports::{AnyDevice, Clock, Device};

use crate::fabric::real_device::{RealDevice, RealTime};
use crate::fabric::{Fabric, Node, NodeId};
use crate::network::Counters;

/// The time for which packets are awaited that were sent, have not arrived, and were not counted as
/// lost.
const LOST_AFTER: Duration = Duration::from_millis(50);

/// The time between two looks for packets that are on their way.
const LOOK: Duration = Duration::from_micros(100);

/// The most times that a device is asked for the path to a peer, while both devices exchange
/// messages for it.
const MOST_QUESTIONS: usize = 100_000;

/// A NIC with a count of the packets that it is given.
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

/// Returns whether a NIC has something to do without a packet that comes.
fn is_due(nic: &Nic, now: Time) -> bool {
    nic.has_work() || nic.next_timeout().is_some_and(|at| at <= now)
}

impl Fabric {
    /// Makes a fabric with a node over each of these devices, all of one kind. All chance but that
    /// of the devices comes from `seed`. The fabric's [`network`](Self::network) has no meaning,
    /// and its nodes are neither restarted nor managed.
    ///
    /// # Panics
    /// When the devices don't find each other.
    pub fn over(seed: u64, config: Config, devices: impl IntoIterator<Item = AnyDevice>) -> Self {
        let mut fabric = Self::new(seed, Version::V1, config);
        let (clock, skipped) = (Clock::new(), Duration::ZERO);
        fabric.real_time =
            Some(RealTime { clock, skipped, last: Time::ZERO, next: 0, forgotten: 0 });
        for device in devices {
            assert_eq!(device.capabilities().lossless, config.lossless, "as its NIC is told");
            let node = fabric.node();
            let (paths, tickets) = (Vec::new(), BTreeMap::new());
            fabric.nodes[node].real = Some(RealDevice { device, paths, tickets, arrived: 0 });
        }
        for from in 0..fabric.nodes.len() {
            for to in 0..fabric.nodes.len() {
                let path = fabric.meet(from, to);
                fabric.real(from).paths.push(path);
            }
        }
        fabric
    }

    fn real(&mut self, node: NodeId) -> &mut RealDevice {
        self.nodes[node].real.as_mut().expect("a node over a device")
    }

    fn real_time(&mut self) -> &mut RealTime {
        self.real_time.as_mut().expect("a fabric over devices")
    }

    /// Finds the path from one node to another.
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

    /// Receives a burst at a node, and does what is due there. Returns whether anything has
    /// changed.
    fn take_in(&mut self, node: NodeId) -> bool {
        let now = self.now();
        let lossless = self.lossless;
        let Node { nic, real, .. } = &mut self.nodes[node];
        let real = real.as_mut().expect("a node over a device");
        // Timers that are due now may change something.
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
            real.device.settle(nic.unsent_responses());
        }
        if news {
            self.real_time().last = now;
        }
        news
    }

    /// Has a node's NIC carry out posted requests and due timers.
    pub(crate) fn turn_real(&mut self, node: NodeId) {
        let now = self.now();
        let Node { nic, real, .. } = &mut self.nodes[node];
        nic.advance(now);
        nic.transmit(real.as_mut().expect("a node over a device"));
    }

    /// Goes on until a packet comes to a node, or a timer is due there. Returns the node.
    pub(crate) fn step_real(&mut self, until: Time) -> Option<NodeId> {
        loop {
            for _ in 0..self.nodes.len() {
                let count = self.nodes.len();
                let world = self.real_time();
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
            match self.next_at_real() {
                _ if self.under_way() > 0 => thread::yield_now(),
                // Nothing happens before that time, so the time until then is skipped.
                next => {
                    let next = next.map_or(until, |at| at.min(until));
                    self.real_time().skipped += next.since(now);
                }
            }
        }
    }

    /// The time of the next possible event.
    pub(crate) fn next_at_real(&mut self) -> Option<Time> {
        if self.under_way() > 0 {
            return Some(self.now() + LOOK);
        }
        let now = self.now();
        let nics = self.nodes.iter().map(|node| &node.nic);
        nics.filter_map(|nic| if is_due(nic, now) { Some(now) } else { nic.next_timeout() }).min()
    }

    /// The packets that were sent, have not arrived, and were not given up.
    pub(crate) fn under_way(&mut self) -> u64 {
        if self.lossless {
            let of = |real: &RealDevice| -> u64 {
                let tickets = real.tickets.values();
                tickets.map(|(given, had)| given.saturating_sub(*had)).sum()
            };
            return self.nodes.iter().filter_map(|node| node.real.as_ref()).map(of).sum();
        }
        let missing = self.missing();
        let (now, world) = (self.now(), self.real_time());
        if now.since(world.last) > LOST_AFTER {
            world.forgotten = missing;
        }
        missing.saturating_sub(world.forgotten)
    }

    /// The packets that were sent and have not arrived.
    fn missing(&mut self) -> u64 {
        let (mut sent, mut arrived) = (0, 0);
        for node in &mut self.nodes {
            let real = node.real.as_mut().expect("a node over a device");
            sent += real.device.statistics().packets_sent;
            arrived += real.arrived;
        }
        sent.saturating_sub(arrived)
    }

    /// The counts of packets, as far as they are known.
    pub(crate) fn counters_real(&mut self) -> Counters {
        let lost = if self.lossless { 0 } else { self.missing() };
        Counters { lost, ..Counters::default() }
    }
}

//! NICs over devices, which a test drives turn by turn.

use std::thread;
use std::time::Duration;

use doorbell_core::encap::{Path, PathId};
use doorbell_core::memory::{Buf, Region};
use doorbell_core::nic::{
    CompletionQueue, CompletionQueueId, Config, Connection, Domain, Flow, Inbox, Nic,
    QueuePairConfig, QueuePairEnds, ReceiveRequest, Registration, Rights, Seed, Sending,
    WorkRequest,
};
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::{Malformed, Packet, Psn, Qpn};
use doorbell_simulation::ready;
use doorbell_transports::{Clock, Device};

use crate::sys::readable;

/// The time after which a step of a test counts as hanging.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Calls a function again and again until it returns a result.
///
/// # Panics
/// When there is no result within [`PATIENCE`].
#[track_caller]
pub fn until<R>(what: &str, mut does: impl FnMut() -> Option<R>) -> R {
    let clock = Clock::new();
    loop {
        if let Some(result) = does() {
            return result;
        }
        assert!(clock.now() < Time::ZERO + PATIENCE, "{what}: not within {PATIENCE:?}");
        // The awaited thread may need this processor.
        thread::yield_now();
    }
}

/// Returns whether a device's readiness is signalled at this moment.
pub fn is_ready(device: &impl Device) -> bool {
    readable(device.readiness(), Duration::ZERO)
}

/// Waits until a device's readiness is signalled.
///
/// # Panics
/// When the readiness is not signalled within [`PATIENCE`].
#[track_caller]
pub fn sleep(device: &impl Device) {
    assert!(readable(device.readiness(), PATIENCE), "nobody woke the sleeper in {PATIENCE:?}");
}

/// An inbox that drops all packets.
struct Anything;

impl Inbox for Anything {
    fn packet<P: Payload>(&mut self, _: Flow<'_>, _: &Packet<P>) {}
    fn malformed(&mut self, _: Malformed) {}
    fn gone(&mut self, _: PathId) {}
}

/// Finds the path from one device to another, which is given turns to answer. Packets that come
/// meanwhile are lost.
///
/// # Panics
/// When the other device does not exist, or does not answer.
#[track_caller]
pub fn reach(from: &mut impl Device, to: &mut impl Device) -> Path {
    let address = to.address().clone();
    until(&format!("reaching {address}"), || {
        from.receive(&mut Anything);
        to.receive(&mut Anything);
        from.reach(&address).expect("it is there").map(|way| way.path(PathId(1)))
    })
}

/// Takes a turn of a NIC over a device. Returns whether packets came or went.
pub fn turn(nic: &mut Nic, device: &mut impl Device) -> bool {
    let lossless = device.capabilities().lossless;
    let sent = nic.counters().sent;
    nic.advance(device.now());
    let found = device.receive(nic) > 0;
    if lossless {
        nic.collect(device);
    }
    nic.transmit(device);
    if lossless {
        device.settle(nic.unsent_responses());
    }
    found || nic.counters().sent != sent
}

/// A NIC over a device with what most programs have: a queue pair, a completion queue for all that
/// it does, and memory on which a peer has all rights.
pub struct Rig<D> {
    /// The NIC over the device.
    pub nic: Nic,
    /// The device of the NIC.
    pub device: D,
    /// The protection domain of the queue pair and the memory.
    pub domain: Domain,
    /// The number of the completion queue.
    pub queue_id: CompletionQueueId,
    /// The completion queue of the queue pair.
    pub queue: CompletionQueue,
    /// The program's ends of the queue pair.
    pub ends: QueuePairEnds,
    /// The memory that is registered.
    pub region: Region,
    /// The registration of the memory, with its keys.
    pub lent: Registration,
}

impl<D: Device> Rig<D> {
    /// Makes a NIC over a device, with a megabyte of memory. The NIC's random numbers come from
    /// `seed`.
    pub fn new(device: D, seed: u64) -> Self {
        Self::with_memory(device, seed, Region::new(1 << 20))
    }

    /// Makes a NIC over a device, with existing memory.
    pub fn with_memory(device: D, seed: u64, region: Region) -> Self {
        let config = Config { lossless: device.capabilities().lossless, ..Config::default() };
        let mut nic = Nic::new(config, Seed::from_number(seed)).expect("a numbering");
        let domain = nic.domain();
        let (queue_id, queue) = nic.completion_queue(256).expect("a capacity");
        let ends = nic.queue_pair(&QueuePairConfig::new(domain, queue_id)).expect("room");
        let rights = Rights::LOCAL_WRITE | Rights::REMOTE;
        let lent = nic.register(domain, region.clone(), rights).expect("room");
        Self { nic, device, domain, queue_id, queue, ends, region, lent }
    }

    /// Makes one more queue pair.
    pub fn pair(&mut self) -> QueuePairEnds {
        let config = QueuePairConfig::new(self.domain, self.queue_id);
        self.nic.queue_pair(&config).expect("room")
    }

    /// Connects a queue pair to a peer, which must connect its own to this one.
    pub fn connect(&mut self, own: Qpn, path: Path, peer: Qpn) {
        let (mtu, first) = (self.device.capabilities().mtu, Psn::new(7));
        let connection = Connection::new(peer, path, mtu, first);
        ready(&mut self.nic, own, connection, Sending::new(first));
    }

    /// Takes a turn of the NIC. Returns whether packets came or went.
    pub fn turn(&mut self) -> bool {
        turn(&mut self.nic, &mut self.device)
    }

    /// Posts a request, for which there must be room, and rings the doorbell.
    pub fn post(&mut self, request: WorkRequest) {
        self.ends.send.post(request).expect("room");
        self.ends.send.ring();
    }

    /// Posts a receive with a new buffer, for which there must be room.
    pub fn receive(&mut self, id: u64, len: usize) {
        let memory = Buf::with_capacity(len).into();
        self.ends.receive.post(ReceiveRequest { id, memory }).expect("room");
    }
}

/// Makes two rigs over devices that can reach each other, with their queue pairs connected.
pub fn joined<A: Device, B: Device>(mut near: A, mut far: B) -> (Rig<A>, Rig<B>) {
    let there = reach(&mut near, &mut far);
    let back = reach(&mut far, &mut near);
    let (mut near, mut far) = (Rig::new(near, 1), Rig::new(far, 2));
    near.connect(near.ends.qpn, there, far.ends.qpn);
    far.connect(far.ends.qpn, back, near.ends.qpn);
    (near, far)
}

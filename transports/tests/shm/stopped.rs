//! A peer that does not turn any more, be it stopped or busy, harms only itself.

use doorbell_core::encap::Path;
use doorbell_core::memory::{Buf, Region};
use doorbell_core::nic::*;
use doorbell_core::wire::{PathMtu, Pkey, Psn, Qpn};
use doorbell_transports::Device;
use doorbell_transports::shm::{Limits, Shm};

use crate::common::*;

/// What is read by who then stops: more than its ring holds.
const LONG: usize = 100_000;

struct Node {
    nic: Nic,
    device: Shm,
    domain: Domain,
    queue_id: CompletionQueueId,
    queue: CompletionQueue,
    region: Region,
    registration: Registration,
}

impl Node {
    fn new(seed: u64) -> Self {
        let limits = Limits { ring: 16 << 10, ..Limits::default() };
        let device = Shm::join_within(&name("node"), limits).expect("a name");
        let config = Config { lossless: true, ..Config::default() };
        let mut nic = Nic::new(config, Seed::from_number(seed)).expect("a numbering");
        let domain = nic.domain();
        let (queue_id, queue) = nic.completion_queue(256).expect("a queue");
        let region = Region::new(1 << 20);
        let rights = Rights::LOCAL_WRITE | Rights::REMOTE;
        let registration = nic.register(domain, region.clone(), rights).expect("room");
        Self { nic, device, domain, queue_id, queue, region, registration }
    }

    fn pair(&mut self) -> QueuePairEnds {
        let config = QueuePairConfig::new(self.domain, self.queue_id);
        self.nic.queue_pair(&config).expect("room")
    }

    fn connect(&mut self, own: Qpn, path: Path, peer: Qpn) {
        let connection = Connection::new(peer, path, PathMtu::Mtu4096, Psn::new(0));
        for change in [
            Change::Init { rights: Rights::REMOTE, pkey: Pkey::DEFAULT },
            Change::ReadyToReceive(Box::new(connection)),
            Change::ReadyToSend(Sending::new(Psn::new(0))),
        ] {
            self.nic.change(own, change).expect("a new queue pair");
        }
    }

    fn turn(&mut self) {
        let Self { nic, device, .. } = self;
        nic.advance(device.now());
        device.receive(nic);
        nic.collect(device);
        nic.transmit(device);
        device.settle(nic.owes());
    }
}

/// Connected queue pairs of two nodes.
fn connected(a: &mut Node, b: &mut Node) -> (QueuePairEnds, QueuePairEnds) {
    let (of_a, of_b) = (a.pair(), b.pair());
    let to_b = reach(&mut a.device, &mut b.device);
    let to_a = reach(&mut b.device, &mut a.device);
    a.connect(of_a.qpn, Path::link(to_b), of_b.qpn);
    b.connect(of_b.qpn, Path::link(to_a), of_a.qpn);
    (of_a, of_b)
}

fn post(ends: &mut QueuePairEnds, request: WorkRequest) {
    ends.send.post(request).expect("room");
    ends.send.ring();
}

fn post_receive(ends: &mut QueuePairEnds, id: u64) {
    let memory = Memory::Buf(Buf::with_capacity(64));
    ends.receive.post(ReceiveRequest { id, memory }).expect("room");
}

/// Takes what is complete, all of which has succeeded: by their numbers.
fn poll(node: &mut Node) -> Vec<u64> {
    let all = std::iter::from_fn(|| node.queue.poll());
    all.inspect(|done| assert!(done.outcome.is_ok(), "{done:?}")).map(|done| done.id).collect()
}

/// Node `a` owes the one that stopped a long answer, a refusal, and has messages for it; a third asks
/// the same of it. The first version tried what it owed the one that stopped, and then nothing else.
#[test]
fn a_peer_that_stops_with_its_ring_full_keeps_nobody_else_waiting() {
    let mut nodes = [1, 2, 3].map(Node::new);
    let [a, b, stopped] = &mut nodes;
    let (mut ends_to_b, mut ends_of_b) = connected(a, b);
    let (mut ends_to_stopped, mut ends_of_stopped) = connected(a, stopped);
    let (mut more_to_stopped, mut more_of_stopped) = connected(a, stopped);
    a.region.store(LONG - 8, 42).expect("a word");

    let message = || Inline::new(b"a message").expect("few bytes");
    let (theirs, long) = (a.registration, stopped.registration.segment(0, LONG as u32));
    // A long read, and a message that finds no receive.
    let read = WorkRequest::read(1, theirs.address, theirs.rkey, long);
    post(&mut ends_of_stopped, read);
    post(&mut ends_of_stopped, WorkRequest::send(2, message()));
    post(&mut more_of_stopped, WorkRequest::send(3, message()));
    stopped.turn();
    (0..60).for_each(|id| post_receive(&mut ends_of_stopped, 1000 + id));
    (0..60).for_each(|id| post(&mut ends_to_stopped, WorkRequest::send(2000 + id, message())));
    (0..100).for_each(|_| a.turn());
    assert_eq!(poll(a), [], "the other does not read");

    // Meanwhile all goes on both ways, and what is delivered is told.
    let theirs = b.registration;
    for round in 0..100 {
        post_receive(&mut ends_of_b, 10);
        post_receive(&mut ends_to_b, 10);
        post(&mut ends_to_b, WorkRequest::send(20, message()));
        post(&mut ends_of_b, WorkRequest::send(20, message()));
        let into = a.registration.segment(500_000, 9000);
        post(&mut ends_to_b, WorkRequest::read(30, theirs.address, theirs.rkey, into));
        let (at_a, into) = (a.registration, b.registration.segment(500_000, 9000));
        post(&mut ends_of_b, WorkRequest::read(30, at_a.address, at_a.rkey, into));
        let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
        for _ in 0..100 {
            a.turn();
            b.turn();
            of_a.extend(poll(a));
            of_b.extend(poll(b));
        }
        for done in [&mut of_a, &mut of_b] {
            done.sort_unstable();
            assert_eq!(done[..], [10, 20, 30], "round {round}");
        }
    }

    // It comes back, and has missed nothing.
    post_receive(&mut ends_to_stopped, 40);
    post_receive(&mut more_to_stopped, 50);
    let (mut of_a, mut of_stopped) = (Vec::new(), Vec::new());
    until(|| {
        a.turn();
        stopped.turn();
        of_a.extend(poll(a));
        of_stopped.extend(poll(stopped));
        of_a.len() == 62 && of_stopped.len() == 63
    });
    assert_eq!(stopped.region.load(LONG - 8), Ok(42));
    of_a.retain(|id| *id >= 1000);
    assert!(of_a.into_iter().eq(2000..2060), "in their order");
    of_stopped.retain(|id| *id >= 1000);
    assert!(of_stopped.into_iter().eq(1000..1060), "in their order");
}

//! A peer that does not turn any more, be it stopped or busy, harms only itself.

use doorbell_core::encap::Path;
use doorbell_core::memory::Buf;
use doorbell_core::nic::{Inline, Memory, QueuePairEnds, ReceiveRequest, WorkRequest};
use doorbell_kit::Rig;
use doorbell_transports::shm::{Limits, Shm};

use crate::shm::common::*;

/// What is read by who then stops: more than its ring holds.
const LONG: usize = 100_000;

/// A node whose rings are short.
fn node(seed: u64) -> Rig<Shm> {
    let limits = Limits { ring: 16 << 10, ..Limits::default() };
    Rig::new(Shm::join_within(&name("node"), limits).expect("a name"), seed)
}

/// Connected queue pairs of two nodes.
fn connected(a: &mut Rig<Shm>, b: &mut Rig<Shm>) -> (QueuePairEnds, QueuePairEnds) {
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
fn poll(node: &mut Rig<Shm>) -> Vec<u64> {
    let all = std::iter::from_fn(|| node.queue.poll());
    all.inspect(|done| assert!(done.outcome.is_ok(), "{done:?}")).map(|done| done.id).collect()
}

/// Node `a` owes the one that stopped a long answer, a refusal, and has messages for it; a third
/// asks the same of it. The first version tried what it owed the one that stopped, and then nothing
/// else.
#[test]
fn a_peer_that_stops_with_its_ring_full_keeps_nobody_else_waiting() {
    let mut nodes = [1, 2, 3].map(node);
    let [a, b, stopped] = &mut nodes;
    let (mut ends_to_b, mut ends_of_b) = connected(a, b);
    let (mut ends_to_stopped, mut ends_of_stopped) = connected(a, stopped);
    let (mut more_to_stopped, mut more_of_stopped) = connected(a, stopped);
    a.region.store(LONG - 8, 42).expect("a word");

    let message = || Inline::new(b"a message").expect("few bytes");
    let (theirs, long) = (a.lent, stopped.lent.segment(0, LONG as u32));
    // A long read, and a message that finds no receive.
    let read = WorkRequest::read(1, theirs.address, theirs.rkey, long);
    post(&mut ends_of_stopped, read);
    post(&mut ends_of_stopped, WorkRequest::send(2, message()));
    post(&mut more_of_stopped, WorkRequest::send(3, message()));
    stopped.turn();
    (0..60).for_each(|id| post_receive(&mut ends_of_stopped, 1000 + id));
    (0..60).for_each(|id| post(&mut ends_to_stopped, WorkRequest::send(2000 + id, message())));
    for _ in 0..100 {
        a.turn();
    }
    assert_eq!(poll(a), [], "the other does not read");

    // Meanwhile all goes on both ways, and what is delivered is told.
    let theirs = b.lent;
    for round in 0..100 {
        post_receive(&mut ends_of_b, 10);
        post_receive(&mut ends_to_b, 10);
        post(&mut ends_to_b, WorkRequest::send(20, message()));
        post(&mut ends_of_b, WorkRequest::send(20, message()));
        let into = a.lent.segment(500_000, 9000);
        post(&mut ends_to_b, WorkRequest::read(30, theirs.address, theirs.rkey, into));
        let (at_a, into) = (a.lent, b.lent.segment(500_000, 9000));
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

//! Two NICs over a pair.

use std::thread;

use doorbell_core::encap::Path;
use doorbell_core::nic::{Completion, Event, Inline, WorkRequest};
use doorbell_core::wire::RemoteAddr;
use doorbell_kit::Rig;
use doorbell_transports::shm::Shm;
use doorbell_transports::{Device, SharedMemory};

use crate::shm::common::*;

/// Takes turns until something is complete, asleep after some that found nothing.
fn complete(rig: &mut Rig<Shm>) -> Completion {
    let mut idle = 0;
    loop {
        idle = if rig.turn() { 0 } else { idle + 1 };
        if let Some(completion) = rig.queue.poll() {
            return completion;
        }
        if idle < 100 {
            continue;
        }
        rig.device.arm(rig.nic.next_timeout()).expect("armed");
        let mut completion = None;
        while completion.is_none() && rig.turn() {
            completion = rig.queue.poll();
        }
        let completion = completion.or_else(|| rig.queue.poll());
        if completion.is_none() {
            sleep(&rig.device);
        }
        rig.device.disarm();
        if let Some(completion) = completion {
            return completion;
        }
    }
}

fn joined() -> [Rig<Shm>; 2] {
    let [(a, to_b), (b, to_a)] = pair();
    // Registered memory may be memory that was granted, too.
    let memory = || SharedMemory::new(1 << 20).expect("memory").region().clone();
    let (mut a, mut b) = (Rig::with_memory(a, 1, memory()), Rig::with_memory(b, 2, memory()));
    a.connect(a.ends.qpn, Path::link(to_b), b.ends.qpn);
    b.connect(b.ends.qpn, Path::link(to_a), a.ends.qpn);
    [a, b]
}

#[test]
fn nics_in_two_threads_send_write_and_read_by_a_pair() {
    const ROUNDS: u64 = 500;
    let [mut a, mut b] = joined();
    let there = b.lent;
    let server = thread::spawn(move || {
        for round in 0..ROUNDS {
            b.receive(round, 64);
            let done = complete(&mut b);
            assert!(done.outcome.is_ok(), "{done:?}");
            // What was written before it was sent is there.
            assert_eq!(b.region.load(8), Ok(round));
            assert_eq!(b.region.load(100_000), Ok(round));
        }
        // Until the client has read all, and left.
        loop {
            b.turn();
            if matches!(b.nic.event(), Some(Event::Broken(..))) {
                return;
            }
        }
    });
    for round in 0..ROUNDS {
        let place = |at| RemoteAddr(there.address.0 + at);
        a.region.store(200_000, round).expect("a word");
        a.region.store(100_016, 3 * round).expect("a word");
        let long = a.lent.segment(100_008, 100_000);
        let short = Inline::new(&round.to_ne_bytes()).expect("few bytes");
        a.post(WorkRequest::write(1, place(8), there.rkey, short).unsignalled());
        a.post(WorkRequest::write(2, place(8), there.rkey, long).unsignalled());
        a.post(WorkRequest::write(3, place(8), there.rkey, short).unsignalled());
        a.post(WorkRequest::write(4, place(100_000), there.rkey, short).unsignalled());
        a.post(WorkRequest::send(5, short));
        let done = complete(&mut a);
        assert!(done.outcome.is_ok() && done.id == 5, "{done:?}");
        a.post(WorkRequest::read(6, place(16), there.rkey, a.lent.segment(400_000, 99_984)));
        let done = complete(&mut a);
        assert!(done.outcome.is_ok() && done.id == 6, "{done:?}");
        assert_eq!(a.region.load(400_000), Ok(3 * round));
    }
    drop(a);
    server.join().expect("no panic");
}

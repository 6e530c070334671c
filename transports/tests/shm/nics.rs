//! Two NICs over a pair.

use std::thread;

use doorbell_core::encap::{Path, PathId};
use doorbell_core::memory::{Buf, Region};
use doorbell_core::nic::*;
use doorbell_core::wire::{PathMtu, Pkey, Psn, Qpn, RemoteAddr};
use doorbell_transports::shm::Shm;
use doorbell_transports::{Device, SharedMemory};

use crate::common::*;

struct Side {
    nic: Nic,
    device: Shm,
    link: PathId,
    ends: QueuePairEnds,
    queue: CompletionQueue,
    region: Region,
    registration: Registration,
}

impl Side {
    fn new((device, link): (Shm, PathId), seed: u64) -> Self {
        let config = Config { lossless: device.capabilities().lossless, ..Config::default() };
        let mut nic = Nic::new(config, Seed::from_number(seed)).expect("a numbering");
        let domain = nic.domain();
        let (queue_id, queue) = nic.completion_queue(256).expect("a queue");
        let ends = nic.queue_pair(&QueuePairConfig::new(domain, queue_id)).expect("room");
        // Registered memory may be memory that was granted, too.
        let region = SharedMemory::new(1 << 20).expect("memory").region().clone();
        let rights = Rights::LOCAL_WRITE | Rights::REMOTE;
        let registration = nic.register(domain, region.clone(), rights).expect("room");
        Self { nic, device, link, ends, queue, region, registration }
    }

    fn connect(&mut self, peer: Qpn) {
        let path = Path::link(self.link);
        let connection = Connection::new(peer, path, PathMtu::Mtu4096, Psn::new(0));
        for change in [
            Change::Init { rights: Rights::REMOTE, pkey: Pkey::DEFAULT },
            Change::ReadyToReceive(Box::new(connection)),
            Change::ReadyToSend(Sending::new(Psn::new(0))),
        ] {
            self.nic.change(self.ends.qpn, change).expect("a new queue pair");
        }
    }

    fn turn(&mut self) -> bool {
        let Self { nic, device, .. } = self;
        let sent = nic.counters().sent;
        nic.advance(device.now());
        let found = device.receive(nic) > 0;
        nic.collect(device);
        nic.transmit(device);
        device.settle(nic.owes());
        found || nic.counters().sent != sent
    }

    /// Takes turns until something is complete, asleep after some that found nothing.
    fn complete(&mut self) -> Completion {
        let mut idle = 0;
        loop {
            idle = if self.turn() { 0 } else { idle + 1 };
            if let Some(completion) = self.queue.poll() {
                return completion;
            }
            if idle < 100 {
                continue;
            }
            self.device.arm(self.nic.next_timeout()).expect("armed");
            let mut completion = None;
            while completion.is_none() && self.turn() {
                completion = self.queue.poll();
            }
            let completion = completion.or_else(|| self.queue.poll());
            if completion.is_none() {
                sleep(&self.device);
            }
            self.device.disarm();
            if let Some(completion) = completion {
                return completion;
            }
        }
    }

    fn post(&mut self, request: WorkRequest) {
        self.ends.send.post(request).expect("room");
        self.ends.send.ring();
    }
}

fn joined() -> (Side, Side) {
    let [a, b] = pair();
    let (mut a, mut b) = (Side::new(a, 1), Side::new(b, 2));
    a.connect(b.ends.qpn);
    b.connect(a.ends.qpn);
    (a, b)
}

#[test]
fn nics_in_two_threads_send_write_and_read_by_a_pair() {
    const ROUNDS: u64 = 500;
    let (mut a, mut b) = joined();
    let there = b.registration;
    let server = thread::spawn(move || {
        for round in 0..ROUNDS {
            let memory = Memory::Buf(Buf::with_capacity(64));
            b.ends.receive.post(ReceiveRequest { id: round, memory }).expect("room");
            let done = b.complete();
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
        let long = a.registration.segment(100_008, 100_000);
        let short = Inline::new(&round.to_ne_bytes()).expect("few bytes");
        a.post(WorkRequest::write(1, place(8), there.rkey, short).unsignalled());
        a.post(WorkRequest::write(2, place(8), there.rkey, long).unsignalled());
        a.post(WorkRequest::write(3, place(8), there.rkey, short).unsignalled());
        a.post(WorkRequest::write(4, place(100_000), there.rkey, short).unsignalled());
        a.post(WorkRequest::send(5, short));
        let done = a.complete();
        assert!(done.outcome.is_ok() && done.id == 5, "{done:?}");
        a.post(WorkRequest::read(
            6,
            place(16),
            there.rkey,
            a.registration.segment(400_000, 99_984),
        ));
        let done = a.complete();
        assert!(done.outcome.is_ok() && done.id == 6, "{done:?}");
        assert_eq!(a.region.load(400_000), Ok(3 * round));
    }
    drop(a);
    server.join().expect("no panic");
}

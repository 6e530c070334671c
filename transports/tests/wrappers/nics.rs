//! Two NICs over devices of any kind, and what they say to each other.

use std::time::Duration;

use doorbell_core::encap::PathId;
use doorbell_core::memory::Buf;
use doorbell_core::nic::*;
use doorbell_core::wire::{Pkey, Psn};
use doorbell_transports::Device;

/// How long a test may take: it only ends one that hangs.
const PATIENCE: Duration = Duration::from_secs(60);

struct End<D> {
    nic: Nic,
    device: D,
    pair: QueuePairEnds,
    queue: CompletionQueue,
}

impl<D: Device> End<D> {
    fn new(device: D, seed: u64) -> Self {
        let mut nic = if device.capabilities().lossless {
            Nic::new(Config { lossless: true, ..Config::default() }, Seed::from_number(seed))
        } else {
            Nic::new(Config::default(), Seed::from_number(seed))
        }
        .expect("a numbering");
        let (domain, (queue_id, queue)) = (nic.domain(), nic.completion_queue(256).expect("room"));
        let pair = nic.queue_pair(&QueuePairConfig::new(domain, queue_id)).expect("room");
        Self { nic, device, pair, queue }
    }

    fn connect<E: Device>(&mut self, peer: &End<E>) {
        let way = self.device.reach(peer.device.address()).expect("a peer");
        let path = way.expect("it is known at once").path(PathId(1));
        let mtu = self.device.capabilities().mtu;
        let connection = Connection::new(peer.pair.qpn, path, mtu, Psn::new(7));
        for change in [
            Change::Init { rights: Rights::REMOTE, pkey: Pkey::DEFAULT },
            Change::ReadyToReceive(Box::new(connection)),
            Change::ReadyToSend(Sending::new(Psn::new(7))),
        ] {
            self.nic.change(self.pair.qpn, change).expect("a new queue pair");
        }
    }

    fn turn(&mut self) {
        let lossless = self.device.capabilities().lossless;
        self.nic.advance(self.device.now());
        self.device.receive(&mut self.nic);
        if lossless {
            self.nic.collect(&mut self.device);
        }
        self.nic.transmit(&mut self.device);
        if lossless {
            self.device.settle(self.nic.owes());
        }
    }
}

/// What the message of a number says: some are empty, some take several packets.
fn text(number: u64) -> Vec<u8> {
    format!("message {number:04} ").repeat((number * number % 1000) as usize).into_bytes()
}

/// Sends so many messages from one NIC to the other, of which each must arrive once, whole and in
/// order; gives the devices back.
pub fn exchange<A: Device, B: Device>(one: A, other: B, messages: u64) -> (A, B) {
    let (mut one, mut other) = (End::new(one, 1), End::new(other, 2));
    one.connect(&other);
    other.connect(&one);
    let (mut posted, mut sent, mut received) = (0, 0, 0);
    let mut lent = 0;
    let began = std::time::Instant::now();
    while sent < messages || received < messages {
        assert!(began.elapsed() < PATIENCE, "{sent} of {messages} sent, {received} received");
        while lent < messages.min(received + 32) {
            let memory = Memory::Buf(Buf::with_capacity(16 << 10));
            other.pair.receive.post(ReceiveRequest { id: lent, memory }).expect("room");
            lent += 1;
        }
        while posted < lent.min(sent + 16) {
            let request = WorkRequest::send(posted, Buf::from(text(posted)));
            one.pair.send.post(request).expect("room");
            posted += 1;
        }
        one.pair.send.ring();
        one.turn();
        other.turn();
        while let Some(done) = one.queue.poll() {
            assert_eq!((done.id, done.outcome.is_ok()), (sent, true), "{done:?}");
            sent += 1;
        }
        while let Some(done) = other.queue.poll() {
            assert_eq!((done.id, done.outcome.is_ok()), (received, true), "{done:?}");
            let Memory::Buf(found) = &done.memory else { panic!("{done:?}") };
            assert_eq!(**found, text(received));
            received += 1;
        }
    }
    (one.device, other.device)
}

//! Two NICs over `udp`: requests of every kind that a reliable connection has.

use std::time::{Duration, Instant};

use doorbell_core::encap::PathId;
use doorbell_core::memory::{Buf, Region};
use doorbell_core::nic::{
    Change, CompletionQueue, Config, Connection, Done, Memory, Nic, QueuePairConfig, ReceiveQueue,
    ReceiveRequest, Registration, Rights, Seed, SendQueue, Sending, WorkRequest,
};
use doorbell_core::wire::{Pkey, Psn, Qpn};
use doorbell_transports::Device;
use doorbell_transports::udp::Udp;

/// What nothing here takes, unless something hangs.
const PATIENCE: Duration = Duration::from_secs(60);
const MEMORY: usize = 1 << 20;

struct Node {
    nic: Nic,
    device: Udp,
    qpn: Qpn,
    send: SendQueue,
    receive: ReceiveQueue,
    completions: CompletionQueue,
    memory: Registration,
    region: Region,
}

impl Node {
    fn new(device: Udp, seed: u64) -> Self {
        let mut nic = Nic::new(Config::default(), Seed::from_number(seed)).expect("a numbering");
        let domain = nic.domain();
        let (queue, completions) = nic.completion_queue(256).expect("room");
        let region = Region::new(MEMORY);
        let rights = Rights::LOCAL_WRITE | Rights::REMOTE;
        let memory = nic.register(domain, region.clone(), rights).expect("room");
        let ends = nic.queue_pair(&QueuePairConfig::new(domain, queue)).expect("room");
        let (qpn, send, receive) = (ends.qpn, ends.send, ends.receive);
        Self { nic, device, qpn, send, receive, completions, memory, region }
    }

    fn connect(&mut self, peer: &Self) {
        let way = self.device.reach(peer.device.address()).expect("it is there").expect("at once");
        let mtu = self.device.capabilities().mtu;
        let connection = Connection::new(peer.qpn, way.path(PathId(1)), mtu, Psn::new(7));
        for change in [
            Change::Init { rights: Rights::REMOTE, pkey: Pkey::DEFAULT },
            Change::ReadyToReceive(Box::new(connection)),
            Change::ReadyToSend(Sending::new(Psn::new(7))),
        ] {
            self.nic.change(self.qpn, change).expect("a new queue pair");
        }
    }

    fn turn(&mut self) {
        self.nic.advance(self.device.now());
        self.device.receive(&mut self.nic);
        self.nic.transmit(&mut self.device);
    }
}

fn pair(at: &str) -> [Node; 2] {
    let open = || Udp::open(at.parse().expect("an address")).expect("nobody has it");
    let [mut near, mut far] = [1, 2].map(|seed| Node::new(open(), seed));
    near.connect(&far);
    far.connect(&near);
    [near, far]
}

fn bytes(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251 + number * 13) as u8).collect()
}

/// Posts a request, and takes turns until it is complete; what came with it, and what the other end
/// completed meanwhile.
fn done(
    [near, far]: &mut [Node; 2],
    request: WorkRequest,
    received: &mut Vec<Vec<u8>>,
) -> (Done, Memory) {
    near.send.post(request).expect("there is room");
    near.send.ring();
    let start = Instant::now();
    loop {
        near.turn();
        far.turn();
        while let Some(completion) = far.completions.poll() {
            assert_eq!(completion.outcome, Ok(Done::Received));
            let Memory::Buf(buf) = completion.memory else { panic!("the receive's own") };
            received.push(buf.into_vec());
        }
        if let Some(completion) = near.completions.poll() {
            return (completion.outcome.expect("it is carried out"), completion.memory);
        }
        assert!(start.elapsed() < PATIENCE, "{:?}", near.nic.counters());
    }
}

fn sends_writes_reads_and_atomics(at: &str) {
    let mut nodes = pair(at);
    let (address, rkey) = (nodes[1].memory.address, nodes[1].memory.rkey);
    let mut received = Vec::new();
    let lengths = [0, 1, 16, 100, 4096, 4097, 20_000, 300_000];
    for round in 0..20 {
        for (number, len) in lengths.into_iter().enumerate() {
            let data = bytes(round + number, len);
            let memory = Memory::Buf(Buf::with_capacity(len));
            nodes[1].receive.post(ReceiveRequest { id: 1, memory }).expect("there is room");
            let buf = Buf::from(data.clone());
            done(&mut nodes, WorkRequest::send(2, buf).awaited(), &mut received);
            assert!(received.pop() == Some(data.clone()), "a message of {len} bytes");

            let buf = Buf::from(data.clone());
            done(&mut nodes, WorkRequest::write(3, address, rkey, buf).awaited(), &mut received);
            let mut there = vec![0; len];
            nodes[1].region.read_at(0, &mut there).expect("within");
            assert!(there == data, "{len} bytes written");

            let into = Buf::with_capacity(len);
            let read = WorkRequest::read(4, address, rkey, into);
            let (_, memory) = done(&mut nodes, read, &mut received);
            let Memory::Buf(buf) = memory else { panic!("the read's own") };
            assert!(buf.into_vec() == data, "{len} bytes read");
        }
        nodes[1].region.store(0, 40).expect("within");
        let add = WorkRequest::fetch_add(5, address, rkey, 2);
        done(&mut nodes, add, &mut received);
        assert_eq!(nodes[1].region.load(0), Ok(42));
    }
    assert!(received.is_empty());
    // By sockets of their own, and with every ICRC right.
    for node in &nodes {
        assert_eq!(node.device.connected(), 1);
        assert_eq!(node.nic.counters().malformed, 0);
    }
}

#[test]
fn two_nics_exchange_everything_over_ipv4() {
    sends_writes_reads_and_atomics("127.71.1.1:0");
}

#[test]
fn two_nics_exchange_everything_over_ipv6() {
    sends_writes_reads_and_atomics("[::1]:0");
}

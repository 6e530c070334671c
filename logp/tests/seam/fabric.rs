//! Two NICs on a simulated network, with hosts that take a known time for each operation: the method
//! must find what the hosts, the cable and its bandwidth were set to.

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use doorbell_core::encap::Version;
use doorbell_core::memory::Buf;
use doorbell_core::nic::{
    CompletionQueue, Config, Done, Inline, Memory, QueuePairConfig, QueuePairEnds, ReceiveQueue,
    ReceiveRequest, SendQueue, Transport, WorkRequest,
};
use doorbell_core::time::Time;
use doorbell_core::wire::{PathMtu, Qpn};
use doorbell_logp::{Clock, Estimate, Measurement, Parameters, Plan, Requester};
use doorbell_simulation::{Bandwidth, Fabric, LinkConfig, NodeId};

/// How many requests may be under way.
const WINDOW: usize = 64;
/// The longest payload of a request.
const LONGEST: usize = 16_384;
/// The content of a message without payload.
const SHORT: [u8; 16] = [7; 16];
/// The length in bytes of the frame of such a message: Ethernet, IPv4, UDP, base transport header,
/// content, invariant checksum.
const FRAME: u64 = 14 + 20 + 8 + 12 + 16 + 4;
/// Each packet of a long message has as much around it.
const AROUND: f64 = 14.0 + 20.0 + 8.0 + 12.0 + 4.0;

/// How long the hosts and the network of a test take, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Setting {
    send: u64,
    receive: u64,
    latency: u64,
    megabits_per_second: u64,
}

/// A node's queues, as its program holds them.
struct End {
    node: NodeId,
    qpn: Qpn,
    send: SendQueue,
    receive: ReceiveQueue,
    done: CompletionQueue,
}

/// Two nodes, the network between them, and the program of the second node, which answers.
struct Pair {
    fabric: Fabric,
    setting: Setting,
    requester: End,
    responder: End,
}

impl End {
    fn new(fabric: &mut Fabric) -> Self {
        let node = fabric.node();
        let nic = fabric.nic(node);
        let domain = nic.domain();
        let (queue, done) = nic.completion_queue(4 * WINDOW).expect("room for a queue");
        let config = QueuePairConfig {
            transport: Transport::Unreliable,
            send_depth: 2 * WINDOW,
            receive_depth: 2 * WINDOW,
            ..QueuePairConfig::new(domain, queue)
        };
        let QueuePairEnds { qpn, send, receive } = nic.queue_pair(&config).expect("a queue pair");
        Self { node, qpn, send, receive, done }
    }

    /// Posts receives of `room` bytes for all messages that may be under way.
    fn expect(&mut self, room: usize) {
        (0..=WINDOW).for_each(|_| self.receive(Memory::Buf(Buf::with_capacity(room))));
    }

    fn receive(&mut self, memory: Memory) {
        self.receive.post(ReceiveRequest { id: 0, memory }).expect("room for receives");
    }

    fn post(&mut self, request: WorkRequest) {
        self.send.post(request).expect("room for sends");
        self.send.ring();
    }

    /// The next message that has come. Its receive is posted again.
    fn next(&mut self) -> Option<()> {
        loop {
            let completion = self.done.poll()?;
            if completion.outcome.expect("nothing fails on a perfect cable") == Done::Received {
                self.receive(completion.memory);
                return Some(());
            }
        }
    }
}

fn short() -> WorkRequest {
    WorkRequest::send(0, Inline::new(&SHORT).expect("it is short"))
}

impl Pair {
    fn new(setting: Setting) -> Self {
        let config = Config { queue_pairs: 4, registrations: 4, ..Config::default() };
        let mut fabric = Fabric::new(1, Version::V2Ipv4, config);
        let [mut requester, mut responder] = [(); 2].map(|()| End::new(&mut fabric));
        let cable = LinkConfig {
            latency: Duration::from_nanos(setting.latency),
            bandwidth: Bandwidth::bits_per_second(setting.megabits_per_second * 1_000_000),
            mtu: 9000,
            ..LinkConfig::default()
        };
        let stations = [requester.node, responder.node].map(|node| fabric.station(node));
        fabric.network.link(stations[0], stations[1], cable);
        let ends = ((requester.node, requester.qpn), (responder.node, responder.qpn));
        fabric.connect(ends.0, ends.1, PathMtu::Mtu4096, |_, _| {});
        requester.expect(SHORT.len());
        responder.expect(LONGEST);
        Self { fabric, setting, requester, responder }
    }

    /// Has the requester's processor be busy for so long, and the time pass in which it is.
    fn work(&mut self, nanos: u64) {
        self.fabric.work(self.requester.node, Duration::from_nanos(nanos));
        while !self.fabric.is_free(self.requester.node) {
            self.fabric.step(Time::from_nanos(u64::MAX / 2));
            self.answer();
        }
    }

    /// Has the responder handle and answer the next request, if its processor is free.
    fn answer(&mut self) {
        let Self { fabric, setting, responder, .. } = self;
        if fabric.is_free(responder.node) && responder.next().is_some() {
            let nanos = setting.receive + setting.send;
            fabric.work(responder.node, Duration::from_nanos(nanos));
            responder.post(short());
        }
    }
}

/// The program of the first node, with its clock.
#[derive(Clone)]
struct Program {
    pair: Rc<RefCell<Pair>>,
    sent: u64,
    answered: u64,
}

impl Clock for Program {
    fn now(&self) -> f64 {
        self.pair.borrow().fabric.now().as_nanos() as f64
    }

    fn compute(&self, nanos: f64) {
        self.pair.borrow_mut().work(nanos as u64);
    }
}

impl Requester for Program {
    type Error = Infallible;

    fn send(&mut self, bytes: usize) -> Result<(), Infallible> {
        while self.sent - self.answered >= WINDOW as u64 {
            self.poll()?;
        }
        self.sent += 1;
        let mut pair = self.pair.borrow_mut();
        let request = match bytes {
            0 => short(),
            _ => WorkRequest::send(0, Memory::Buf(Buf::from(vec![7; bytes]))),
        };
        pair.requester.post(request);
        let nanos = pair.setting.send;
        pair.work(nanos);
        Ok(())
    }

    fn poll(&mut self) -> Result<(), Infallible> {
        let mut pair = self.pair.borrow_mut();
        let receive = pair.setting.receive;
        let before = self.answered;
        while pair.requester.next().is_some() {
            pair.work(receive);
            self.answered += 1;
        }
        if self.answered == before {
            // A look that finds nothing is a small part of what a message costs.
            pair.work(receive / 10);
        }
        Ok(())
    }

    fn answered(&self) -> u64 {
        self.answered
    }
}

fn measured(setting: Setting) -> Parameters {
    let pair = Rc::new(RefCell::new(Pair::new(setting)));
    let program = Program { pair, sent: 0, answered: 0 };
    let lengths = vec![1024, 4096, LONGEST];
    let plan = Plan { rounds: 3, pieces: 5, steady: 64, lengths, ..Plan::quick() };
    let mut measurement = Measurement::new(program.clone(), program, plan).expect("a plan");
    while measurement.round().unwrap_or_else(|never| match never {}) {}
    measurement.parameters().expect("there were rounds")
}

#[track_caller]
fn assert_near(what: &str, found: Estimate, expected: f64, setting: Setting) {
    let off = (found.value - expected).abs() / expected;
    assert!(off < 0.05, "{what} is {found}, and should be {expected}: {setting:?}");
}

/// Checks what is found with what is set: a frame's bytes take time on the cable, which is part of
/// the latency, and the gap of the network.
fn check(setting: Setting) {
    let Setting { send, receive, latency, megabits_per_second } = setting;
    let found = measured(setting);
    let per_byte = 8000.0 / megabits_per_second as f64;
    let frame = FRAME as f64 * per_byte;
    let (send, receive, latency) = (send as f64, receive as f64, latency as f64 + frame);
    assert_near("o_s", found.send_overhead, send, setting);
    assert_near("o_r", found.receive_overhead, receive, setting);
    assert_near("L", found.latency, latency, setting);
    assert_near("g", found.gap, frame.max(send + receive), setting);
    assert_eq!(found.gap_is_of_the_processor, frame < send + receive, "{setting:?}");
    assert_near("RTT", found.round_trip, 2.0 * (send + latency + receive), setting);
    let in_packets = per_byte * (4096.0 + AROUND) / 4096.0;
    assert_near("G", found.gap_per_byte.expect("it was measured"), in_packets, setting);
}

#[test]
fn the_gap_of_a_network_that_is_slower_than_its_hosts_is_found_with_all_else() {
    check(Setting { send: 300, receive: 400, latency: 2000, megabits_per_second: 400 });
    check(Setting { send: 3100, receive: 2900, latency: 20_000, megabits_per_second: 50 });
    check(Setting { send: 100, receive: 900, latency: 10_000, megabits_per_second: 500 });
}

#[test]
fn where_the_hosts_are_slower_than_the_network_the_gap_is_theirs() {
    check(Setting { send: 300, receive: 400, latency: 2000, megabits_per_second: 10_000 });
    check(Setting { send: 900, receive: 100, latency: 1200, megabits_per_second: 1000 });
    check(Setting { send: 100, receive: 150, latency: 500, megabits_per_second: 25_000 });
}

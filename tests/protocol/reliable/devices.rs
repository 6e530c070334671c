//! Devices that are full, or paused, or handed packets in an order of the test's own: what the
//! fabric, whose frames leave in the turn that made them, does not show.

use std::collections::VecDeque;
use std::time::Duration;

use doorbell_core::encap::{Full, Path, PathId};
use doorbell_core::memory::Buf;
use doorbell_core::nic::*;
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::{
    Bth, Extensions, Headers, Opcode, Packet, PathMtu, Pkey, Psn, RemoteAddr, Rkey, RnrTimer,
};
use doorbell_simulation::NodeId;

use crate::reliable::common::{End, Setup, Two, lossless, outcomes, short};

pub type Sent = (Headers, Vec<u8>);

/// A device that keeps what it is given, as far as there is room.
pub struct Held {
    pub packets: VecDeque<Sent>,
    pub room: usize,
    pub pushed: u64,
    pub delivered: u64,
}

impl Held {
    pub fn new(room: usize) -> Self {
        Self { packets: VecDeque::new(), room, pushed: 0, delivered: 0 }
    }

    pub fn take(&mut self) -> Sent {
        self.packets.pop_front().expect("a packet was sent")
    }
}

impl Outbox for Held {
    fn push(&mut self, _: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        if self.packets.len() >= self.room {
            return Err(Full);
        }
        let mut bytes = vec![0; payload.len()];
        payload.copy_to(&mut bytes);
        self.packets.push_back((headers, bytes));
        self.pushed += 1;
        Ok(self.pushed)
    }

    fn flush(&mut self) {}

    fn delivered(&mut self, _: PathId) -> u64 {
        self.delivered
    }
}

pub fn give(two: &mut Two, to: NodeId, from: NodeId, (headers, bytes): &Sent) {
    let flow = Flow::Link(two.fabric.path(to, from).id());
    two.fabric.nic(to).packet(flow, &Packet { headers: *headers, payload: &bytes[..] });
}

fn micros(count: u64) -> Time {
    Time::from_nanos(count * 1000)
}

fn write(id: u64, place: &Registration, len: usize) -> WorkRequest {
    WorkRequest::write(id, place.address, place.rkey, Memory::Buf(Buf::from(vec![1; len])))
}

/// The peer refuses, and then says how far it has come: a device hands on the one before it tells
/// the other.
#[test]
fn what_was_refused_is_not_complete_when_it_is_delivered() {
    let mut two = lossless().connected(|_, _| {});
    let (a, b) = (two.a.node, two.b.node);
    let (mut to_a, mut to_b) = (Held::new(9), Held::new(9));
    two.a.post(short(0));
    two.fabric.nic(a).transmit(&mut to_b);
    give(&mut two, b, a, &to_b.take());
    two.fabric.nic(b).transmit(&mut to_a);
    give(&mut two, a, b, &to_a.take());
    to_b.delivered = 1;
    two.fabric.nic(a).collect(&mut to_b);
    assert_eq!(outcomes(&two.a.poll()), []);
    assert_eq!(two.counters().0.rnr_naks_received, 1);
}

/// Tickets are a path's. Those of the last connection once completed what the next had only sent.
#[test]
fn what_one_path_delivered_says_nothing_of_the_next() {
    let mut two = lossless().connected(|_, _| {});
    let (a, qpn) = (two.a.node, two.a.qpn);
    let mut device = Held::new(9);
    two.a.post(short(0));
    two.fabric.nic(a).transmit(&mut device);
    device.delivered = 1000;
    two.fabric.nic(a).collect(&mut device);
    assert_eq!(outcomes(&two.a.poll()), [(0, Ok(Done::Sent))]);

    let path = two.fabric.path(a, two.b.node);
    let connection = Connection::new(two.b.qpn, path, PathMtu::Mtu1024, Psn::new(0));
    two.a.reset(&mut two.fabric).unwrap();
    two.fabric.ready(a, qpn, connection, Sending::new(Psn::new(0)));
    two.a.post(short(1));
    let mut another = Held::new(9);
    two.fabric.nic(a).transmit(&mut another);
    two.fabric.nic(a).collect(&mut another);
    assert_eq!(outcomes(&two.a.poll()), []);
}

/// A long message's packets are waited for one at a time. That of a message before, which an answer
/// held up, was taken for one of this, which then never went on.
#[test]
fn a_message_longer_than_the_window_goes_on_behind_a_read() {
    let mut two = lossless().connected(|_, sending| sending.window = 4);
    let (a, b) = (two.a.node, two.b.node);
    let (_, place) = two.b.open(&mut two.fabric, 20_000);
    let (mut to_a, mut to_b) = (Held::new(99), Held::new(99));
    two.a.post(write(0, &place, 3000));
    two.a.post(WorkRequest::read(1, place.address, place.rkey, Buf::with_capacity(8)));
    two.a.post(write(2, &place, 20_000));
    for _ in 0..20 {
        two.fabric.nic(a).transmit(&mut to_b);
        while let Some(packet) = to_b.packets.pop_front() {
            give(&mut two, b, a, &packet);
        }
        // What was delivered is known before what was answered.
        to_b.delivered = to_b.pushed;
        two.fabric.nic(a).collect(&mut to_b);
        two.fabric.nic(a).transmit(&mut to_b);
        two.fabric.nic(b).transmit(&mut to_a);
        while let Some(packet) = to_a.packets.pop_front() {
            give(&mut two, a, b, &packet);
        }
    }
    let expected = [(0, Ok(Done::Written)), (1, Ok(Done::Read)), (2, Ok(Done::Written))];
    assert_eq!(outcomes(&two.a.poll()), expected);
}

/// The packet that was waited for had been answered by then, and no other was waited for in its
/// place: the device's word on it let nothing go on.
#[test]
fn a_message_longer_than_the_window_goes_on_when_an_answer_told_of_what_was_before_it() {
    let mut two = lossless().connected(|_, sending| sending.window = 3);
    let (a, b) = (two.a.node, two.b.node);
    let (_, place) = two.b.open(&mut two.fabric, 20_000);
    let (mut to_a, mut to_b) = (Held::new(99), Held::new(99));
    write_and_read(&mut two, &place, &mut to_a, &mut to_b);
    two.a.post(write(2, &place, 4000));
    for _ in 0..2 {
        two.fabric.nic(a).transmit(&mut to_b);
        while let Some(packet) = to_b.packets.pop_front() {
            give(&mut two, b, a, &packet);
        }
        to_b.delivered = to_b.pushed;
        two.fabric.nic(a).collect(&mut to_b);
    }
    assert_eq!(outcomes(&two.a.poll())[2..], [(2, Ok(Done::Written))]);
}

/// What had been answered was progress once more when the device told of it.
#[test]
fn a_queue_pair_that_has_drained_says_so_once() {
    let mut two = lossless().connected(|_, _| {});
    let (a, qpn) = (two.a.node, two.a.qpn);
    let (_, place) = two.b.open(&mut two.fabric, 3000);
    let (mut to_a, mut to_b) = (Held::new(99), Held::new(99));
    write_and_read(&mut two, &place, &mut to_a, &mut to_b);
    two.fabric.nic(a).change(qpn, Change::Drain).unwrap();
    assert_eq!(two.fabric.nic(a).event(), Some(Event::Drained(qpn)));
    to_b.delivered = to_b.pushed;
    two.fabric.nic(a).collect(&mut to_b);
    assert_eq!(two.fabric.nic(a).event(), None);
}

/// A write of two packets and a read, whose answer comes before the device says anything.
fn write_and_read(two: &mut Two, place: &Registration, to_a: &mut Held, to_b: &mut Held) {
    let (a, b) = (two.a.node, two.b.node);
    two.a.post(write(0, place, 2000));
    two.a.post(WorkRequest::read(1, place.address, place.rkey, Buf::with_capacity(8)));
    two.fabric.nic(a).transmit(to_b);
    while let Some(packet) = to_b.packets.pop_front() {
        give(two, b, a, &packet);
    }
    two.fabric.nic(b).transmit(to_a);
    give(two, a, b, &to_a.take());
}

#[test]
fn a_refusal_for_good_goes_before_one_that_is_not() {
    let mut two = Setup::default().connected(|_, sending| sending.retries = 2);
    let (a, b) = (two.a.node, two.b.node);
    two.b.receives(3, 8);
    let (mut to_a, mut to_b) = (Held::new(9), Held::new(9));
    let data = Memory::Buf(Buf::from(vec![1; 65]));
    two.a.post(WorkRequest::write(1, RemoteAddr(4096), Rkey(77), data));
    two.a.post(short(2));
    two.fabric.nic(a).transmit(&mut to_b);
    let (first, second) = (to_b.take(), to_b.take());
    give(&mut two, b, a, &second);
    give(&mut two, b, a, &first);
    two.fabric.nic(b).transmit(&mut to_a);
    give(&mut two, a, b, &to_a.take());
    let (sent, _) = two.run(2, 0);
    assert_eq!(sent[0].outcome, Err(Failure::Broke(Cause::PeerAccess)));
}

#[test]
fn a_refusal_that_comes_again_does_not_stop_who_was_acknowledged_since() {
    let wait = RnrTimer::at_least(Duration::from_millis(600));
    let mut two = Setup::default().connected(|connection, _| connection.not_ready = wait);
    let (a, b) = (two.a.node, two.b.node);
    let (mut to_a, mut to_b) = (Held::new(9), Held::new(9));
    two.a.post(short(0));
    two.fabric.nic(a).transmit(&mut to_b);
    give(&mut two, b, a, &to_b.take());
    two.fabric.nic(b).transmit(&mut to_a);
    let refusal = to_a.take();
    give(&mut two, a, b, &refusal);
    two.b.receives(4, 8);

    // After the wait, that message again, and one behind it, which is lost.
    two.fabric.nic(a).advance(micros(700_000));
    two.a.post(short(1));
    two.fabric.nic(a).transmit(&mut to_b);
    give(&mut two, b, a, &to_b.take());
    to_b.take();
    two.fabric.nic(b).transmit(&mut to_a);
    give(&mut two, a, b, &refusal);
    give(&mut two, a, b, &to_a.take());
    assert_eq!(outcomes(&two.a.poll()), [(0, Ok(Done::Sent))]);
    let timeout = two.fabric.nic(a).next_timeout().expect("a packet is under way");
    assert!(timeout < micros(800_000), "{timeout:?}");
    two.fabric.nic(a).advance(timeout + Duration::from_micros(10));
    two.fabric.nic(a).transmit(&mut to_b);
    assert_eq!(to_b.packets.len(), 1, "what was lost is sent again, and does not wait");
}

/// Two queue pairs share a device that takes fewer packets a turn than either has.
fn shares_the_device(setup: Setup) {
    let mut two = setup.unconnected();
    let (a, b) = (two.a.node, two.b.node);
    let mut other = End::new(&mut two.fabric, a, 64, 256);
    let mut others_peer = End::new(&mut two.fabric, b, 64, 256);
    for (one, peer) in [(two.a.qpn, two.b.qpn), (other.qpn, others_peer.qpn)] {
        two.fabric.connect((a, one), (b, peer), setup.mtu, |_, _| {});
    }
    let (_, place) = two.b.open(&mut two.fabric, 1 << 20);
    others_peer.receives(1, 8);
    (0..4).for_each(|id| two.a.post(write(id, &place, 1 << 20)));
    let (mut to_a, mut to_b) = (Held::new(16), Held::new(16));
    two.fabric.nic(a).transmit(&mut to_b);
    other.post(short(9));
    for turn in 1.. {
        for node in [a, b] {
            two.fabric.nic(node).advance(micros(turn * 10));
        }
        two.fabric.nic(a).transmit(&mut to_b);
        while let Some(packet) = to_b.packets.pop_front() {
            give(&mut two, b, a, &packet);
        }
        to_b.delivered = to_b.pushed;
        two.fabric.nic(b).transmit(&mut to_a);
        while let Some(packet) = to_a.packets.pop_front() {
            give(&mut two, a, b, &packet);
        }
        two.fabric.nic(a).collect(&mut to_b);
        for _ in two.a.poll() {
            two.a.post(write(4, &place, 1 << 20));
        }
        if other.queue.poll().is_some() {
            return;
        }
        assert!(turn < 100, "eight bytes still wait after {turn} turns of 16 packets");
    }
}

#[test]
fn one_queue_pair_does_not_keep_the_device_to_itself() {
    shares_the_device(Setup::default());
    shares_the_device(lossless());
}

#[test]
fn what_could_not_be_sent_is_not_unanswered() {
    let mut two = Setup::default().connected(|_, _| {});
    let (a, b) = (two.a.node, two.b.node);
    two.b.receives(10, 8);
    let (mut to_a, mut to_b) = (Held::new(9), Held::new(1));
    two.a.post(short(0).awaited());
    two.a.post(short(1).awaited());
    two.fabric.nic(a).transmit(&mut to_b);
    let first = to_b.take();
    to_b.room = 0;
    give(&mut two, b, a, &first);
    two.fabric.nic(b).transmit(&mut to_a);
    two.fabric.nic(a).advance(micros(20));
    give(&mut two, a, b, &to_a.take());
    for turn in 3..1000 {
        two.fabric.nic(a).advance(micros(turn * 1000));
        two.fabric.nic(a).transmit(&mut to_b);
    }
    assert_eq!((two.fabric.nic(a).event(), two.counters().0.timeouts), (None, 0));
    to_b.room = 1;
    two.fabric.nic(a).transmit(&mut to_b);
    assert_eq!(to_b.packets.len(), 1);
}

/// Both ways there is more data than the device takes, and nothing is lost.
#[test]
fn acknowledgements_do_not_wait_for_the_end_of_the_data() {
    const PAIRS: usize = 64;
    let config = Config { queue_pairs: 2 * PAIRS, registrations: PAIRS, ..Config::default() };
    let setup = Setup { config, mtu: PathMtu::Mtu4096, depth: 4, ..Setup::default() };
    let mut two = setup.unconnected();
    let (a, b) = (two.a.node, two.b.node);
    let mut ends = Vec::new();
    for _ in 0..PAIRS {
        let mut one = End::new(&mut two.fabric, a, 4, 16);
        let mut other = End::new(&mut two.fabric, b, 4, 16);
        two.fabric.connect((a, one.qpn), (b, other.qpn), setup.mtu, |_, _| {});
        let at_a = one.open(&mut two.fabric, 1 << 18).1;
        let at_b = other.open(&mut two.fabric, 1 << 18).1;
        for id in 0..4 {
            one.post(write(id, &at_b, 1 << 18));
            other.post(write(id, &at_a, 1 << 18));
        }
        ends.extend([one, other]);
    }
    let (mut to_a, mut to_b) = (Held::new(30), Held::new(30));
    let mut done = 0;
    for turn in 1..5000 {
        for (node, device) in [(a, &mut to_b), (b, &mut to_a)] {
            two.fabric.nic(node).advance(micros(turn * 100));
            two.fabric.nic(node).transmit(device);
        }
        while let Some(packet) = to_b.packets.pop_front() {
            give(&mut two, b, a, &packet);
        }
        while let Some(packet) = to_a.packets.pop_front() {
            give(&mut two, a, b, &packet);
        }
        for completion in ends.iter_mut().flat_map(|end| end.poll()) {
            assert!(completion.outcome.is_ok(), "{completion:?}");
            done += 1;
        }
    }
    assert_eq!(done, 8 * PAIRS);
    assert_eq!((two.counters().0.timeouts, two.counters().0.retransmitted), (0, 0));
}

#[test]
fn an_armed_queue_tells_however_much_else_there_is_to_tell() {
    const MANY: usize = 5000;
    let config = Config { queue_pairs: MANY + 1, registrations: 1, ..Config::default() };
    let mut nic = Nic::new(config, Seed::from_number(1)).unwrap();
    let domain = nic.domain();
    let mut pair = |capacity: usize, count: usize| {
        let (id, queue) = nic.completion_queue(capacity).unwrap();
        let config =
            QueuePairConfig { send_depth: 1, receive_depth: 1, ..QueuePairConfig::new(domain, id) };
        let ends: Vec<_> = (0..count).map(|_| nic.queue_pair(&config).unwrap()).collect();
        (id, queue, ends)
    };
    let (_, _many_completions, many) = pair(MANY + 1, MANY);
    let (armed, mut completions, mut last) = pair(2, 1);
    nic.arm(armed, Notify::Any).unwrap();
    let init = || Change::Init { rights: Rights::NONE, pkey: Pkey::DEFAULT };
    for ends in many.iter().chain(&last) {
        nic.change(ends.qpn, init()).unwrap();
    }
    last[0].receive.post(ReceiveRequest { id: 1, memory: Memory::None }).unwrap();
    for ends in many.iter().chain(&last) {
        nic.change(ends.qpn, Change::Error).unwrap();
    }
    nic.transmit(&mut Held::new(9));
    assert!(completions.poll().is_some());
    let mut events = Vec::new();
    events.extend(std::iter::from_fn(|| nic.event()));
    assert!(events.contains(&Event::Completion(armed)));
    assert_eq!(events.len(), MANY + 2, "one for each that broke, and that one");
}

#[test]
fn a_message_of_more_than_there_may_be_is_refused_however_much_room_there_is() {
    const PART: usize = 64 << 20;
    let setup = Setup { mtu: PathMtu::Mtu4096, ..Setup::default() };
    let first = Psn::new(0);
    let mut two = setup.connected(|connection, _| connection.expected = first);
    let (a, b, qpn) = (two.a.node, two.b.node, two.b.qpn);
    let (_region, place) = two.b.open(&mut two.fabric, PART);
    two.b.receive(1, vec![place.segment(0, PART as u32); 33].into_boxed_slice());
    let payload = vec![0xDB; 4096];
    let allowed = LONGEST_MESSAGE / 4096;
    for number in 0..=allowed {
        let opcode = if number == 0 { Opcode::RcSendFirst } else { Opcode::RcSendMiddle };
        let bth = Bth::new(opcode, qpn, first.add(number));
        let headers = Headers { bth, extensions: Extensions::None };
        let flow = Flow::Link(two.fabric.path(b, a).id());
        let nic = two.fabric.nic(b);
        nic.packet(flow, &Packet { headers, payload: &payload[..] });
        assert_eq!(nic.event().is_some(), number == allowed, "packet {number}");
    }
}

#[test]
fn a_peer_that_delays_its_answers_is_not_taken_for_lost() {
    let delay = Duration::from_millis(1);
    let mut two = Setup::default().connected(|connection, sending| {
        (connection.ack_delay, sending.peer_delay) = (delay, delay);
    });
    two.b.receives(60, 8);
    two.a.post(short(0).awaited());
    two.run(1, 1);
    for id in 1..50 {
        two.a.post(short(id));
        two.run(1, 1);
    }
    assert_eq!(two.counters().0.timeouts, 0);
}

/// Longer than it takes a stopped process or a changed route to come back, with what is customary.
#[test]
fn a_peer_that_falls_silent_is_waited_for() {
    let mut two = Two::new();
    two.b.receives(60, 8);
    for id in 0..30 {
        two.a.post(short(id).awaited());
        two.run(1, 1);
    }
    let set = [two.fabric.station(two.a.node)];
    two.fabric.network.partition(&set);
    let before = two.fabric.now();
    two.a.post(short(99));
    let (sent, _) = two.run(1, 0);
    assert_eq!(sent[0].outcome, Err(Failure::Broke(Cause::NoAnswer { tries: 8 })));
    let waited = two.fabric.now().since(before);
    assert!((Duration::from_millis(200)..Duration::from_secs(2)).contains(&waited), "{waited:?}");
}

//! Reads and atomic operations packet by packet: one NIC, and a peer made by hand.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use doorbell_core::encap::{Full, Outer, Path, PathId, Version, shm_record};
use doorbell_core::memory::{Buf, Region};
use doorbell_core::nic::*;
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::*;
use doorbell_simulation::Fabric;

use crate::reliable::common::{bytes, outcomes, pattern};

const PEER: Qpn = Qpn::new(0x77);
const FIRST: Psn = Psn::new(0xFF_FFFE);
const MTU: usize = 256;

/// What the NIC sends is kept.
#[derive(Default)]
struct Sent(Vec<(Headers, Vec<u8>)>);

impl Outbox for Sent {
    fn push(&mut self, _: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        let mut bytes = vec![0; payload.len()];
        payload.copy_to(&mut bytes);
        self.0.push((headers, bytes));
        Ok(0)
    }

    fn flush(&mut self) {}

    fn delivered(&mut self, _: PathId) -> u64 {
        unreachable!("frames can be lost")
    }
}

struct One {
    nic: Nic,
    out: Sent,
    domain: Domain,
    qpn: Qpn,
    reads: u8,
    send: SendQueue,
    queue: CompletionQueue,
    receive: ReceiveQueue,
}

impl One {
    /// A NIC connected to a peer that takes so many reads, and may have so many under way.
    fn new(reads: u8) -> Self {
        let mut nic = Nic::new(Config::default(), Seed::from_number(1)).unwrap();
        let domain = nic.domain();
        let (id, queue) = nic.completion_queue(100).unwrap();
        let config = QueuePairConfig {
            send_depth: 16,
            receive_depth: 16,
            ..QueuePairConfig::new(domain, id)
        };
        let QueuePairEnds { qpn, send, receive } = nic.queue_pair(&config).unwrap();
        let (out, path) =
            (Sent::default(), Fabric::new(1, Version::V1, Config::default()).path(0, 1));
        let mut one = Self { nic, out, domain, qpn, reads, send, queue, receive };
        one.connect(path);
        one
    }

    /// Connects it to a peer along a path.
    fn connect(&mut self, path: Path) {
        let Self { nic, qpn, reads, send, receive, .. } = self;
        if nic.state(*qpn) != Some(State::Reset) {
            nic.reset(send, receive).unwrap();
        }
        let mut connection = Connection::new(PEER, path, PathMtu::Mtu256, FIRST);
        connection.reads = *reads;
        let init = Change::Init { rights: Rights::REMOTE, pkey: Pkey::DEFAULT };
        let sending = Sending { reads: *reads, ..Sending::new(FIRST) };
        for change in
            [init, Change::ReadyToReceive(Box::new(connection)), Change::ReadyToSend(sending)]
        {
            nic.change(*qpn, change).unwrap();
        }
    }

    /// Takes a packet from the peer, and sends what that calls for.
    fn take(&mut self, opcode: Opcode, psn: Psn, extensions: Extensions, payload: &[u8]) {
        let headers = Headers { bth: Bth::new(opcode, self.qpn, psn), extensions };
        self.nic.packet(Flow::Link(PathId(1)), &Packet { headers, payload });
        self.nic.transmit(&mut self.out);
    }

    /// The same of a packet that lies where a device received it.
    fn takes_as_it_comes(
        &mut self,
        opcode: Opcode,
        psn: Psn,
        extensions: Extensions,
        payload: &[u8],
    ) {
        let headers = Headers { bth: Bth::new(opcode, self.qpn, psn), extensions };
        let len = shm_record::record_len(&headers, payload.len());
        let record: Vec<_> = (0..len.div_ceil(8)).map(|_| AtomicU64::new(0)).collect();
        shm_record::emit(&record, [0; shm_record::TAG_LEN], &headers, payload);
        let first = record[0].load(Ordering::Acquire);
        let len = len - shm_record::TAG_LEN;
        assert!(receive_record(&mut self.nic, PathId(1), &record, first, len), "it is a packet");
        self.nic.transmit(&mut self.out);
    }

    fn answers(&mut self, opcode: Opcode, psn: Psn, payload: &[u8]) {
        let extensions = match opcode {
            Opcode::RcReadResponseMiddle => Extensions::None,
            _ => Extensions::Aeth(Aeth { syndrome: Syndrome::ACK, msn: Msn::new(1) }),
        };
        self.take(opcode, psn, extensions, payload);
    }

    fn asks(&mut self, psn: Psn, address: RemoteAddr, rkey: Rkey, len: u32) {
        let reth = Reth { address, rkey, length: DmaLength(len) };
        self.take(Opcode::RcReadRequest, psn, Extensions::Reth(reth), &[]);
    }

    fn adds(&mut self, psn: Psn, address: RemoteAddr, rkey: Rkey) {
        let (swap_or_add, compare) = (AtomicValue(1), AtomicValue(0));
        let atomic = AtomicEth { address, rkey, swap_or_add, compare };
        self.take(Opcode::RcFetchAdd, psn, Extensions::Atomic(atomic), &[]);
    }

    fn open(&mut self, content: &[u8]) -> (Region, Registration) {
        let region = Region::from_bytes(content);
        let place = self.nic.register(self.domain, region.clone(), Rights::REMOTE).unwrap();
        (region, place)
    }

    /// What was sent since the last time: each packet's opcode, number and payload.
    fn sent(&mut self) -> Vec<(Opcode, Psn, Vec<u8>)> {
        let sent = self.out.0.drain(..);
        sent.map(|(headers, bytes)| (headers.bth.opcode(), headers.bth.psn(), bytes)).collect()
    }

    fn refusal(&mut self) -> (Psn, Verdict) {
        match &self.out.0[..] {
            [(Headers { bth, extensions: Extensions::Aeth(aeth) }, _)] => {
                (bth.psn(), aeth.syndrome.verdict())
            }
            other => panic!("{other:?}"),
        }
    }
}

fn psn(index: u32) -> Psn {
    FIRST.add(index)
}

/// A read of 700 bytes, of whose answer only the first packet came, and then a later one.
fn asked_again() -> One {
    let mut one = One::new(16);
    let read = WorkRequest::read(1, RemoteAddr(0x1000), Rkey(9), Buf::with_capacity(700));
    one.send.post(read).unwrap();
    one.send.ring();
    one.nic.transmit(&mut one.out);
    assert_eq!(one.sent(), [(Opcode::RcReadRequest, psn(0), vec![])]);
    one.answers(Opcode::RcReadResponseFirst, psn(0), &pattern(700)[..MTU]);
    assert_eq!(one.sent(), []);
    one.answers(Opcode::RcReadResponseLast, psn(2), &pattern(700)[2 * MTU..]);
    // What is missing is asked for from there on.
    let [(headers, _)] = &one.out.0[..] else { panic!("{:?}", one.out.0) };
    let (address, length) = (RemoteAddr(0x1100), DmaLength(444));
    assert_eq!(headers.extensions, Extensions::Reth(Reth { address, rkey: Rkey(9), length }));
    assert_eq!((headers.bth.opcode(), headers.bth.psn()), (Opcode::RcReadRequest, psn(1)));
    one.out.0.clear();
    one
}

#[test]
fn the_rest_of_a_read_may_come_as_its_end_or_as_a_read_of_its_own() {
    for first in [Opcode::RcReadResponseMiddle, Opcode::RcReadResponseFirst] {
        let mut one = asked_again();
        one.answers(first, psn(1), &pattern(700)[MTU..2 * MTU]);
        one.answers(Opcode::RcReadResponseLast, psn(2), &pattern(700)[2 * MTU..]);
        let done = one.queue.poll().expect("a completion");
        assert_eq!((done.outcome, done.len), (Ok(Done::Read), 700));
        assert_eq!(bytes(&done), pattern(700));
    }
}

#[test]
fn what_is_missing_is_asked_for_once_and_then_when_time_is_out() {
    let mut one = asked_again();
    for _ in 0..3 {
        one.answers(Opcode::RcReadResponseLast, psn(2), &pattern(700)[2 * MTU..]);
        assert_eq!(one.sent(), []);
    }
    one.nic.advance(Time::ZERO + Duration::from_secs(1));
    one.nic.transmit(&mut one.out);
    assert_eq!(one.sent(), [(Opcode::RcReadRequest, psn(1), vec![])]);
    assert_eq!(one.nic.counters().timeouts, 1);
}

#[test]
fn an_acknowledgement_does_not_complete_a_read_that_was_not_answered() {
    let mut one = One::new(16);
    let read = WorkRequest::read(1, RemoteAddr(0x1000), Rkey(9), Buf::with_capacity(8));
    one.send.post(read).unwrap();
    one.send.post(WorkRequest::send(2, Memory::None)).unwrap();
    one.send.ring();
    one.nic.transmit(&mut one.out);
    assert_eq!(one.sent().len(), 2);
    one.answers(Opcode::RcAcknowledge, psn(1), &[]);
    assert!(one.queue.is_empty());
    let again = [(Opcode::RcReadRequest, psn(0), vec![]), (Opcode::RcSendOnly, psn(1), vec![])];
    assert_eq!(one.sent(), again);
    one.answers(Opcode::RcReadResponseOnly, psn(0), &[5; 8]);
    one.answers(Opcode::RcAcknowledge, psn(1), &[]);
    let done: Vec<Completion> = std::iter::from_fn(|| one.queue.poll()).collect();
    assert_eq!(outcomes(&done), [(1, Ok(Done::Read)), (2, Ok(Done::Sent))]);
}

#[test]
fn an_answer_of_another_length_breaks_the_queue_pair() {
    for (found, expected, at) in [(8, 256, 0), (256, 188, 2), (187, 188, 2)] {
        let mut one = One::new(16);
        let read = WorkRequest::read(1, RemoteAddr(0x1000), Rkey(9), Buf::with_capacity(700));
        one.send.post(read).unwrap();
        one.send.ring();
        one.nic.transmit(&mut one.out);
        for index in 0..at {
            one.answers(Opcode::RcReadResponseMiddle, psn(index), &[1; MTU]);
        }
        one.answers(Opcode::RcReadResponseLast, psn(at), &vec![1; found as usize]);
        let done = one.queue.poll().expect("a completion");
        let cause = Cause::AnswerLength { found, expected };
        assert_eq!(done.outcome, Err(Failure::Broke(cause)));
    }
}

#[test]
fn a_read_that_comes_again_is_carried_out_again_also_in_part() {
    let mut one = One::new(16);
    let (region, place) = one.open(&pattern(700));
    one.asks(psn(0), place.address, place.rkey, 700);
    let parts = [0..256, 256..512, 512..700].map(|range| pattern(700)[range].to_vec());
    let [a, b, c] = parts;
    let (first, middle, last) =
        (Opcode::RcReadResponseFirst, Opcode::RcReadResponseMiddle, Opcode::RcReadResponseLast);
    let whole = [(first, psn(0), a), (middle, psn(1), b.clone()), (last, psn(2), c)];
    assert_eq!(one.sent(), whole);
    region.write_at(600, &[0xEE; 100]).unwrap();
    let mut c = whole[2].2.clone();
    c[88..].fill(0xEE);
    one.asks(psn(1), RemoteAddr(place.address.0 + 256), place.rkey, 444);
    assert_eq!(one.sent(), [(first, psn(1), b), (last, psn(2), c)]);
    // More than there was is none that was asked for before.
    one.asks(psn(1), RemoteAddr(place.address.0 + 256), place.rkey, 1000);
    assert_eq!(one.sent(), []);
    one.nic.deregister(place.lkey).unwrap();
    one.asks(psn(2), RemoteAddr(place.address.0 + 512), place.rkey, 188);
    assert_eq!(one.refusal(), (psn(2), Verdict::Nak(Nak::RemoteAccess)));
    // It was answered before, and may only have been under way for long: nothing is broken.
    assert_eq!(one.nic.state(one.qpn), Some(State::ReadyToSend));
}

/// What looks like a repetition may be the first that its sender ever asks for, with a number from
/// the past.
#[test]
fn nothing_is_read_again_by_who_may_not_read() {
    let mut one = One::new(16);
    let path = Fabric::new(1, Version::V1, Config::default()).path(0, 1);
    one.nic.reset(&mut one.send, &mut one.receive).unwrap();
    let init = Change::Init { rights: Rights::REMOTE_WRITE, pkey: Pkey::DEFAULT };
    let connection = Connection::new(PEER, path, PathMtu::Mtu256, FIRST);
    for change in [init, Change::ReadyToReceive(Box::new(connection))] {
        one.nic.change(one.qpn, change).unwrap();
    }
    let (_, place) = one.open(&pattern(8));
    let reth = Reth { address: place.address, rkey: place.rkey, length: DmaLength(8) };
    one.take(Opcode::RcWriteOnly, psn(0), Extensions::Reth(reth), &[1; 8]);
    one.asks(psn(0), place.address, place.rkey, 8);
    assert_eq!(one.sent(), []);
    // With a number of the present it is an invalid request.
    one.asks(psn(1), place.address, place.rkey, 8);
    assert_eq!(one.refusal(), (psn(1), Verdict::Nak(Nak::InvalidRequest)));
}

/// By either way that a packet is judged: at first it is not known yet whom it comes from.
#[test]
fn a_write_of_another_length_than_it_says_changes_nothing() {
    for (known, said) in [(false, 7), (false, 9), (true, 7), (true, 9)] {
        let mut one = One::new(1);
        let (region, place) = one.open(&[0; 16]);
        let reth = |len| {
            let Registration { address, rkey, .. } = place;
            Extensions::Reth(Reth { address, rkey, length: DmaLength(len) })
        };
        if known {
            one.takes_as_it_comes(Opcode::RcWriteOnly, psn(0), reth(0), &[]);
        }
        let next = psn(known.into());
        one.takes_as_it_comes(Opcode::RcWriteOnly, next, reth(said), &[1; 8]);
        assert_eq!(one.refusal(), (next, Verdict::Nak(Nak::InvalidRequest)), "{known} {said}");
        assert_eq!([region.load(0), region.load(8)], [Ok(0), Ok(0)]);
    }
}

#[test]
fn an_atomic_that_comes_again_is_answered_from_memory_as_long_as_it_is_remembered() {
    let mut one = One::new(3);
    let (region, place) = one.open(&[0; 8]);
    for index in 0..5 {
        one.adds(psn(index), place.address, place.rkey);
        let (headers, _) = one.out.0.pop().expect("an answer");
        let aeth =
            Aeth { syndrome: Syndrome::ack_with(Credits::at_most(0)), msn: Msn::new(index + 1) };
        let value = AtomicValue(index.into());
        assert_eq!(headers.extensions, Extensions::AethAtomicAck(aeth, value));
        assert_eq!(headers.bth.psn(), psn(index));
    }
    for index in [2, 3, 4] {
        one.adds(psn(index), place.address, place.rkey);
        let (headers, _) = one.out.0.pop().expect("an answer");
        let Extensions::AethAtomicAck(_, value) = headers.extensions else { panic!() };
        assert_eq!((value, headers.bth.psn()), (AtomicValue(index.into()), psn(index)));
    }
    for index in [0, 1] {
        one.adds(psn(index), place.address, place.rkey);
        assert_eq!(one.sent(), []);
    }
    assert_eq!(region.load(0), Ok(5));
}

#[test]
fn more_reads_at_a_time_than_were_agreed_on_are_an_invalid_request() {
    let mut one = One::new(2);
    let (_, place) = one.open(&pattern(8));
    let reth = Reth { address: place.address, rkey: place.rkey, length: DmaLength(8) };
    for index in 0..3 {
        let bth = Bth::new(Opcode::RcReadRequest, one.qpn, psn(index));
        let headers = Headers { bth, extensions: Extensions::Reth(reth) };
        one.nic.packet(Flow::Link(PathId(1)), &Packet { headers, payload: &[][..] });
    }
    one.nic.transmit(&mut one.out);
    // Those that were taken are answered before.
    let refusal = one.out.0.pop().expect("a refusal");
    let answered: Vec<Psn> = one.sent().into_iter().map(|(_, psn, _)| psn).collect();
    assert_eq!(answered, [psn(0), psn(1)]);
    let Extensions::Aeth(aeth) = refusal.0.extensions else { panic!("{refusal:?}") };
    assert_eq!(aeth.syndrome.verdict(), Verdict::Nak(Nak::InvalidRequest));
    assert_eq!(refusal.0.bth.psn(), psn(2));
}

/// A read that came again, late, was still to be answered when the peer, which had the first
/// answer, asked for more. It was taken for one that asks for more at a time than it may.
#[test]
fn what_is_answered_again_does_not_keep_the_peer_from_asking_for_more() {
    let mut one = One::new(1);
    let (_, place) = one.open(&pattern(8));
    one.asks(psn(0), place.address, place.rkey, 8);
    let reth = Reth { address: place.address, rkey: place.rkey, length: DmaLength(8) };
    for index in [0, 1] {
        let bth = Bth::new(Opcode::RcReadRequest, one.qpn, psn(index));
        let headers = Headers { bth, extensions: Extensions::Reth(reth) };
        one.nic.packet(Flow::Link(PathId(1)), &Packet { headers, payload: &[][..] });
    }
    one.nic.transmit(&mut one.out);
    let answered: Vec<_> = one.sent().into_iter().map(|(opcode, psn, _)| (opcode, psn)).collect();
    let answer = Opcode::RcReadResponseOnly;
    assert_eq!(answered, [(answer, psn(0)), (answer, psn(1))]);
}

/// The answer to a read was lost, and a write behind it was refused. The read was told that it had
/// broken the queue pair.
#[test]
fn a_refusal_blames_the_request_that_it_is_about() {
    let mut one = One::new(1);
    let data = || Memory::Buf(Buf::from(pattern(8)));
    for request in [
        WorkRequest::read(1, RemoteAddr(0x1000), Rkey(9), Buf::with_capacity(8)),
        WorkRequest::send(2, data()),
        WorkRequest::write(3, RemoteAddr(0x1000), Rkey(7), data()),
        WorkRequest::send(4, data()),
    ] {
        one.send.post(request).unwrap();
    }
    one.send.ring();
    one.nic.transmit(&mut one.out);
    let aeth = Aeth { syndrome: Syndrome::nak(Nak::RemoteAccess), msn: Msn::new(2) };
    one.take(Opcode::RcAcknowledge, psn(2), Extensions::Aeth(aeth), &[]);
    let done: Vec<Completion> = std::iter::from_fn(|| one.queue.poll()).collect();
    let flushed = Err(Failure::Flushed(Cause::PeerAccess));
    let broke = Err(Failure::Broke(Cause::PeerAccess));
    assert_eq!(outcomes(&done), [(1, flushed), (2, flushed), (3, broke), (4, flushed)]);
}

#[test]
fn a_read_in_the_middle_of_a_message_is_an_invalid_request() {
    let mut one = One::new(2);
    let (_, place) = one.open(&pattern(1000));
    let reth = Reth { address: place.address, rkey: place.rkey, length: DmaLength(1000) };
    one.take(Opcode::RcWriteFirst, psn(0), Extensions::Reth(reth), &[1; MTU]);
    one.asks(psn(1), place.address, place.rkey, 8);
    assert_eq!(one.refusal(), (psn(1), Verdict::Nak(Nak::InvalidRequest)));
}

/// A long answer goes out a part at a time, so that it keeps nobody waiting.
#[test]
fn a_long_answer_takes_several_turns() {
    let mut one = One::new(2);
    let (_, place) = one.open(&pattern(100 * MTU));
    one.asks(psn(0), place.address, place.rkey, 100 * MTU as u32);
    let mut sent = one.sent();
    assert!(sent.len() < 100 && one.nic.has_work());
    while one.nic.has_work() {
        one.nic.transmit(&mut one.out);
        sent.extend(one.sent());
    }
    let numbers: Vec<Psn> = sent.iter().map(|&(_, psn, _)| psn).collect();
    assert_eq!(numbers, (0..100).map(psn).collect::<Vec<_>>());
    let content: Vec<u8> = sent.into_iter().flat_map(|(_, _, bytes)| bytes).collect();
    assert_eq!(content, pattern(100 * MTU));
}

/// The peer's packets come from another Ethernet address: it is told once, until somebody listens,
/// and packets follow it there when they are sent along another path.
#[test]
fn a_peer_that_moves_is_noticed_and_can_be_followed() {
    let mut one = One::new(2);
    let path = Fabric::new(1, Version::V2Ipv6, Config::default()).path(0, 1);
    let (_, place) = one.open(&pattern(8));
    let moved = |mac| match path.outer().turned() {
        Outer::V2Ipv6(ethernet, ip, udp) => {
            Outer::V2Ipv6(Ethernet { source: mac, ..ethernet }, ip, udp)
        }
        other => other,
    };
    let (elsewhere, home) = (moved(Mac([2, 9, 9, 9, 9, 9])), path.outer().turned());
    let reth = Reth { address: place.address, rkey: place.rkey, length: DmaLength(8) };
    let asks = |one: &mut One, flow, outer: &Outer, index| {
        let bth = Bth::new(Opcode::RcReadRequest, one.qpn, psn(index));
        let headers = Headers { bth, extensions: Extensions::Reth(reth) };
        one.nic.packet(Flow::Network(flow, outer), &Packet { headers, payload: &[][..] });
        one.nic.transmit(&mut one.out);
    };
    one.connect(path.in_the_clear());
    asks(&mut one, 1, &home, 0);
    assert_eq!(one.nic.event(), None);
    asks(&mut one, 2, &elsewhere, 1);
    asks(&mut one, 3, &home, 2);
    asks(&mut one, 4, &elsewhere, 3);
    assert_eq!(one.sent().len(), 4, "all are answered");
    let changed = Event::PathChanged(one.qpn);
    assert_eq!((one.nic.event(), one.nic.event()), (Some(changed), None));
    assert_eq!(one.nic.redirect(one.qpn, Path::new(PathId(9), elsewhere.turned())), Ok(()));
    asks(&mut one, 5, &elsewhere, 4);
    assert_eq!(one.nic.event(), None);
    let stranger = Fabric::new(1, Version::V2Ipv6, Config::default()).path(0, 2);
    let refused = one.nic.redirect(one.qpn, stranger);
    assert_eq!(refused, Err(ChangeError::OtherPeer { qpn: one.qpn }));
}

/// Its peer's first packet tells a queue pair that is not to send yet that the connection stands.
#[test]
fn the_first_packet_says_that_the_connection_stands() {
    let mut one = One::new(2);
    one.nic.reset(&mut one.send, &mut one.receive).unwrap();
    let path = Fabric::new(1, Version::V1, Config::default()).path(0, 1);
    let init = Change::Init { rights: Rights::REMOTE, pkey: Pkey::DEFAULT };
    one.nic.change(one.qpn, init).unwrap();
    let connection = Connection::new(PEER, path, PathMtu::Mtu256, FIRST);
    one.nic.change(one.qpn, Change::ReadyToReceive(Box::new(connection))).unwrap();
    let (_, place) = one.open(&pattern(8));
    for index in 0..3 {
        one.asks(psn(index), place.address, place.rkey, 8);
    }
    assert_eq!(one.sent().len(), 3);
    let told = [one.nic.event(), one.nic.event()];
    assert_eq!(told, [Some(Event::Established(one.qpn)), None]);
}

//! What messages consist of: where their bytes lie, how long they are, how they are cut.

use doorbell_core::encap::{Full, Path, PathId};
use doorbell_core::memory::{Buf, Region};
use doorbell_core::nic::*;
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::*;

use crate::reliable::common::{Setup, Two, at, bytes, inline, outcomes, pattern};

fn read(region: &Region, from: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    region.read_at(from, &mut bytes).unwrap();
    bytes
}

/// Messages of these lengths, sent and written, arrive as they were.
fn transfer(two: &mut Two, lengths: &[usize]) {
    let longest = lengths.iter().copied().max().unwrap();
    for &len in lengths {
        let message = pattern(len);
        two.b.receive(1, Buf::with_capacity(longest));
        two.a.post(WorkRequest::send(2, Memory::Buf(Buf::from(message.clone()))));
        let (at_a, at_b) = two.run(1, 1);
        assert_eq!(outcomes(&at_a), [(2, Ok(Done::Sent))]);
        assert_eq!((at_b[0].outcome, at_b[0].len as usize), (Ok(Done::Received), len));
        assert!(bytes(&at_b[0]) == message, "a send of {len} bytes");

        let (region, place) = two.b.open(&mut two.fabric, len + 16);
        let data = Memory::Buf(Buf::from(message.clone()));
        two.b.receive(3, Memory::None);
        two.a.post(WorkRequest::write(4, at(&place, 5), place.rkey, data).with_imm(Imm(8)));
        let (at_a, at_b) = two.run(1, 1);
        assert_eq!(outcomes(&at_a), [(4, Ok(Done::Written))]);
        assert_eq!((at_b[0].outcome, at_b[0].len as usize), (Ok(Done::ReceivedWrite), len));
        let whole = read(&region, 0, len + 16);
        assert!(whole[5..][..len] == message, "a write of {len} bytes");
        assert!(whole[..5].iter().chain(&whole[5 + len..]).all(|&byte| byte == 0));
        two.fabric.nic(two.b.node).deregister(place.lkey).unwrap();
    }
}

#[test]
fn messages_of_every_length_around_a_packet_arrive_whole() {
    for mtu in PathMtu::ALL {
        let mut two = Setup { mtu, ..Setup::default() }.connected(|_, _| {});
        let m = mtu.bytes();
        transfer(&mut two, &[0, 1, 2, 3, 4, m - 1, m, m + 1, 2 * m - 1, 2 * m, 2 * m + 1]);
    }
}

/// Where frames hold runs of packets of one length, a long write goes as one of a packet each. What
/// comes with a write tells of all of it, so such a write stays one.
#[test]
fn long_writes_go_as_many_where_frames_hold_runs() {
    let config = Config { runs: true, ..Setup::default().config };
    let mut two = Setup { config, ..Setup::default() }.connected(|_, _| {});
    let message = pattern(5000);
    let (region, place) = two.b.open(&mut two.fabric, 5008);
    let write = |len: usize| {
        let data = Memory::Buf(Buf::from(message[..len].to_vec()));
        WorkRequest::write(1, at(&place, 8), place.rkey, data)
    };
    two.a.post(write(5000));
    let (at_a, _) = two.run(1, 0);
    assert_eq!(outcomes(&at_a), [(1, Ok(Done::Written))]);
    assert!(read(&region, 8, 5000) == message);

    // The receives that the peer has are counted in messages, and each of five was one: who has
    // room for one more can be sent one.
    two.b.receive(2, Memory::None);
    two.a.post(write(3000).with_imm(Imm(8)));
    let (at_a, at_b) = two.run(1, 1);
    assert_eq!(outcomes(&at_a), [(1, Ok(Done::Written))]);
    assert_eq!((at_b[0].outcome, at_b[0].len), (Ok(Done::ReceivedWrite), 3000));

    // Of one that is refused, the packets before are there.
    region.write_at(0, &[0; 5008]).unwrap();
    let data = Memory::Buf(Buf::from(message.clone()));
    two.a.post(WorkRequest::write(3, at(&place, 1008), place.rkey, data));
    let (at_a, _) = two.run(1, 0);
    assert_eq!(outcomes(&at_a), [(3, Err(Failure::Broke(Cause::PeerAccess)))]);
    let written = read(&region, 1008, 4000);
    assert!(written[..3 * 1024] == message[..3 * 1024]);
    assert!(written[3 * 1024..].iter().all(|&byte| byte == 0));
    assert!(read(&region, 0, 1008).iter().all(|&byte| byte == 0));
}

#[test]
fn sequence_numbers_wrap_in_the_middle_of_a_message() {
    let first = Psn::new(0xFF_FFF0);
    let mut two = Setup::default().connected(|connection, sending| {
        (connection.expected, sending.first) = (first, first);
    });
    transfer(&mut two, &[10_000, 30_000, 1, 70_000]);
}

#[test]
fn messages_of_megabytes_arrive_whole() {
    let setup = Setup { mtu: PathMtu::Mtu4096, ..Setup::default() };
    let mut two = setup.connected(|_, sending| sending.window = 512);
    transfer(&mut two, &[1 << 20, (3 << 20) + 17]);
}

#[test]
fn a_message_is_gathered_from_segments_and_scattered_over_others() {
    let mut two = Setup { mtu: PathMtu::Mtu256, ..Setup::default() }.connected(|_, _| {});
    let (from, source) = two.a.open(&mut two.fabric, 4000);
    let (to, place) = two.b.open(&mut two.fabric, 8000);
    from.write_at(0, &pattern(4000)).unwrap();
    let lens = [1, 0, 255, 256, 257, 3, 900];
    let mut offset = 11;
    let (mut message, mut list) = (Vec::new(), Vec::new());
    for len in lens {
        list.push(source.segment(offset, len as u32));
        message.extend(read(&from, offset as usize, len));
        offset += len as u64 + 13;
    }
    let scattered = [(8, 300), (400, 7), (500, 0), (600, 1000), (2000, 3000)];
    let places = scattered.map(|(at, len)| place.segment(at, len));
    two.b.receive(1, Box::<[Segment]>::from(places));
    two.b.receive(2, place.segment(6000, 2000));
    let list: Box<[Segment]> = list.into();
    two.a.post(WorkRequest::send(3, list.clone()));
    two.a.post(WorkRequest::send(4, source.segment(7, 1111)));
    two.a.post(WorkRequest::write(5, at(&place, 7500), place.rkey, inline(&[7; 64])));
    let (at_a, at_b) = two.run(3, 2);
    assert_eq!(at_b[0].len as usize, message.len());
    assert_eq!(read(&to, 6000, 1111), pattern(4000)[7..1118]);
    assert_eq!(read(&to, 7500, 64), [7; 64]);
    let (mut rest, mut before) = (&message[..], 0);
    for (start, len) in scattered {
        let (here, others) = rest.split_at(rest.len().min(len as usize));
        let (start, len) = (start as usize, here.len());
        assert_eq!(read(&to, start, len), here);
        assert!(read(&to, before, start - before).iter().all(|&byte| byte == 0), "beside it");
        (rest, before) = (others, start + len);
    }
    assert!(rest.is_empty());
    // The memory comes back with the completion.
    let Memory::List(returned) = &at_a[0].memory else { panic!("{:?}", at_a[0]) };
    assert_eq!(*returned, list);
    assert!(matches!(at_a[1].memory, Memory::Segment(segment) if segment.len == 1111));
    assert!(matches!(at_a[2].memory, Memory::None));
}

#[test]
fn what_is_in_a_request_was_copied_when_it_was_posted() {
    assert!(Inline::new(&[0; MOST_INLINE + 1]).is_none());
    assert!(Inline::new(&[0; 1000]).is_none());
    let mut data = [5; MOST_INLINE];
    let request = WorkRequest::send(1, inline(&data));
    data.fill(6);
    let mut two = Two::new();
    two.b.receives(1, 64);
    two.a.post(request);
    let (_, at_b) = two.run(1, 1);
    assert_eq!(bytes(&at_b[0]), [5; MOST_INLINE]);
}

/// How many packets the longest message takes. Of the shortest it is half as many as there are
/// sequence numbers.
const PACKETS: [(PathMtu, u32); 2] = [(PathMtu::Mtu4096, 1 << 19), (PathMtu::Mtu256, 1 << 23)];
/// The most packets that may be under way: with one more, the next would look as if
/// it stood before the oldest.
const WIDEST: u32 = (1 << 23) - 1;
const LONGEST: usize = LONGEST_MESSAGE as usize;
const PIECES: usize = 64;

/// The longest message there is, in as many pieces, all of them the same memory.
fn longest(registration: &Registration) -> Box<[Segment]> {
    vec![registration.segment(0, LONGEST_MESSAGE / PIECES as u32); PIECES].into()
}

const ADDRESS: RemoteAddr = RemoteAddr(1 << 40);
const RKEY: Rkey = Rkey(5);
const IMM: Imm = Imm(3);

/// A device that knows which packet must come, of writes of so many packets each, and leaves their
/// bytes alone.
struct Expecting {
    mtu: PathMtu,
    first: Psn,
    each: u32,
    next: u32,
}

impl Outbox for Expecting {
    fn push(&mut self, _: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        let (mtu, place) = (self.mtu.bytes(), self.next % self.each);
        let length = DmaLength(self.each * mtu as u32);
        let reth = Reth { address: ADDRESS, rkey: RKEY, length };
        let (opcode, extensions) = match place {
            0 => (Opcode::RcWriteFirst, Extensions::Reth(reth)),
            n if n + 1 == self.each => (Opcode::RcWriteLastImmediate, Extensions::Imm(IMM)),
            _ => (Opcode::RcWriteMiddle, Extensions::None),
        };
        let found = (headers.bth.psn(), headers.bth.opcode(), headers.extensions, payload.len());
        assert_eq!(found, (self.first.add(self.next), opcode, extensions, mtu));
        self.next += 1;
        Ok(0)
    }

    fn flush(&mut self) {}

    fn delivered(&mut self, _: PathId) -> u64 {
        0
    }
}

/// Has node A answered: everything up to `psn` was taken, or everything before it.
fn answer(two: &mut Two, syndrome: Syndrome, psn: Psn) {
    let path = two.fabric.path(two.a.node, two.b.node);
    let bth = Bth::new(Opcode::RcAcknowledge, two.a.qpn, psn);
    let headers =
        Headers { bth, extensions: Extensions::Aeth(Aeth { syndrome, msn: Msn::new(0) }) };
    let packet = Packet { headers, payload: &[][..] };
    two.fabric.nic(two.a.node).packet(Flow::Link(path.id()), &packet);
}

#[test]
fn the_longest_message_takes_the_packets_that_it_should() {
    for ((mtu, packets), window) in PACKETS.into_iter().zip([1 << 15, WIDEST]) {
        let first = Psn::new(0xFF_0000);
        let mut two = Setup { mtu, ..Setup::default() }.connected(|connection, sending| {
            (connection.expected, sending.first, sending.window) = (first, first, window);
        });
        let (_, registration) = two.a.open(&mut two.fabric, LONGEST / PIECES);
        let request = WorkRequest::write(1, ADDRESS, RKEY, longest(&registration));
        two.a.post(request.with_imm(IMM));
        let mut device = Expecting { mtu, first, each: packets, next: 0 };
        while two.a.queue.is_empty() {
            let until = packets.min(device.next + window);
            two.fabric.nic(two.a.node).transmit(&mut device);
            assert_eq!(device.next, until);
            answer(&mut two, Syndrome::ACK, first.add(until - 1));
        }
        assert_eq!(device.next, packets);
        assert_eq!(outcomes(&two.a.poll()), [(1, Ok(Done::Written))]);
    }
}

#[test]
fn with_half_of_all_sequence_numbers_under_way_none_is_taken_for_another() {
    let (mtu, each, first) = (PathMtu::Mtu256, 1 << 17, Psn::new(0xFF_0000));
    let mut two = Setup { mtu, ..Setup::default() }
        .connected(|_, sending| (sending.first, sending.window) = (first, WIDEST));
    let len = each * mtu.bytes() as u32;
    let (_, registration) = two.a.open(&mut two.fabric, len as usize);
    for id in 0..64 {
        let data = registration.segment(0, len);
        two.a.post(WorkRequest::write(id, ADDRESS, RKEY, data).with_imm(IMM));
    }
    let mut device = Expecting { mtu, first, each, next: 0 };
    two.fabric.nic(two.a.node).transmit(&mut device);
    assert_eq!(device.next, WIDEST, "there is one more, for which the window has no room");

    // What is before the oldest was not sent, nor what comes next, nor what is half a circle away.
    for not_sent in [Psn::MAX.get(), WIDEST, WIDEST + 1] {
        answer(&mut two, Syndrome::ACK, first.add(not_sent));
    }
    for not_sent in [WIDEST + 1, WIDEST + 2] {
        answer(&mut two, Syndrome::nak(Nak::RemoteAccess), first.add(not_sent));
    }
    assert_eq!(two.counters().0.stray_answers, 5);

    // After a time-out, the oldest asks.
    let nic = two.fabric.nic(two.a.node);
    nic.advance(Time::from_nanos(10_000_000_000));
    device.next = 0;
    nic.transmit(&mut device);
    assert_eq!(device.next, 1);

    // All but the newest has arrived.
    device.next = WIDEST - 1;
    answer(&mut two, Syndrome::nak(Nak::SequenceError), first.add(device.next));
    assert_eq!(two.a.queue.len(), 63);
    two.fabric.nic(two.a.node).transmit(&mut device);
    assert_eq!(device.next, WIDEST + 1);
    answer(&mut two, Syndrome::ACK, first.add(WIDEST));
    let written = (0..64).map(|id| (id, Ok(Done::Written)));
    assert_eq!(outcomes(&two.a.poll()), written.collect::<Vec<_>>());
}

#[test]
fn the_longest_message_is_received_whole() {
    for (mtu, packets) in PACKETS {
        let first = Psn::new(0xFF_0000);
        let mut two = Setup { mtu, ..Setup::default() }
            .connected(|connection, _| connection.expected = first);
        let (region, registration) = two.b.open(&mut two.fabric, LONGEST / PIECES);
        two.b.receive(1, longest(&registration));
        two.b.receive(2, Memory::None);
        let (path, own) = (two.fabric.path(two.b.node, two.a.node), two.b.qpn);
        let nic = two.fabric.nic(two.b.node);
        let mut payload = vec![0xDB; mtu.bytes()];
        let mut arrive = |nic: &mut Nic, number: u32, opcode, extensions| {
            payload[..4].copy_from_slice(&number.to_ne_bytes());
            let headers = Headers { bth: Bth::new(opcode, own, first.add(number)), extensions };
            nic.packet(Flow::Link(path.id()), &Packet { headers, payload: &payload[..] });
        };
        for number in 0..packets - 1 {
            let opcode = if number == 0 { Opcode::RcSendFirst } else { Opcode::RcSendMiddle };
            arrive(nic, number, opcode, Extensions::None);
        }
        // However far behind the first packet is by now, it is none that is to come.
        arrive(nic, 0, Opcode::RcSendFirst, Extensions::None);
        arrive(nic, packets - 1, Opcode::RcSendLast, Extensions::None);
        arrive(nic, 0, Opcode::RcSendFirst, Extensions::None);
        assert_eq!((nic.counters().duplicates, nic.counters().out_of_sequence), (2, 0));

        // One packet more than the longest is not taken.
        let length = DmaLength((1 << 31) + 1);
        let reth = Reth { address: RemoteAddr(0), rkey: Rkey(0), length };
        arrive(nic, packets, Opcode::RcWriteFirst, Extensions::Reth(reth));
        assert_eq!(nic.event(), Some(Event::Broken(own, Cause::InvalidRequest)));

        let completions = two.b.poll();
        assert_eq!(outcomes(&completions), [(1, Ok(Done::Received))]);
        assert_eq!(completions[0].len, LONGEST_MESSAGE);
        // What the last piece of the message left.
        let there = packets / PIECES as u32;
        for index in 0..there {
            payload[..4].copy_from_slice(&(packets - there + index).to_ne_bytes());
            assert_eq!(read(&region, index as usize * mtu.bytes(), mtu.bytes()), payload);
        }
    }
}

//! What messages consist of: where their bytes lie, how long they are, how they are cut.

use doorbell::encap::{Full, Path, PathId};
use doorbell::memory::{Buf, Region};
use doorbell::nic::*;
use doorbell::payload::Payload;
use doorbell::wire::*;

use crate::common::{Setup, Two, at, bytes, inline, outcomes, pattern};

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

/// A device that notes the packets and leaves their bytes alone.
struct Noted(Vec<(Headers, usize)>);

impl Outbox for Noted {
    fn push(&mut self, _: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        self.0.push((headers, payload.len()));
        Ok(0)
    }

    fn flush(&mut self) {}

    fn delivered(&mut self, _: PathId) -> u64 {
        0
    }
}

const LONGEST: u64 = LONGEST_MESSAGE as u64;
const PACKETS: u32 = 1 << 19;
const PIECES: usize = 64;

/// The longest message there is, in as many pieces, all of them the same memory.
fn longest(registration: &Registration) -> Box<[Segment]> {
    vec![registration.segment(0, LONGEST_MESSAGE / PIECES as u32); PIECES].into()
}

#[test]
fn the_longest_message_takes_the_packets_that_it_should() {
    let setup = Setup { mtu: PathMtu::Mtu4096, ..Setup::default() };
    let first = Psn::new(0xFF_0000);
    let mut two = setup.connected(|connection, sending| {
        (connection.expected, sending.first, sending.window) = (first, first, 1 << 15);
    });
    let (_, registration) = two.a.open(&mut two.fabric, LONGEST as usize / PIECES);
    let (address, rkey) = (RemoteAddr(1 << 40), Rkey(5));
    two.a.post(WorkRequest::write(1, address, rkey, longest(&registration)).with_imm(Imm(3)));
    let (path, own) = (two.fabric.path(two.a.node, two.b.node), two.a.qpn);
    let nic = two.fabric.nic(two.a.node);
    let (mut noted, mut count) = (Noted(Vec::new()), 0);
    while two.a.queue.is_empty() {
        nic.transmit(&mut noted);
        assert!(!noted.0.is_empty(), "stuck at packet {count}");
        for (headers, len) in noted.0.drain(..) {
            assert_eq!(headers.bth.psn(), first.add(count));
            assert_eq!(len, 4096);
            count += 1;
            let (opcode, extensions) = (headers.bth.opcode(), headers.extensions);
            match count {
                1 => {
                    let length = DmaLength(LONGEST_MESSAGE);
                    assert_eq!(opcode, Opcode::RcWriteFirst);
                    assert_eq!(extensions, Extensions::Reth(Reth { address, rkey, length }));
                }
                PACKETS => {
                    assert_eq!(opcode, Opcode::RcWriteLastImmediate);
                    assert_eq!(extensions, Extensions::Imm(Imm(3)));
                }
                _ => assert_eq!(opcode, Opcode::RcWriteMiddle),
            }
        }
        let aeth = Aeth { syndrome: Syndrome::ACK, msn: Msn::new(0) };
        let bth = Bth::new(Opcode::RcAcknowledge, own, first.add(count - 1));
        let headers = Headers { bth, extensions: Extensions::Aeth(aeth) };
        nic.packet(Flow::Link(path.id()), &Packet { headers, payload: &[][..] });
    }
    assert_eq!(count, PACKETS);
    assert_eq!(outcomes(&two.a.poll()), [(1, Ok(Done::Written))]);
}

#[test]
fn the_longest_message_is_received_whole() {
    let setup = Setup { mtu: PathMtu::Mtu4096, ..Setup::default() };
    let first = Psn::new(0xFF_0000);
    let mut two = setup.connected(|connection, _| connection.expected = first);
    let (region, registration) = two.b.open(&mut two.fabric, LONGEST as usize / PIECES);
    two.b.receive(1, longest(&registration));
    two.b.receive(2, Memory::None);
    let (path, own) = (two.fabric.path(two.b.node, two.a.node), two.b.qpn);
    let nic = two.fabric.nic(two.b.node);
    let payload = vec![0xDB; 4096];
    for number in 0..PACKETS {
        let opcode = match number {
            0 => Opcode::RcSendFirst,
            n if n == PACKETS - 1 => Opcode::RcSendLast,
            _ => Opcode::RcSendMiddle,
        };
        let bth = Bth::new(opcode, own, first.add(number));
        let headers = Headers { bth, extensions: Extensions::None };
        nic.packet(Flow::Link(path.id()), &Packet { headers, payload: &payload[..] });
    }
    let completions = two.b.poll();
    assert_eq!(outcomes(&completions), [(1, Ok(Done::Received))]);
    assert_eq!(completions[0].len, LONGEST_MESSAGE);
    assert_eq!(read(&region, region.len() - 4096, 4096), payload);

    // One packet more than the longest is not taken.
    let reth = Reth { address: RemoteAddr(0), rkey: Rkey(0), length: DmaLength((1 << 31) + 1) };
    let bth = Bth::new(Opcode::RcWriteFirst, own, first.add(PACKETS));
    let headers = Headers { bth, extensions: Extensions::Reth(reth) };
    nic.packet(Flow::Link(path.id()), &Packet { headers, payload: &payload[..] });
    assert_eq!(nic.event(), Some(Event::Broken(own, Cause::InvalidRequest)));
}

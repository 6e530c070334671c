//! The bodies of the fuzz targets, run briefly: on recorded and built seeds, on every truncation
//! of those, and on mutations that are the same each time.
//!
//! An input that fails is kept in `fuzz/artifacts`, as the fuzzer keeps its own, and whatever lies
//! there is tried first the next time: `fuzz/README.md` says how to replay one.
#![cfg(not(loom))]

use std::panic;
use std::path::{Path, PathBuf};

use doorbell_core::encap::{Outer, Path as Way, PathId, Run, Version};
use doorbell_core::pcap;
use doorbell_core::wire::cm::{Mad, Message};
use doorbell_core::wire::*;

#[path = "../../../fuzz/src/lib.rs"]
mod bodies;

const MUTATIONS: usize = if cfg!(miri) { 20 } else { 20_000 };
const TRUNCATIONS: usize = if cfg!(miri) { 5 } else { 5_000 };
/// Beyond this a mutated input is cut: what parsers do with more is what they do with this much.
const LONGEST: usize = 8 << 10;

#[test]
fn ethernet_headers_are_emitted_as_they_were_parsed() {
    explore("ethernet", bodies::ethernet, &frames());
}

#[test]
fn ip_headers_are_emitted_as_they_were_parsed() {
    explore("ip", bodies::ip, &behind(&frames(), Ethernet::LEN));
}

#[test]
fn udp_headers_are_emitted_as_they_were_parsed() {
    explore("udp", bodies::udp, &behind(&frames(), Ethernet::LEN + Ipv4::LEN));
}

#[test]
fn packets_are_emitted_as_they_were_parsed() {
    explore("packet", bodies::packet, &packets());
}

#[test]
fn messages_of_the_connection_manager_survive_being_sent() {
    explore("mad", bodies::mad, &datagrams());
}

#[test]
fn ip_addressing_survives_being_sent() {
    let seeds: Vec<_> = datagrams().iter().map(|mad| mad[Mad::LEN - 92..].to_vec()).collect();
    explore("ip_cm", bodies::ip_cm, &seeds);
}

#[test]
fn outer_headers_are_emitted_as_they_were_parsed() {
    explore("outer", bodies::outer, &frames());
}

#[test]
fn only_packets_whose_icrc_holds_come_out_of_a_frame() {
    explore("opener", bodies::opener, &arrivals());
}

#[test]
fn a_record_in_shared_memory_is_the_packet_that_its_bytes_are() {
    explore("shm_record", bodies::shm_record, &records());
}

#[test]
fn captures_survive_being_written() {
    explore("pcap", bodies::pcap, &captures(4_000));
}

#[test]
fn what_was_laid_into_frames_comes_out_of_them() {
    explore("run", bodies::run, &pushes());
}

#[test]
fn nothing_that_happens_to_a_nic_breaks_its_promises() {
    explore("nic", bodies::nic, &happenings());
}

#[test]
fn nothing_that_happens_to_connection_managers_breaks_their_promises() {
    explore("cm", bodies::cm, &happenings());
}

/// Gives a body its seeds, their truncations and mutations, and names the input that fails.
fn explore(name: &str, body: fn(&[u8]), seeds: &[Vec<u8>]) {
    assert!(!seeds.is_empty());
    let artifacts = root().join("fuzz/artifacts").join(name);
    let attempt = |input: &[u8], origin: String| {
        let Err(panic) = panic::catch_unwind(|| body(input)) else { return };
        let file = artifacts.join(format!("cargo-test-{}", origin.replace([' ', ','], "-")));
        let kept = std::fs::create_dir_all(&artifacts).and_then(|()| std::fs::write(&file, input));
        let hex: String = input.iter().take(256).map(|byte| format!("{byte:02x}")).collect();
        let (len, file) = (input.len(), file.display());
        eprintln!(
            "\nbody `{name}` failed on {origin}: {len} bytes, the first of them {hex}\n\
             kept ({kept:?}), to be replayed by: cargo +nightly fuzz run {name} {file}\n"
        );
        panic::resume_unwind(panic);
    };

    for file in std::fs::read_dir(&artifacts).into_iter().flatten() {
        let path = file.unwrap().path();
        attempt(&std::fs::read(&path).unwrap(), format!("artifact {}", path.display()));
    }
    for (index, seed) in seeds.iter().enumerate() {
        attempt(seed, format!("seed {index}"));
    }
    let all: usize = seeds.iter().map(Vec::len).sum();
    let stride = all / TRUNCATIONS + 1;
    for (index, seed) in seeds.iter().enumerate() {
        for len in (index % stride..seed.len()).step_by(stride) {
            attempt(&seed[..len], format!("seed {index}, truncated to {len}"));
        }
    }
    let mut random = Random(name.bytes().fold(0, |sum, byte| sum << 5 ^ u64::from(byte)));
    let mut input = Vec::new();
    for iteration in 0..MUTATIONS {
        let seed = random.below(seeds.len());
        input.clone_from(&seeds[seed]);
        for _ in 0..=random.below(4) {
            mutate(&mut input, seeds, &mut random);
        }
        input.truncate(LONGEST);
        attempt(&input, format!("seed {seed}, iteration {iteration}"));
    }
}

/// Changes an input in one way.
fn mutate(input: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    if input.is_empty() {
        return input.extend(random.bytes(64));
    }
    let at = random.below(input.len());
    match random.below(8) {
        0 | 1 => input[at] ^= 1 << random.below(8),
        2 => input[at] = random.next() as u8,
        3 => input.truncate(at),
        4 => put_length(input, at, random),
        5 => {
            let other = &seeds[random.below(seeds.len())];
            input.truncate(at);
            input.extend(&other[random.below(other.len() + 1)..]);
        }
        6 => {
            let bytes = random.bytes(16);
            let end = (at + bytes.len()).min(input.len());
            input.splice(at..end, bytes);
        }
        _ if random.below(8) == 0 => *input = random.bytes(300),
        _ => input.extend(random.bytes(64)),
    }
}

/// Puts what may be a length where one may be: about as much as follows, or an extreme.
fn put_length(input: &mut [u8], at: usize, random: &mut Random) {
    let rest = (input.len() - at) as u32;
    let near = rest.wrapping_add(random.below(9) as u32).wrapping_sub(4);
    let value = [near, 0, 1, 0x7FFF, 0xFFFF, u32::MAX, 1 << 31][random.below(7)];
    let short = (value as u16).to_be_bytes();
    let short_le = (value as u16).to_le_bytes();
    let (long, long_le) = (value.to_be_bytes(), value.to_le_bytes());
    let bytes: &[u8] = [&short[..], &short_le, &long, &long_le][random.below(4)];
    for (to, from) in input[at..].iter_mut().zip(bytes) {
        *to = *from;
    }
}

/// Splitmix64: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// One byte or more, and no more than `most`.
    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..=self.below(most)).map(|_| self.next() as u8).collect()
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The capture files that are not longer than this.
fn captures(longest: usize) -> Vec<Vec<u8>> {
    let folder = std::fs::read_dir(root().join("tests/captures")).expect("the captures are there");
    let mut paths: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pcap"));
    paths.sort();
    let files = paths.iter().map(|path| std::fs::read(path).expect("a file"));
    files.filter(|file| file.len() <= longest).collect()
}

/// A frame of every opcode and length that was recorded, and frames that we build.
fn frames() -> Vec<Vec<u8>> {
    let mut seen = Vec::new();
    let mut frames = Vec::new();
    for file in captures(usize::MAX) {
        for record in pcap::Reader::new(&file).expect("a capture") {
            let frame = record.expect("a whole record").data;
            let Ok((outer, transport)) = Outer::parse(frame) else { continue };
            let kind = (outer.version(), transport[0], transport.len());
            if !seen.contains(&kind) {
                seen.push(kind);
                frames.push(frame.to_vec());
            }
        }
    }
    assert!(frames.len() > 30, "{} frames", frames.len());
    frames.extend(built());
    frames
}

/// Runs along a path of each encapsulation: one packet, and several of which the last is shorter.
fn built() -> Vec<Vec<u8>> {
    let (a, b) = (Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]));
    let ethernet = |ethertype| Ethernet { destination: a, source: b, ethertype };
    let (source, destination) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let (tos, ttl, protocol) = (0, 64, IpProtocol::UDP);
    let (total_length, id, dont_fragment) = (0, IpId(0), true);
    let ipv4 = Ipv4 { tos, total_length, id, dont_fragment, ttl, protocol, source, destination };
    let ipv6 = |next_header| Ipv6 {
        traffic_class: 0,
        flow_label: FlowLabel::new(0x12345),
        payload_length: 0,
        next_header,
        hop_limit: 64,
        source: Gid::from_mac(b),
        destination: Gid::from_mac(a),
    };
    let (source, destination) = (UdpPort(0xC000), UdpPort::ROCE_V2);
    let udp = Udp { source, destination, length: 0, checksum: InetChecksum(0) };
    let ways = [
        Outer::V2Ipv4(ethernet(EtherType::IPV4), ipv4, udp),
        Outer::V2Ipv6(ethernet(EtherType::IPV6), ipv6(IpProtocol::UDP), udp),
        Outer::V1(ethernet(EtherType::ROCE), Grh(ipv6(IpProtocol::IBA))),
    ];
    let mut frames = Vec::new();
    for outer in ways {
        for payloads in [&[64, 64, 64, 7][..], &[5], &[0]] {
            // Nothing could cut a run of RoCE v1.
            let single = outer.version() == Version::V1;
            let payloads = if single { &payloads[..1] } else { payloads };
            let way = Way::new(PathId(0), outer);
            let mut frame = vec![0; 600];
            let mut run = Run::begin(&way, &mut frame, IpId(0xFFFE), 9);
            for &len in payloads {
                let (opcode, extensions) = (Opcode::UcSendMiddle, Extensions::None);
                let bth = Bth::new(opcode, Qpn::new(0x11), Psn::new(run.packets()));
                let payload = &[0xDB; 64][..len];
                run.push(&way, &mut frame, Headers { bth, extensions }, payload).unwrap();
            }
            let sealed = run.seal(&mut frame);
            frame.truncate(sealed.len);
            frames.push(frame);
        }
    }
    frames
}

fn behind(frames: &[Vec<u8>], at: usize) -> Vec<Vec<u8>> {
    frames.iter().map(|frame| frame[at..].to_vec()).collect()
}

/// The transport packets of the frames, without their ICRC, and one of every opcode.
fn packets() -> Vec<Vec<u8>> {
    let mut packets: Vec<_> = frames()
        .iter()
        .map(|frame| {
            let (_, transport) = Outer::parse(frame).unwrap();
            transport[..transport.len() - 4].to_vec()
        })
        .collect();
    for (opcode, index) in Opcode::ALL.iter().zip(1u8..) {
        let mut packet = vec![index; 12 + opcode.layout().len() + 9];
        packet[..2].copy_from_slice(&[opcode.code(), index << 4]);
        packets.push(packet);
    }
    packets
}

/// The datagrams to queue pair 1, and one with each of the connection manager's messages.
fn datagrams() -> Vec<Vec<u8>> {
    let recorded = packets().into_iter().filter_map(|packet| {
        let packet = Packet::parse(&packet).ok()?;
        Mad::parse(packet.payload).ok().map(|_| packet.payload.to_vec())
    });
    let mut datagrams: Vec<_> = recorded.collect();
    let is_request = |mad: &Vec<u8>| matches!(Mad::parse(mad).unwrap().message, Message::Req(_));
    assert!(datagrams.iter().any(is_request), "a recorded request");
    for attribute in 0x10..=0x18 {
        let mut mad = vec![attribute; Mad::LEN];
        mad[..4].copy_from_slice(&[1, 7, 2, 3]);
        mad[16..18].copy_from_slice(&[0, attribute]);
        datagrams.push(mad);
    }
    datagrams
}

/// Frames for an opener: each alone as it was, and all that we build in a row, sealed anew.
fn arrivals() -> Vec<Vec<u8>> {
    let with_head = |frame: &[u8], flags: u8, segment: u16, bit: u16| {
        let mut input = vec![flags];
        for number in [segment, bit, frame.len() as u16] {
            input.extend(number.to_le_bytes());
        }
        input.extend(frame);
        input
    };
    let frames = frames();
    let mut arrivals: Vec<_> =
        frames.iter().zip(100..).map(|(frame, bit)| with_head(frame, 0, 80, bit)).collect();
    for flags in 0..3 {
        let built = built();
        arrivals.push(built.iter().flat_map(|frame| with_head(frame, flags, 80, 400)).collect());
        // The same outer headers again: what the opener remembers is used.
        let twice = frames.iter().filter(|frame| frame.len() < 120).step_by(4).take(8);
        let twice = twice.flat_map(|frame| with_head(frame, flags, 28, 333).repeat(2));
        arrivals.push(twice.collect());
    }
    arrivals
}

/// Records for [`bodies::shm_record`]: the length, the first word, and the words.
fn records() -> Vec<Vec<u8>> {
    let record = |packet: Vec<u8>| {
        let mut words = vec![0; 4];
        words.extend(&packet);
        words.resize(words.len().next_multiple_of(8), 0);
        let mut input = (packet.len() as u16).to_le_bytes().to_vec();
        input.extend(&words[..8]);
        input.extend(&words);
        input
    };
    packets().into_iter().map(record).collect()
}

/// What happens to a NIC, or to connection managers: any bytes are a list of that.
fn happenings() -> Vec<Vec<u8>> {
    let mut random = Random(0x41C);
    (0..200).map(|index| (0..10 * index).map(|_| random.next() as u8).collect()).collect()
}

/// Sequences of packets for [`bodies::run`]: of every opcode, of one size, and of falling sizes.
fn pushes() -> Vec<Vec<u8>> {
    let head = |room: u16, most: u8| {
        let mut input = room.to_le_bytes().to_vec();
        input.extend([most, 0xFE, 0xFF]);
        input.extend([0x52, 0x54, 0, 0x12, 0x34, 0x56].repeat(2));
        input.extend([64, 0x34, 0x12, 0, 0]);
        input
    };
    let push = |path: u8, opcode: usize, len: u16, start: u8| {
        let mut input = vec![path, opcode as u8];
        input.extend([0; 12]);
        input.extend(vec![start; Opcode::ALL[opcode].layout().len()]);
        input.extend(len.to_le_bytes());
        input.push(start);
        input
    };
    let every = Opcode::ALL.len();
    let mut pushes = Vec::new();
    for path in 0..4 {
        let mut all = head(2_000, 16);
        all.extend((0..every).flat_map(|opcode| push(path, opcode, 64, 3)));
        let mut run = head(9_000, 64);
        run.extend((0..20).flat_map(|index| push(path, 1, 256, index)));
        let mut falling = head(1_500, 3);
        falling.extend((0..40).flat_map(|index| push(path & index, 4, 40 - u16::from(index), 8)));
        pushes.extend([all, run, falling]);
    }
    let mut long = head(0xFFFF, 0xFF);
    long.extend((0..4).flat_map(|path| push(path, 0, 4_096, path).repeat(20)));
    pushes.push(long);
    pushes
}

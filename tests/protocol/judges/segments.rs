//! Runs of packets, and the cutting of them as segmentation offload does it.

use doorbell_core::encap::{Outer, Path, PathId, Run, Sealed, Version};
use doorbell_core::wire::*;

use crate::judges::frames::{Frame, MTU, Values, described, encapsulations};

/// A sealed frame of several packets, and each as it should travel alone.
pub struct Laid {
    pub bytes: Vec<u8>,
    pub sealed: Sealed,
    pub segments: Vec<Frame>,
}

/// Runs over both kinds of IP: of two packets and of many, of headers that differ, with a shorter
/// packet at the end and without.
pub fn runs() -> Vec<Laid> {
    let mut values = Values::default();
    let mut runs = Vec::new();
    for outer in encapsulations() {
        if outer.version() == Version::V1 {
            continue; // no interface segments what it carries
        }
        let path = Path::new(PathId(runs.len() as u32), outer);
        for (packets, last) in [(2, 1), (16, 131), (64, MTU.bytes()), (3, 0)] {
            let packets = message(&mut values, packets, last);
            // Over IPv4 the identification wraps within the longer ones.
            runs.push(lay(&path, IpId(0xFFFD), &packets));
        }
        let packets = mixed(&mut values);
        runs.push(lay(&path, IpId(values.u32() as u16), &packets));
    }
    runs
}

/// A SEND in this many packets, the last with `last` bytes; with none, it is a SEND ONLY that
/// comes after.
fn message(values: &mut Values, packets: u32, last: usize) -> Vec<(Headers, Vec<u8>)> {
    let first = values.headers(Opcode::RcSendFirst);
    let packet = |index: u32| {
        let (opcode, len) = match index {
            0 => (Opcode::RcSendFirst, MTU.bytes()),
            _ if index + 1 < packets => (Opcode::RcSendMiddle, MTU.bytes()),
            _ if last == 0 => (Opcode::RcSendOnly, 0),
            _ => (Opcode::RcSendLast, last),
        };
        let bth = first.bth.with_opcode(opcode).with_psn(first.bth.psn().add(index));
        (Headers { bth, extensions: Extensions::None }, values.bytes(len))
    };
    (0..packets).map(packet).collect()
}

/// Packets of different messages to different queue pairs, which have only their size in common.
fn mixed(values: &mut Values) -> Vec<(Headers, Vec<u8>)> {
    let opcodes = Opcode::ALL.iter().filter(|op| op.info().payload == PayloadRule::Any);
    let packet = |&opcode| {
        let headers = values.headers(opcode);
        // Three bytes short of full, so that there is padding.
        (headers, values.bytes(MTU.bytes() - 3 - opcode.layout().len()))
    };
    opcodes.map(packet).collect()
}

fn lay(path: &Path, first_id: IpId, packets: &[(Headers, Vec<u8>)]) -> Laid {
    let mut bytes = vec![0xAA; 1 << 16];
    let mut run = Run::begin(path, &mut bytes, first_id, packets.len() as u32);
    for (headers, payload) in packets {
        run.push(path, &mut bytes, *headers, &payload[..]).expect("there is room");
    }
    let sealed = run.seal(&mut bytes);
    assert_eq!(sealed.packets as usize, packets.len());
    bytes.truncate(sealed.len);
    let segments = cut(&bytes, sealed)
        .into_iter()
        .zip(packets)
        .zip(0..)
        .map(|((segment, (headers, payload)), index)| {
            let id = IpId(first_id.0.wrapping_add(index));
            let frame = described(segment, *path.outer(), id, *headers, payload.clone());
            with_checksum_as_found(frame)
        })
        .collect();
    Laid { bytes, sealed, segments }
}

/// What the UDP checksum is, is for tshark to verify: all that is expected is that there is one.
fn with_checksum_as_found(frame: Frame) -> Frame {
    let checksum = InetChecksum(be16(&frame.bytes, frame.outer.len() - 2));
    let outer = match frame.outer {
        Outer::V2Ipv4(e, ip, udp) => Outer::V2Ipv4(e, ip, Udp { checksum, ..udp }),
        Outer::V2Ipv6(e, ip, udp) => Outer::V2Ipv6(e, ip, Udp { checksum, ..udp }),
        other => other,
    };
    Frame { outer, ..frame }
}

const IP: usize = Ethernet::LEN;

/// Cuts a frame as an interface does that was told no more than `sealed` says: the headers
/// copied, lengths and identification and checksums made for each.
fn cut(frame: &[u8], sealed: Sealed) -> Vec<Vec<u8>> {
    let segmentation = sealed.segmentation.expect("there are several packets");
    let (headers, packets) = frame.split_at(segmentation.headers.into());
    let pieces = packets.chunks(segmentation.segment.into());
    pieces.zip(0..).map(|(piece, index)| segment(headers, packets.len(), piece, index)).collect()
}

fn segment(headers: &[u8], whole: usize, piece: &[u8], index: u16) -> Vec<u8> {
    let mut frame = [headers, piece].concat();
    let udp = headers.len() - Udp::LEN;
    let datagram = Udp::LEN + piece.len();
    match udp - IP {
        Ipv4::LEN => {
            put16(&mut frame, IP + 2, (Ipv4::LEN + datagram) as u16);
            put16(&mut frame, IP + 4, be16(headers, IP + 4).wrapping_add(index));
            put16(&mut frame, IP + 10, 0);
            let sum = !fold(sum(&frame[IP..udp]));
            put16(&mut frame, IP + 10, sum);
        }
        _ => put16(&mut frame, IP + 4, datagram as u16),
    }
    put16(&mut frame, udp + 4, datagram as u16);
    // Where the checksum stands there is the sum of the pseudo-header, with the length of the
    // whole in it. In ones' complement, what is subtracted is added inverted.
    let whole = !((Udp::LEN + whole) as u16);
    let checksum = !fold(sum(&frame[udp..]) + u64::from(whole) + datagram as u64);
    // Zero would say that there is none.
    put16(&mut frame, udp + 6, if checksum == 0 { 0xFFFF } else { checksum });
    frame
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// The sum of the words of `bytes`: packets end at a multiple of four.
fn sum(bytes: &[u8]) -> u64 {
    bytes.chunks_exact(2).map(|word| u64::from(be16(word, 0))).sum()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

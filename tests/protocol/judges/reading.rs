//! What a dissector should read in a frame: its names of the fields, and their values.

use std::net::{Ipv4Addr, Ipv6Addr};

use doorbell_core::encap::Outer;
use doorbell_core::wire::*;

use crate::judges::frames::Frame;

/// A field of tshark's and what it should say.
pub type Reading = (&'static str, Value);

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// Shown in decimal, in hexadecimal, or as a truth value.
    Number(u64),
    /// Shown as hexadecimal digits.
    Bytes(Vec<u8>),
    V4(Ipv4Addr),
    V6(Ipv6Addr),
}

impl Value {
    /// Whether `shown` is this value.
    pub fn is(&self, shown: &str) -> bool {
        match self {
            Self::Number(number) => parse_number(shown) == Some(*number),
            Self::Bytes(bytes) => shows(shown, bytes),
            Self::V4(address) => shown.parse() == Ok(*address),
            Self::V6(address) => shown.parse() == Ok(*address),
        }
    }
}

/// Whether bytes are shown. Some are shown twice: the front of them as the name of a header, and
/// then all of them as what it holds.
fn shows(shown: &str, bytes: &[u8]) -> bool {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let shown = shown.replace(':', "");
    match shown.split_once(',') {
        Some((front, whole)) => !front.is_empty() && digits.starts_with(front) && whole == digits,
        None => shown == digits,
    }
}

fn parse_number(shown: &str) -> Option<u64> {
    match (shown, shown.strip_prefix("0x")) {
        ("True", _) => Some(1),
        ("False", _) => Some(0),
        (_, Some(digits)) => u64::from_str_radix(digits, 16).ok(),
        _ => shown.parse().ok(),
    }
}

pub fn number(field: &'static str, value: impl Into<u64>) -> Reading {
    (field, Value::Number(value.into()))
}

pub fn bytes(field: &'static str, value: impl Into<Vec<u8>>) -> Reading {
    (field, Value::Bytes(value.into()))
}

/// Everything that is to be read in a frame. A field that is missing here is to be missing there,
/// so that no header is read that was not written.
pub fn readings(frame: &Frame) -> Vec<Reading> {
    let mut readings = around(&frame.outer);
    readings.extend(base(&frame.headers.bth));
    readings.extend(extensions(&frame.headers));
    readings.extend(body(frame));
    readings
}

fn around(outer: &Outer) -> Vec<Reading> {
    match outer {
        Outer::V1(_, Grh(ip)) => vec![
            number("infiniband.grh.ipver", 6_u8),
            number("infiniband.grh.tclass", ip.traffic_class),
            number("infiniband.grh.flowlabel", ip.flow_label.get()),
            number("infiniband.grh.paylen", ip.payload_length),
            number("infiniband.grh.nxthdr", ip.next_header.0),
            number("infiniband.grh.hoplmt", ip.hop_limit),
            ("infiniband.grh.sgid", Value::V6(ip.source.into())),
            ("infiniband.grh.dgid", Value::V6(ip.destination.into())),
        ],
        Outer::V2Ipv4(_, ip, udp) => {
            let mut readings = vec![
                number("ip.id", ip.id.0),
                number("ip.len", ip.total_length),
                number("ip.flags.df", ip.dont_fragment),
                number("ip.ttl", ip.ttl),
                number("ip.checksum.status", CHECKSUM_GOOD),
                ("ip.src", Value::V4(ip.source)),
                ("ip.dst", Value::V4(ip.destination)),
            ];
            readings.extend(datagram(udp));
            readings
        }
        Outer::V2Ipv6(_, ip, udp) => {
            let mut readings = vec![
                number("ipv6.tclass", ip.traffic_class),
                number("ipv6.flow", ip.flow_label.get()),
                number("ipv6.plen", ip.payload_length),
                number("ipv6.hlim", ip.hop_limit),
                ("ipv6.src", Value::V6(ip.source.into())),
                ("ipv6.dst", Value::V6(ip.destination.into())),
            ];
            readings.extend(datagram(udp));
            readings
        }
    }
}

const CHECKSUM_GOOD: u8 = 1;
const CHECKSUM_NOT_PRESENT: u8 = 3;

fn datagram(udp: &Udp) -> [Reading; 4] {
    let status = match udp.checksum {
        InetChecksum(0) => CHECKSUM_NOT_PRESENT,
        _ => CHECKSUM_GOOD,
    };
    [
        number("udp.srcport", udp.source.0),
        number("udp.dstport", udp.destination.0),
        number("udp.length", udp.length),
        number("udp.checksum.status", status),
    ]
}

fn base(bth: &Bth) -> [Reading; 10] {
    [
        number("infiniband.bth.opcode", bth.opcode().code()),
        number("infiniband.bth.se", bth.solicited()),
        number("infiniband.bth.m", bth.migrated()),
        number("infiniband.bth.padcnt", bth.pad()),
        number("infiniband.bth.tver", 0_u8),
        number("infiniband.bth.p_key", bth.pkey().0),
        number("infiniband.bth.destqp", bth.destination().get()),
        number("infiniband.bth.a", bth.ack_request()),
        number("infiniband.bth.reserved7", 0_u8),
        number("infiniband.bth.psn", bth.psn().get()),
    ]
}

fn extensions(headers: &Headers) -> Vec<Reading> {
    let immediate = |Imm(imm)| bytes("infiniband.immdt", imm.to_be_bytes());
    let with = |mut readings: Vec<Reading>, another| {
        readings.push(another);
        readings
    };
    match headers.extensions {
        Extensions::None => Vec::new(),
        Extensions::Reth(header) => reth(header),
        Extensions::RethImm(header, imm) => with(reth(header), immediate(imm)),
        Extensions::Imm(imm) => vec![immediate(imm)],
        Extensions::Ieth(Rkey(rkey)) => vec![bytes("infiniband.ieth", rkey.to_be_bytes())],
        Extensions::Aeth(header) => aeth(header),
        Extensions::AethAtomicAck(header, AtomicValue(original)) => {
            with(aeth(header), number("infiniband.atomicacketh.origremdt", original))
        }
        Extensions::Atomic(atomic) => vec![
            number("infiniband.reth.va", atomic.address.0),
            number("infiniband.reth.r_key", atomic.rkey.0),
            number("infiniband.atomiceth.swapdt", atomic.swap_or_add.0),
            number("infiniband.atomiceth.cmpdt", atomic.compare.0),
        ],
        Extensions::Deth(header) => deth(header),
        Extensions::DethImm(header, imm) => with(deth(header), immediate(imm)),
        // Our own, which it can't know.
        Extensions::Metadata(_) | Extensions::RethMetadata(..) | Extensions::AethReport(..) => {
            Vec::new()
        }
    }
}

fn reth(reth: Reth) -> Vec<Reading> {
    vec![
        number("infiniband.reth.va", reth.address.0),
        number("infiniband.reth.r_key", reth.rkey.0),
        number("infiniband.reth.dmalen", reth.length.0),
    ]
}

/// The syndrome as a whole and as tshark takes it apart.
fn aeth(aeth: Aeth) -> Vec<Reading> {
    let code = aeth.syndrome.code();
    let detail = match aeth.syndrome.verdict() {
        Verdict::Ack(_) => "infiniband.aeth.syndrome.credit_count",
        Verdict::ReceiverNotReady(_) => "infiniband.aeth.syndrome.timer",
        Verdict::Nak(_) => "infiniband.aeth.syndrome.error_code",
        Verdict::Reserved => "infiniband.aeth.syndrome.reserved_value",
    };
    vec![
        number("infiniband.aeth.syndrome", code),
        number("infiniband.aeth.syndrome.opcode", code >> 5 & 3),
        number(detail, code & 0x1F),
        number("infiniband.aeth.msn", aeth.msn.get()),
    ]
}

fn deth(deth: Deth) -> Vec<Reading> {
    vec![
        number("infiniband.deth.q_key", deth.qkey.0),
        number("infiniband.deth.srcqp", deth.source.get()),
    ]
}

/// What follows the headers.
fn body(frame: &Frame) -> Vec<Reading> {
    // tshark does not take the padding off.
    let mut padded = frame.padded();
    let ours = frame.headers.bth.opcode().code() >= 0xC0;
    if frame.headers.bth.opcode() == Opcode::Cnp || ours {
        // An opcode that tshark 4.0 does not know: what follows the BTH stays in one piece.
        let headers = frame.headers.to_bytes();
        padded.splice(..0, headers[Bth::LEN..frame.headers.len()].iter().copied());
        padded.extend(frame.icrc());
        return vec![bytes("infiniband.vendor", padded)];
    }
    // Shown as a number, most significant byte first.
    let icrc = number("infiniband.invariant.crc", u32::from_be_bytes(frame.icrc()));
    let mut readings = vec![icrc];
    if !frame.management.is_empty() {
        readings.extend(frame.management.iter().cloned());
    } else if !padded.is_empty() {
        // Nobody guesses what it is, so it is data.
        readings.push(bytes("data.data", padded));
    }
    readings
}

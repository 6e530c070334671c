//! Packets that a peer could have sent, and others.

use doorbell_core::encap::{Outer, Path, PathId, Run, Version};
use doorbell_core::wire::{
    Aeth, AtomicValue, Bth, DmaLength, EtherType, Ethernet, Extensions, FlowLabel, Gid, Grh,
    Headers, InetChecksum, IpId, IpProtocol, Ipv4, Ipv6, Mac, Msn, Opcode, PathMtu, Pkey, Psn, Qpn,
    RemoteAddr, Reth, Rkey, Syndrome, Udp, UdpPort,
};

use super::super::input::Input;
use super::memory::{LEN, Memory};

/// How many queue pairs there are, each with a path and a peer of its own.
pub const PAIRS: usize = 6;

pub const MTU: PathMtu = PathMtu::Mtu256;

/// The number of a path's peer.
pub const fn peer(path: usize) -> Qpn {
    Qpn::new(0x77_0000 + path as u32)
}

/// The way to a peer: two of each encapsulation.
pub fn path_to(index: usize) -> Path {
    Path::new(PathId(index as u32), outer(index, false))
}

/// The way back from it.
pub fn path_from(index: usize) -> Path {
    Path::new(PathId(index as u32), outer(index, true))
}

fn outer(index: usize, back: bool) -> Outer {
    let own = Mac([2, 0, 0, 0, 0, 0xFF]);
    let other = Mac([2, 0, 0, 0, 0, index as u8]);
    let (from, to) = if back { (other, own) } else { (own, other) };
    let ethernet = |ethertype| Ethernet { destination: to, source: from, ethertype };
    let ipv6 = |next_header| Ipv6 {
        traffic_class: 0,
        flow_label: FlowLabel::new(0),
        payload_length: 0,
        next_header,
        hop_limit: 64,
        source: Gid::from_mac(from),
        destination: Gid::from_mac(to),
    };
    let (source, destination) = (UdpPort(0xC000), UdpPort::ROCE_V2);
    let udp = Udp { source, destination, length: 0, checksum: InetChecksum(0) };
    let address = |Mac(mac): Mac| [10, 0, 0, mac[5]].into();
    match [Version::V2Ipv4, Version::V2Ipv6, Version::V1][index % 3] {
        Version::V1 => Outer::V1(ethernet(EtherType::ROCE), Grh(ipv6(IpProtocol::IBA))),
        Version::V2Ipv6 => Outer::V2Ipv6(ethernet(EtherType::IPV6), ipv6(IpProtocol::UDP), udp),
        Version::V2Ipv4 => {
            let ip = Ipv4 {
                tos: 0,
                total_length: 0,
                id: IpId(0),
                dont_fragment: true,
                ttl: 64,
                protocol: IpProtocol::UDP,
                source: address(from),
                destination: address(to),
            };
            Outer::V2Ipv4(ethernet(EtherType::IPV4), ip, udp)
        }
    }
}

/// What a peer sends most of the time.
const LIKELY: [Opcode; 16] = [
    Opcode::RcAcknowledge,
    Opcode::RcAcknowledge,
    Opcode::RcAcknowledge,
    Opcode::RcAcknowledge,
    Opcode::RcSendFirst,
    Opcode::RcSendMiddle,
    Opcode::RcSendLast,
    Opcode::RcSendLastImmediate,
    Opcode::RcSendOnly,
    Opcode::RcSendOnlyImmediate,
    Opcode::RcWriteFirst,
    Opcode::RcWriteMiddle,
    Opcode::RcWriteLast,
    Opcode::RcWriteLastImmediate,
    Opcode::RcWriteOnly,
    Opcode::RcWriteOnlyImmediate,
];

/// What is known of the queue pair that a packet is for.
pub struct Target {
    pub qpn: Qpn,
    /// The next request that it takes, and the newest that it sent.
    pub expected: Psn,
    pub sent: Psn,
}

/// A packet for a queue pair: mostly what its peer could have sent.
pub fn packet(input: &mut Input<'_>, target: &Target, memory: &Memory) -> (Headers, Vec<u8>) {
    let opcode = match input.u8() {
        likely @ 0..240 => LIKELY[usize::from(likely) % LIKELY.len()],
        _ => input.choose(Opcode::ALL),
    };
    let info = opcode.info();
    let base = if info.is_response() { target.sent } else { target.expected };
    let psn = match input.u8() {
        0..176 => base,
        176..240 => base.add((i32::from(input.u8()) - 128) as u32),
        _ => Psn::new(u32::from_le_bytes(input.array())),
    };
    let flags = input.u8();
    let bth = Bth::new(opcode, target.qpn, psn)
        .with_ack_request(flags & 1 != 0)
        .with_solicited(flags & 2 != 0)
        .with_migrated(flags & 4 != 0)
        .with_congestion(flags & 8 != 0, flags & 16 != 0)
        .with_pkey(if flags >= 248 { Pkey(0x8001) } else { Pkey::DEFAULT });

    let whole = input.u8();
    let len = match whole {
        0..224 => [0, MTU.bytes(), 1 + usize::from(input.u8())]
            .into_iter()
            .cycle()
            .skip(usize::from(whole & 1) * 2)
            .take(3)
            .find(|&len| info.payload.allows(len, MTU.bytes())),
        _ => None,
    };
    let len = len.unwrap_or_else(|| usize::from(input.u16()) % 300);
    let extensions = extensions(input, opcode, len, memory);
    (Headers { bth, extensions }, vec![input.u8(); len])
}

fn extensions(input: &mut Input<'_>, opcode: Opcode, len: usize, memory: &Memory) -> Extensions {
    let layout = opcode.layout();
    let mut bytes = [0; Extensions::MAX_LEN];
    let given = input.bytes(layout.len());
    bytes[..given.len()].copy_from_slice(given);
    let (parsed, _) = Extensions::parse(layout, &bytes).expect("any bytes are extensions");
    match parsed {
        Extensions::Reth(_) => Extensions::Reth(reth(input, opcode, len, memory)),
        Extensions::RethImm(_, imm) => Extensions::RethImm(reth(input, opcode, len, memory), imm),
        Extensions::RethMetadata(_, metadata) => {
            Extensions::RethMetadata(reth(input, opcode, len, memory), metadata)
        }
        Extensions::Aeth(aeth) if input.u8() < 160 => {
            let syndrome = input.choose(&[0x1F, 0x1F, 0x02, 0x00, 0x21, 0x60]);
            Extensions::Aeth(Aeth { syndrome: Syndrome::from_code(syndrome), ..aeth })
        }
        other => other,
    }
}

/// Where a write goes: mostly into what is open, and mostly within its bounds.
fn reth(input: &mut Input<'_>, opcode: Opcode, len: usize, memory: &Memory) -> Reth {
    let odd = input.u8();
    let known = if odd < 200 { memory.open() } else { memory.any(input) };
    let offset = u64::from(input.u16()) % (LEN as u64 + 8);
    let total = match opcode {
        Opcode::RcWriteFirst => len as u64 + 1 + u64::from(input.u16()) % 700,
        _ => len as u64,
    };
    let (address, length) = match odd {
        0..100 => (offset.min((LEN as u64).saturating_sub(total)), total),
        100..240 => (offset, total),
        240..248 => (offset, u64::from(u32::from_le_bytes(input.array()))),
        _ => (u64::from_le_bytes(input.array()), total),
    };
    let wrong = if odd % 16 == 15 { 1 << (input.u8() & 31) } else { 0 };
    Reth {
        address: RemoteAddr(known.address.0.wrapping_add(address)),
        rkey: Rkey(known.rkey.0 ^ wrong),
        length: DmaLength(length as u32),
    }
}

/// A notice that a queue pair's packets were not taken: mostly of a path's peer, and of what was
/// sent to it.
pub fn notice(input: &mut Input<'_>, path: usize, sent: Psn) -> Headers {
    let number = if input.u8() < 224 { peer(path) } else { Qpn::new(u32::from(input.u16())) };
    let near = |input: &mut Input<'_>| sent.add((i32::from(input.u8() & 31) - 16) as u32);
    let run = match input.u8() {
        0..224 => u64::from(near(input).get()) << 32 | u64::from(near(input).get()),
        _ => u64::from_le_bytes(input.array()),
    };
    let syndrome = if input.u8() < 240 { 0x63 } else { input.u8() };
    let aeth = Aeth { syndrome: Syndrome::from_code(syndrome), msn: Msn::new(0) };
    let (opcode, extensions) = match input.u8() {
        0..32 => (Opcode::RcAcknowledge, Extensions::Aeth(aeth)),
        _ => {
            let extensions = Extensions::AethAtomicAck(aeth, AtomicValue(run));
            (Opcode::RcAtomicAcknowledge, extensions)
        }
    };
    Headers { bth: Bth::new(opcode, Qpn::new(0), Psn::new(number.get())), extensions }
}

/// A packet as a frame along a path, its ICRC made to fit.
pub fn frame(path: &Path, headers: Headers, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 1024];
    let mut run = Run::begin(path, &mut frame, IpId(0), 1);
    run.push(path, &mut frame, headers, payload).expect("there is room for one");
    let sealed = run.seal(&mut frame);
    frame.truncate(sealed.len);
    frame
}

/// Any bytes as a frame along a path, with an ICRC that holds.
pub fn sealed(path: &Path, transport: &[u8]) -> Vec<u8> {
    let outer = path.outer().around(transport.len() + 4);
    let mut frame = outer.to_bytes()[..outer.len()].to_vec();
    frame.extend(transport);
    frame.extend(outer.icrc(transport).to_le_bytes());
    frame
}

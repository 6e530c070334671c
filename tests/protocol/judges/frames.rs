//! The frames to be judged: every opcode in every encapsulation, and the connection manager's
//! messages, built as a program would build them.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use doorbell_core::encap::{ICRC_LEN, Outer, Path, PathId, Run};
use doorbell_core::wire::*;

use crate::judges::management;
use crate::judges::reading::Reading;

pub const SOURCE_MAC: Mac = Mac([0x52, 0x54, 0, 0x77, 0, 2]);
pub const DESTINATION_MAC: Mac = Mac([0x52, 0x54, 0, 0x77, 0, 3]);
pub const SOURCE_IPV4: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
pub const DESTINATION_IPV4: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 3);
pub const SOURCE_IPV6: Ipv6Addr = Ipv6Addr::new(0xFD00, 0x77, 0, 0, 0, 0, 0, 2);
pub const DESTINATION_IPV6: Ipv6Addr = Ipv6Addr::new(0xFD00, 0x77, 0, 0, 0, 0, 0, 3);
const SOURCE_PORT: UdpPort = UdpPort(0xC215);

/// The largest payload of a packet.
pub const MTU: PathMtu = PathMtu::Mtu256;

/// A frame, and what was put into it.
pub struct Frame {
    pub bytes: Vec<u8>,
    pub outer: Outer,
    /// With the pad count, as it is on the wire.
    pub headers: Headers,
    pub payload: Vec<u8>,
    /// What is to be read in the payload, if it is a management datagram.
    pub management: Vec<Reading>,
}

impl Frame {
    /// The ICRC of what was put in, as it should stand on the wire.
    pub fn icrc(&self) -> [u8; ICRC_LEN] {
        let mut packet = self.headers.to_bytes()[..self.headers.len()].to_vec();
        packet.extend(self.padded());
        self.outer.icrc(&packet).to_le_bytes()
    }

    /// The payload with its padding.
    pub fn padded(&self) -> Vec<u8> {
        let mut padded = self.payload.clone();
        padded.resize(padded.len() + padding(padded.len()), 0);
        padded
    }
}

/// The outer headers of every encapsulation.
pub fn encapsulations() -> [Outer; 3] {
    let ethernet =
        |ethertype| Ethernet { destination: DESTINATION_MAC, source: SOURCE_MAC, ethertype };
    let ipv6 = |next_header, source, destination| Ipv6 {
        traffic_class: 0x6A,
        flow_label: FlowLabel::new(0xA_BCDE),
        payload_length: 0,
        next_header,
        hop_limit: 63,
        source,
        destination,
    };
    let (from, to) = (Gid::from_mac(SOURCE_MAC), Gid::from_mac(DESTINATION_MAC));
    let grh = Grh(ipv6(IpProtocol::IBA, from, to));
    let ipv4 = Ipv4 {
        tos: 0x6A,
        total_length: 0,
        id: IpId(0),
        dont_fragment: true,
        ttl: 63,
        protocol: IpProtocol::UDP,
        source: SOURCE_IPV4,
        destination: DESTINATION_IPV4,
    };
    let udp = Udp {
        source: SOURCE_PORT,
        destination: UdpPort::ROCE_V2,
        length: 0,
        checksum: InetChecksum(0),
    };
    let over_ipv6 = ipv6(IpProtocol::UDP, SOURCE_IPV6.into(), DESTINATION_IPV6.into());
    [
        Outer::V1(ethernet(EtherType::ROCE), grh),
        Outer::V2Ipv4(ethernet(EtherType::IPV4), ipv4, udp),
        Outer::V2Ipv6(ethernet(EtherType::IPV6), over_ipv6, udp),
    ]
}

/// Values that differ from frame to frame and are the same in every run of the tests (SplitMix64).
#[derive(Default)]
pub struct Values(u64);

impl Values {
    pub fn u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    pub fn u32(&mut self) -> u32 {
        self.u64() as u32
    }

    fn flag(&mut self) -> bool {
        self.u64() >> 63 == 1
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.u64() as u8).collect()
    }

    /// Now and then the ends of the range, and what lies between them otherwise.
    fn u24(&mut self) -> u32 {
        match self.u64() % 8 {
            0 => 0,
            1 => 0xFF_FFFF,
            _ => self.u32(),
        }
    }

    /// A queue pair that no management datagrams go to: they would have to be some.
    fn qpn(&mut self) -> Qpn {
        Qpn::new(self.u24().max(2))
    }

    fn syndrome(&mut self) -> Syndrome {
        let reasons =
            [Nak::SequenceError, Nak::InvalidRequest, Nak::RemoteAccess, Nak::RemoteOperation];
        match self.u64() % 4 {
            0 => Syndrome::ACK,
            1 => Syndrome::ack_with(Credits::at_most(self.u32() as usize % 40_000)),
            2 => {
                Syndrome::not_ready(RnrTimer::at_least(Duration::from_micros(self.u64() % 700_000)))
            }
            _ => Syndrome::nak(reasons[self.u32() as usize % reasons.len()]),
        }
    }

    fn reth(&mut self) -> Reth {
        Reth {
            address: RemoteAddr(self.u64()),
            rkey: Rkey(self.u32()),
            length: DmaLength(self.u32()),
        }
    }

    fn aeth(&mut self) -> Aeth {
        Aeth { syndrome: self.syndrome(), msn: Msn::new(self.u24()) }
    }

    fn metadata(&mut self) -> Metadata {
        let (bytes, len) = (self.u64().to_be_bytes(), self.u32() as usize % 9);
        Metadata::new(&bytes[..len]).expect("few bytes")
    }

    fn report(&mut self) -> Report {
        let (newest, held) = (Psn::new(self.u24()), self.u32());
        Report { newest, held, marked: self.u32(), repeated: self.u32() as u8 }
    }

    fn deth(&mut self) -> Deth {
        Deth { qkey: Qkey(self.u32()), source: self.qpn(), reserved: 0 }
    }

    pub fn extensions(&mut self, layout: Layout) -> Extensions {
        match layout {
            Layout::None => Extensions::None,
            Layout::Reth => Extensions::Reth(self.reth()),
            Layout::RethImm => Extensions::RethImm(self.reth(), Imm(self.u32())),
            Layout::Imm => Extensions::Imm(Imm(self.u32())),
            Layout::Ieth => Extensions::Ieth(Rkey(self.u32())),
            Layout::Aeth => Extensions::Aeth(self.aeth()),
            Layout::AethAtomicAck => {
                Extensions::AethAtomicAck(self.aeth(), AtomicValue(self.u64()))
            }
            Layout::Atomic => Extensions::Atomic(AtomicEth {
                address: RemoteAddr(self.u64()),
                rkey: Rkey(self.u32()),
                swap_or_add: AtomicValue(self.u64()),
                compare: AtomicValue(self.u64()),
            }),
            Layout::Deth => Extensions::Deth(self.deth()),
            Layout::DethImm => Extensions::DethImm(self.deth(), Imm(self.u32())),
            Layout::Metadata => Extensions::Metadata(self.metadata()),
            Layout::RethMetadata => Extensions::RethMetadata(self.reth(), self.metadata()),
            Layout::AethReport => Extensions::AethReport(self.aeth(), self.report()),
        }
    }

    /// Headers of this opcode, everything else in them varied.
    pub fn headers(&mut self, opcode: Opcode) -> Headers {
        let bth = Bth::new(opcode, self.qpn(), Psn::new(self.u24()));
        let notifies = opcode == Opcode::Cnp;
        let bth = bth
            .with_solicited(self.flag())
            .with_migrated(self.flag())
            .with_pkey(Pkey(self.u32() as u16))
            .with_congestion(self.flag(), self.flag() || notifies)
            .with_ack_request(self.flag());
        Headers { bth, extensions: self.extensions(opcode.layout()) }
    }
}

/// The lengths of payload that a rule is tried with: the least, the most, every padding, and the
/// eight bytes with their padding that are encoded in a way of their own.
fn lengths(rule: PayloadRule) -> Vec<usize> {
    let tried = [0, 1, 2, 3, 4, 7, 8, 16, 131, MTU.bytes()];
    tried.into_iter().filter(|&len| rule.allows(len, MTU.bytes())).collect()
}

/// Builds a frame with one packet in it.
fn frame(path: &Path, id: IpId, headers: Headers, payload: Vec<u8>) -> Frame {
    let mut bytes = vec![0xAA; 512];
    let mut run = Run::begin(path, &mut bytes, id, 1);
    run.push(path, &mut bytes, headers, &payload[..]).expect("one packet fits");
    let sealed = run.seal(&mut bytes);
    assert_eq!((sealed.packets, sealed.segmentation), (1, None));
    bytes.truncate(sealed.len);
    described(bytes, *path.outer(), id, headers, payload)
}

/// A frame of one packet with what it should contain.
pub fn described(
    bytes: Vec<u8>,
    outer: Outer,
    id: IpId,
    mut headers: Headers,
    payload: Vec<u8>,
) -> Frame {
    headers.bth = headers.bth.with_pad(padding(payload.len()) as u8);
    let outer = outer.around(bytes.len() - outer.len());
    let outer = match outer {
        Outer::V2Ipv4(e, ip, udp) => Outer::V2Ipv4(e, Ipv4 { id, ..ip }, udp),
        other => other,
    };
    Frame { bytes, outer, headers, payload, management: Vec::new() }
}

/// Every opcode in every encapsulation, with every length of payload that it is tried with.
pub fn every_opcode() -> Vec<Frame> {
    let mut values = Values::default();
    let mut frames = Vec::new();
    for outer in encapsulations() {
        let path = Path::new(PathId(frames.len() as u32), outer);
        for &opcode in Opcode::ALL {
            let rule = opcode.info().payload;
            let lengths = lengths(rule);
            assert!(!lengths.is_empty(), "{opcode:?} is tried with some payload");
            for len in lengths {
                let headers = values.headers(opcode);
                let payload = match rule {
                    PayloadRule::Sixteen => vec![0; len],
                    _ => values.bytes(len),
                };
                frames.push(frame(&path, IpId(values.u32() as u16), headers, payload));
            }
        }
    }
    frames
}

/// Every message of the connection manager, in every encapsulation.
pub fn every_message() -> Vec<Frame> {
    let mut values = Values::default();
    let mut frames = Vec::new();
    for outer in encapsulations() {
        let path = Path::new(PathId(frames.len() as u32), outer);
        for (datagram, management) in management::datagrams(outer.version()) {
            let deth = Deth { qkey: Qkey::GSI, source: Qpn::GSI, reserved: 0 };
            let headers = Headers {
                bth: Bth::new(Opcode::UdSendOnly, Qpn::GSI, Psn::new(values.u24())),
                extensions: Extensions::Deth(deth),
            };
            let id = IpId(values.u32() as u16);
            frames.push(Frame { management, ..frame(&path, id, headers, datagram.to_vec()) });
        }
    }
    frames
}

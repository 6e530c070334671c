//! The headers in front of a transport packet, as RoCE v1 and v2 have them.

use std::net::{IpAddr, SocketAddr};

use crate::fields::{ByByte, low16, put};
use crate::wire::{
    Crc, EtherType, Ethernet, FlowLabel, Gid, Grh, InetChecksum, IpId, IpProtocol, Ipv4, Ipv6, Mac,
    Malformed, Part, Udp, UdpPort,
};

use super::icrc::{ICRC_LEN, STEADY_BTH, steady_bth};

/// The encapsulation of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Version {
    /// RoCE version 1, with a global route header.
    V1,
    /// RoCE version 2 over IPv4.
    V2Ipv4,
    /// RoCE version 2 over IPv6.
    V2Ipv6,
}

/// The outer headers of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outer {
    /// The headers of RoCE v1: Ethernet and GRH.
    V1(Ethernet, Grh),
    /// The headers of RoCE v2 over IPv4: Ethernet, IPv4 and UDP.
    V2Ipv4(Ethernet, Ipv4, Udp),
    /// The headers of RoCE v2 over IPv6: Ethernet, IPv6 and UDP.
    V2Ipv6(Ethernet, Ipv6, Udp),
}

/// A host on a network: a machine or, if several processes of a machine have UDP ports of their
/// own, one of these processes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Host {
    /// The global identifier of the machine.
    pub gid: Gid,
    /// The UDP port that the host receives at: RoCE's own, unless both sides have chosen others.
    pub port: UdpPort,
}

/// The most bytes that the ICRC covers in front of a packet: eight bytes of ones, and the headers
/// behind Ethernet.
pub(super) const MAX_COVERED: usize = 8 + Ipv6::LEN + Udp::LEN;

impl Outer {
    /// The most bytes that outer headers take.
    pub const MAX_LEN: usize = Ethernet::LEN + Ipv6::LEN + Udp::LEN;

    /// A placeholder for the headers of no frame.
    pub(super) const NOWHERE: Self = Self::v1((Mac([0; 6]), Mac([0; 6])));

    /// The hop limit that senders customarily use.
    pub(crate) const HOPS: u8 = 64;
    /// The traffic class of a sender that does not slow down when switches mark congestion. The two
    /// ECN bits, which would ask switches to mark packets rather than drop them, are zero.
    const TRAFFIC_CLASS: u8 = 0;
    /// The two ECN bits of the traffic class.
    pub(crate) const ECN: u8 = 3;
    /// The ECN bits of a packet that switches may mark.
    const ECN_CAPABLE: u8 = 2;
    /// The ECN bits of a packet that a switch has marked.
    const MARKED: u8 = 3;

    /// Returns the headers of RoCE v1 from one station of an Ethernet to another, each with the GID
    /// that is derived from its address. The lengths are zero.
    pub const fn v1((from, to): (Mac, Mac)) -> Self {
        let ethernet = Ethernet { destination: to, source: from, ethertype: EtherType::ROCE };
        Self::V1(ethernet, Grh(ipv6(IpProtocol::IBA, (Gid::from_mac(from), Gid::from_mac(to)))))
    }

    /// Returns the headers of RoCE v2 from one station to another, and from one address and port to
    /// another. Returns `None` if the addresses are of two families. The packets may not be
    /// fragmented. Lengths, identification and checksums are zero.
    pub fn v2((from, to): (Mac, Mac), source: SocketAddr, destination: SocketAddr) -> Option<Self> {
        let ethernet = |ethertype| Ethernet { destination: to, source: from, ethertype };
        let udp = Udp {
            source: UdpPort(source.port()),
            destination: UdpPort(destination.port()),
            length: 0,
            checksum: InetChecksum(0),
        };
        match (source.ip(), destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let ip = Ipv4 {
                    tos: Self::TRAFFIC_CLASS,
                    total_length: 0,
                    id: IpId(0),
                    dont_fragment: true,
                    ttl: Self::HOPS,
                    protocol: IpProtocol::UDP,
                    source,
                    destination,
                };
                Some(Self::V2Ipv4(ethernet(EtherType::IPV4), ip, udp))
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let ip = ipv6(IpProtocol::UDP, (source.into(), destination.into()));
                Some(Self::V2Ipv6(ethernet(EtherType::IPV6), ip, udp))
            }
            _ => None,
        }
    }

    /// Returns the bytes that the headers take.
    #[inline]
    pub const fn len(&self) -> usize {
        match self {
            Self::V1(..) => Ethernet::LEN + Grh::LEN,
            Self::V2Ipv4(..) => Ethernet::LEN + Ipv4::LEN + Udp::LEN,
            Self::V2Ipv6(..) => Ethernet::LEN + Ipv6::LEN + Udp::LEN,
        }
    }

    /// Returns false, since every frame has an Ethernet header.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Returns the encapsulation of the frame.
    #[inline]
    pub const fn version(&self) -> Version {
        match self {
            Self::V1(..) => Version::V1,
            Self::V2Ipv4(..) => Version::V2Ipv4,
            Self::V2Ipv6(..) => Version::V2Ipv6,
        }
    }

    /// Parses the outer headers of a frame. Returns the headers and the transport packet, or the
    /// run of packets, with the ICRC. Padding that Ethernet added behind it is cut off.
    #[inline]
    pub fn parse(frame: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (ethernet, rest) = Ethernet::parse(frame)?;
        match ethernet.ethertype {
            EtherType::IPV4 => {
                let (ip, rest) = Ipv4::parse(rest)?;
                let (udp, transport) = parse_udp(Part::Ipv4, ip.protocol, rest)?;
                Ok((Self::V2Ipv4(ethernet, ip, udp), transport))
            }
            EtherType::IPV6 => {
                let (ip, rest) = Ipv6::parse(rest)?;
                let (udp, transport) = parse_udp(Part::Ipv6, ip.next_header, rest)?;
                Ok((Self::V2Ipv6(ethernet, ip, udp), transport))
            }
            EtherType::ROCE => {
                let (grh, transport) = Grh::parse(rest)?;
                match grh.0.next_header {
                    IpProtocol::IBA => Ok((Self::V1(ethernet, grh), transport)),
                    found => Err(Malformed::Protocol { part: Part::Grh, found }),
                }
            }
            other => Err(Malformed::EtherType(other)),
        }
    }

    /// Returns the headers as they stand on the wire: the first [`len`](Self::len) bytes of the
    /// array.
    pub fn to_bytes(&self) -> [u8; Self::MAX_LEN] {
        let mut bytes = [0; Self::MAX_LEN];
        let (ethernet, behind) = bytes.split_at_mut(Ethernet::LEN);
        match self {
            Self::V1(e, grh) => {
                ethernet.copy_from_slice(&e.to_bytes());
                put(behind, grh.to_bytes());
            }
            Self::V2Ipv4(e, ip, udp) => {
                ethernet.copy_from_slice(&e.to_bytes());
                put(put(behind, ip.to_bytes()), udp.to_bytes());
            }
            Self::V2Ipv6(e, ip, udp) => {
                ethernet.copy_from_slice(&e.to_bytes());
                put(put(behind, ip.to_bytes()), udp.to_bytes());
            }
        }
        bytes
    }

    /// Returns the headers with the lengths that they have around one packet of `transport` bytes,
    /// including its ICRC.
    #[must_use]
    pub fn around(self, transport: usize) -> Self {
        // A packet that is too long for the length field fits no frame, so its CRC is never used.
        let datagram = low16(Udp::LEN + transport);
        match self {
            Self::V1(e, Grh(grh)) => {
                Self::V1(e, Grh(Ipv6 { payload_length: low16(transport), ..grh }))
            }
            Self::V2Ipv4(e, ip, udp) => {
                let total_length = datagram.wrapping_add(low16(Ipv4::LEN));
                Self::V2Ipv4(e, Ipv4 { total_length, ..ip }, Udp { length: datagram, ..udp })
            }
            Self::V2Ipv6(e, ip, udp) => Self::V2Ipv6(
                e,
                Ipv6 { payload_length: datagram, ..ip },
                Udp { length: datagram, ..udp },
            ),
        }
    }

    /// Returns the headers for the opposite direction, for an answer to a frame with these headers.
    ///
    /// If the destination port is RoCE's own, the source port stays, since it identifies the flow
    /// in both directions. Otherwise the ports are exchanged, since each belongs to one host.
    #[must_use]
    pub fn turned(self) -> Self {
        let around = |e: Ethernet| Ethernet { destination: e.source, source: e.destination, ..e };
        let ipv6 = |ip: Ipv6| Ipv6 { source: ip.destination, destination: ip.source, ..ip };
        let udp = |udp: Udp| match udp.destination {
            UdpPort::ROCE_V2 => udp,
            _ => Udp { source: udp.destination, destination: udp.source, ..udp },
        };
        match self {
            Self::V1(e, Grh(ip)) => Self::V1(around(e), Grh(ipv6(ip))),
            Self::V2Ipv4(e, ip, ports) => {
                let (source, destination) = (ip.destination, ip.source);
                Self::V2Ipv4(around(e), Ipv4 { source, destination, ..ip }, udp(ports))
            }
            Self::V2Ipv6(e, ip, ports) => Self::V2Ipv6(around(e), ipv6(ip), udp(ports)),
        }
    }

    /// Returns the Ethernet header.
    #[inline]
    pub const fn ethernet(&self) -> &Ethernet {
        match self {
            Self::V1(e, _) | Self::V2Ipv4(e, ..) | Self::V2Ipv6(e, ..) => e,
        }
    }

    /// Returns source and destination as global identifiers.
    #[inline]
    pub fn gids(&self) -> (Gid, Gid) {
        match self {
            Self::V1(_, Grh(ip)) | Self::V2Ipv6(_, ip, _) => (ip.source, ip.destination),
            Self::V2Ipv4(_, ip, _) => (ip.source.into(), ip.destination.into()),
        }
    }

    /// Returns the hosts that the frame comes from and goes to.
    #[inline]
    pub fn hosts(&self) -> (Host, Host) {
        let (source, destination) = self.gids();
        let ports = match self {
            Self::V2Ipv4(.., udp) | Self::V2Ipv6(.., udp) => (udp.source, udp.destination),
            Self::V1(..) => (UdpPort::ROCE_V2, UdpPort::ROCE_V2),
        };
        let (from, to) = match ports.1 {
            UdpPort::ROCE_V2 => (UdpPort::ROCE_V2, UdpPort::ROCE_V2),
            _ => ports,
        };
        (Host { gid: source, port: from }, Host { gid: destination, port: to })
    }

    /// Returns the UDP source port where it is a mere label of the flow: where packets go to RoCE's
    /// own port, whoever they are from.
    pub(super) const fn label(&self) -> Option<UdpPort> {
        match self {
            Self::V2Ipv4(.., udp) | Self::V2Ipv6(.., udp) => match udp.destination {
                UdpPort::ROCE_V2 => Some(udp.source),
                _ => None,
            },
            Self::V1(..) => None,
        }
    }

    /// Returns the headers with another UDP source port.
    pub(super) fn labelled(self, label: UdpPort) -> Self {
        match self {
            Self::V1(..) => self,
            Self::V2Ipv4(e, ip, udp) => Self::V2Ipv4(e, ip, Udp { source: label, ..udp }),
            Self::V2Ipv6(e, ip, udp) => Self::V2Ipv6(e, ip, Udp { source: label, ..udp }),
        }
    }

    /// Returns the traffic class: DSCP and the two ECN bits.
    #[inline]
    pub const fn traffic_class(&self) -> u8 {
        match self {
            Self::V1(_, Grh(ip)) | Self::V2Ipv6(_, ip, _) => ip.traffic_class,
            Self::V2Ipv4(_, ip, _) => ip.tos,
        }
    }

    /// Whether a switch has marked the frame as Congestion Experienced (RFC 3168).
    #[inline]
    pub(crate) const fn is_marked(&self) -> bool {
        self.traffic_class() & Self::ECN == Self::MARKED
    }

    /// Returns the headers of a sender that slows down when switches mark congestion, and says so by
    /// their ECN bits.
    #[must_use]
    pub(super) fn ecn_capable(self) -> Self {
        self.with_ecn(Self::ECN_CAPABLE)
    }

    /// Whether switches may mark the frame.
    pub(super) const fn is_ecn_capable(&self) -> bool {
        self.traffic_class() & Self::ECN == Self::ECN_CAPABLE
    }

    /// Returns the headers as a switch has marked them.
    #[must_use]
    pub fn marked(self) -> Self {
        self.with_ecn(Self::MARKED)
    }

    fn with_ecn(self, ecn: u8) -> Self {
        let class = self.traffic_class() & !Self::ECN | ecn;
        match self {
            Self::V1(e, Grh(ip)) => Self::V1(e, Grh(Ipv6 { traffic_class: class, ..ip })),
            Self::V2Ipv4(e, ip, udp) => Self::V2Ipv4(e, Ipv4 { tos: class, ..ip }, udp),
            Self::V2Ipv6(e, ip, udp) => Self::V2Ipv6(e, Ipv6 { traffic_class: class, ..ip }, udp),
        }
    }

    /// Returns the IPv4 identification, which only headers with IPv4 have.
    #[inline]
    pub const fn id(&self) -> Option<IpId> {
        match self {
            Self::V2Ipv4(_, ip, _) => Some(ip.id),
            _ => None,
        }
    }

    /// Sets the IPv4 identification, if the headers have one.
    #[inline]
    pub(super) const fn identify(&mut self, id: IpId) {
        if let Self::V2Ipv4(_, ip, _) = self {
            ip.id = id;
        }
    }

    /// Returns the bytes that the ICRC of a packet of `transport` bytes covers in front of the
    /// packet, and how many bytes of the array these are. The fields that routers change are ones.
    /// The identification is zero, and [`with_id`] brings it in.
    pub(super) fn covered(&self, transport: usize) -> ([u8; MAX_COVERED], usize) {
        let mut bytes = [0; MAX_COVERED];
        let behind = put(&mut bytes, [0xFF; 8]);
        let left = match self.around(transport) {
            Self::V1(_, Grh(ip)) => put(behind, covered_ipv6(ip)),
            Self::V2Ipv4(_, ip, udp) => put(put(behind, covered_ipv4(ip)), covered_udp(udp)),
            Self::V2Ipv6(_, ip, udp) => put(put(behind, covered_ipv6(ip)), covered_udp(udp)),
        };
        let len = MAX_COVERED - left.len();
        (bytes, len)
    }

    /// Computes the ICRC that a transport packet without ICRC has when it travels alone in these
    /// headers. No CRC is remembered: this is for tests and dissectors.
    pub fn icrc(&self, packet: &[u8]) -> u32 {
        let (covered, len) = self.covered(packet.len() + ICRC_LEN);
        let crc = Crc::NEW.update(covered.split_at(len).0);
        let Some((first, rest)) = packet.split_first_chunk() else {
            return crc.update(packet).finish();
        };
        let crc = with_id(crc.update_u64(steady_bth(*first)), self.id());
        crc.update(rest).finish()
    }
}

#[inline]
const fn ipv6(next_header: IpProtocol, (source, destination): (Gid, Gid)) -> Ipv6 {
    Ipv6 {
        traffic_class: Outer::TRAFFIC_CLASS,
        flow_label: FlowLabel::new(0),
        payload_length: 0,
        next_header,
        hop_limit: Outer::HOPS,
        source,
        destination,
    }
}

fn parse_udp(part: Part, protocol: IpProtocol, packet: &[u8]) -> Result<(Udp, &[u8]), Malformed> {
    if protocol != IpProtocol::UDP {
        return Err(Malformed::Protocol { part, found: protocol });
    }
    let (udp, transport) = Udp::parse(packet)?;
    if udp.destination != UdpPort::ROCE_V2 {
        return Err(Malformed::Port(udp.destination));
    }
    // IP and UDP both carry the length, and the ICRC covers both, so they must agree.
    let (claimed, have) = (usize::from(udp.length), packet.len());
    if claimed != have {
        return Err(Malformed::Length { part: Part::Udp, claimed, have });
    }
    Ok((udp, transport))
}

#[inline]
fn covered_ipv4(ip: Ipv4) -> [u8; Ipv4::LEN] {
    let mut bytes = Ipv4 { tos: 0xFF, ttl: 0xFF, id: IpId(0), ..ip }.to_bytes();
    // The header checksum, which routers change.
    (bytes[10], bytes[11]) = (0xFF, 0xFF);
    bytes
}

#[inline]
fn covered_ipv6(ip: Ipv6) -> [u8; Ipv6::LEN] {
    let mut bytes = Ipv6 { hop_limit: 0xFF, ..ip }.to_bytes();
    // Traffic class and flow label, which share the first word with the version.
    bytes[0] |= 0x0F;
    (bytes[1], bytes[2], bytes[3]) = (0xFF, 0xFF, 0xFF);
    bytes
}

#[inline]
fn covered_udp(udp: Udp) -> [u8; Udp::LEN] {
    let mut bytes = udp.to_bytes();
    // The UDP checksum, which the ICRC does not cover.
    (bytes[6], bytes[7]) = (0xFF, 0xFF);
    bytes
}

/// The number of bytes from the end of the identification, which is at bytes 4 and 5 of the IPv4
/// header, to the end of the BTH's first eight bytes.
const BEHIND_ID: usize = Ipv4::LEN - 6 + Udp::LEN + STEADY_BTH;

/// The effect of each value of the identification's two bytes on a CRC that has since covered the
/// rest of the IPv4 header, UDP, and the BTH's first eight bytes.
static ID_EFFECT: [ByByte<u32>; 2] = [effects(BEHIND_ID + 1), effects(BEHIND_ID)];

/// Returns the effects of a byte's values on a CRC that has since covered `behind` bytes.
#[expect(clippy::indexing_slicing, reason = "a byte is less than 256")]
const fn effects(behind: usize) -> ByByte<u32> {
    let (mut effects, mut byte) = ([0; 256], 0u8);
    loop {
        effects[byte as usize] = Crc::effect_of(byte, behind);
        match byte.checked_add(1) {
            Some(next) => byte = next,
            None => return ByByte(effects),
        }
    }
}

/// Brings the identification into a CRC that has covered outer headers without it, and the BTH's
/// first eight bytes. The packets of a run differ in the identification, and this saves computing
/// their CRCs from the start.
#[inline]
pub(super) fn with_id(crc: Crc, id: Option<IpId>) -> Crc {
    let Some(IpId(id)) = id else { return crc };
    let [high, low] = id.to_be_bytes();
    let [of_high, of_low] = &ID_EFFECT;
    crc.shifted_by(of_high.of(high) ^ of_low.of(low))
}

/// Finds the identification, if there is one, whose effect on a CRC is `difference`, where `rest`
/// bytes followed the BTH's first eight. Of all differences, one in 65536 has such an
/// identification.
pub(super) fn id_of(difference: u32, rest: usize) -> Option<IpId> {
    // Two bytes that are taken into a CRC have the same effect as the register having them and then
    // taking in two zeros.
    let bytes = u16::try_from(Crc::difference_before(difference, 2 + BEHIND_ID + rest)).ok()?;
    Some(IpId(u16::from_be_bytes(bytes.to_le_bytes())))
}

//! The headers in front of a transport packet, as RoCE v1 and v2 have them.

use std::net::{IpAddr, SocketAddr};

use crate::fields::{ByByte, low16, put};
use crate::wire::{
    Crc, EtherType, Ethernet, FlowLabel, Gid, Grh, InetChecksum, IpId, IpProtocol, Ipv4, Ipv6, Mac,
    Malformed, Part, Udp, UdpPort,
};

use super::STEADY_BTH;

/// Which encapsulation a frame has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Version {
    /// RoCE v1.
    V1,
    /// RoCE v2 over IPv4.
    V2Ipv4,
    /// RoCE v2 over IPv6.
    V2Ipv6,
}

/// The outer headers of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outer {
    /// Ethernet and a global route header.
    V1(Ethernet, Grh),
    /// Ethernet, IPv4 and UDP.
    V2Ipv4(Ethernet, Ipv4, Udp),
    /// Ethernet, IPv6 and UDP.
    V2Ipv6(Ethernet, Ipv6, Udp),
}

/// Who speaks for itself on a network: a machine or, where several processes of one each have a UDP
/// port of their own, such a process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Host {
    /// The machine.
    pub gid: Gid,
    /// The port that it is spoken to at: RoCE's own, unless both sides have chosen others.
    pub port: UdpPort,
}

/// What the CRC takes in before a packet: eight bytes of ones and the headers behind Ethernet.
pub(super) const MAX_COVERED: usize = 8 + Ipv6::LEN + Udp::LEN;

impl Outer {
    /// The most bytes that outer headers take.
    pub const MAX_LEN: usize = Ethernet::LEN + Ipv6::LEN + Udp::LEN;

    /// Headers of no frame, to begin with.
    pub(super) const NOWHERE: Self = Self::v1((Mac([0; 6]), Mac([0; 6])));

    /// As many hops as a sender customarily allows.
    pub(crate) const HOPS: u8 = 64;
    /// The traffic class of a sender that does not slow down where switches mark congestion: the two
    /// bits which would ask them to mark packets rather than drop them stay clear.
    const TRAFFIC_CLASS: u8 = 0;

    /// RoCE v1's, from one station of an Ethernet to another, each with the identifier that belongs
    /// to its address. Lengths are left to who knows them.
    pub const fn v1((from, to): (Mac, Mac)) -> Self {
        let ethernet = Ethernet { destination: to, source: from, ethertype: EtherType::ROCE };
        Self::V1(ethernet, Grh(ipv6(IpProtocol::IBA, (Gid::from_mac(from), Gid::from_mac(to)))))
    }

    /// RoCE v2's, from one station to another and from one address and port to another, of one
    /// family: between two, there are none. They may not be fragmented; lengths, identification and
    /// checksums are left to who knows them.
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

    /// The bytes that they take.
    #[inline]
    pub const fn len(&self) -> usize {
        match self {
            Self::V1(..) => Ethernet::LEN + Grh::LEN,
            Self::V2Ipv4(..) => Ethernet::LEN + Ipv4::LEN + Udp::LEN,
            Self::V2Ipv6(..) => Ethernet::LEN + Ipv6::LEN + Udp::LEN,
        }
    }

    /// Never: there is always an Ethernet header.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Which encapsulation it is.
    #[inline]
    pub const fn version(&self) -> Version {
        match self {
            Self::V1(..) => Version::V1,
            Self::V2Ipv4(..) => Version::V2Ipv4,
            Self::V2Ipv6(..) => Version::V2Ipv6,
        }
    }

    /// Reads the outer headers of a frame. What is returned with them is the transport packet, or
    /// a run of them, with the ICRC; padding that Ethernet added behind it is cut off.
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

    /// The headers as they stand on the wire: the first [`len`](Self::len) bytes of the array.
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

    /// The same headers around one packet of `transport` bytes, its ICRC included.
    #[must_use]
    pub fn around(self, transport: usize) -> Self {
        // A packet too long for its length field fits no frame; its sum is of no consequence.
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

    /// The same headers in the other direction: what answers what came in these.
    ///
    /// To RoCE's own port the source port stays: it is the flow's, in both directions. Between
    /// others each is somebody's.
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

    /// The Ethernet header.
    #[inline]
    pub const fn ethernet(&self) -> &Ethernet {
        match self {
            Self::V1(e, _) | Self::V2Ipv4(e, ..) | Self::V2Ipv6(e, ..) => e,
        }
    }

    /// Where it comes from and where it goes, as global identifiers.
    #[inline]
    pub fn gids(&self) -> (Gid, Gid) {
        match self {
            Self::V1(_, Grh(ip)) | Self::V2Ipv6(_, ip, _) => (ip.source, ip.destination),
            Self::V2Ipv4(_, ip, _) => (ip.source.into(), ip.destination.into()),
        }
    }

    /// Which hosts it comes from and goes to.
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

    /// The identification, of which only IPv4 has one.
    #[inline]
    pub const fn id(&self) -> Option<IpId> {
        match self {
            Self::V2Ipv4(_, ip, _) => Some(ip.id),
            _ => None,
        }
    }

    /// The same headers with another identification, if they have one.
    #[inline]
    pub(super) const fn identify(&mut self, id: IpId) {
        if let Self::V2Ipv4(_, ip, _) = self {
            ip.id = id;
        }
    }

    /// What the ICRC of a packet of `transport` bytes covers in front of it, and how many bytes of
    /// the array that is: the headers with what routers change set to ones. The identification is
    /// left at zero, for [`with_id`] to bring in.
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

    /// The ICRC of `packet`, a transport packet without its ICRC, were it to travel alone in these
    /// headers. Nothing is remembered: for tests and dissectors.
    pub fn icrc(&self, packet: &[u8]) -> u32 {
        let (covered, len) = self.covered(packet.len() + super::ICRC_LEN);
        let crc = Crc::NEW.update(covered.split_at(len).0);
        let Some((first, rest)) = packet.split_first_chunk() else {
            return crc.update(packet).finish();
        };
        let crc = with_id(crc.update_u64(super::steady_bth(*first)), self.id());
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
    // IP and UDP say the length twice. One frame has one length, and the ICRC covers both.
    let (claimed, have) = (usize::from(udp.length), packet.len());
    if claimed != have {
        return Err(Malformed::Length { part: Part::Udp, claimed, have });
    }
    Ok((udp, transport))
}

#[inline]
fn covered_ipv4(ip: Ipv4) -> [u8; Ipv4::LEN] {
    let mut bytes = Ipv4 { tos: 0xFF, ttl: 0xFF, id: IpId(0), ..ip }.to_bytes();
    // The header checksum.
    (bytes[10], bytes[11]) = (0xFF, 0xFF);
    bytes
}

#[inline]
fn covered_ipv6(ip: Ipv6) -> [u8; Ipv6::LEN] {
    let mut bytes = Ipv6 { hop_limit: 0xFF, ..ip }.to_bytes();
    // Traffic class and flow label, beside the version.
    bytes[0] |= 0x0F;
    (bytes[1], bytes[2], bytes[3]) = (0xFF, 0xFF, 0xFF);
    bytes
}

#[inline]
fn covered_udp(udp: Udp) -> [u8; Udp::LEN] {
    let mut bytes = udp.to_bytes();
    // The checksum.
    (bytes[6], bytes[7]) = (0xFF, 0xFF);
    bytes
}

/// The bytes from the identification, at 4 and 5 of the header, to the end of the steady part of
/// the BTH.
const BEHIND_ID: usize = Ipv4::LEN - 6 + Udp::LEN + STEADY_BTH;

/// What each value of the identification's two bytes does to a CRC that has since taken in the
/// rest of the IPv4 header, UDP, and the steady part of the BTH.
static ID_EFFECT: [ByByte<u32>; 2] = [effects(BEHIND_ID + 1), effects(BEHIND_ID)];

/// The differences that a byte's values make to a CRC which has since taken in so many bytes.
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

/// Brings the identification into a CRC that took in outer headers without it and the steady part
/// of the BTH: the packets of a run differ in it, and need not start over for that.
#[inline]
pub(super) fn with_id(crc: Crc, id: Option<IpId>) -> Crc {
    let Some(IpId(id)) = id else { return crc };
    let [high, low] = id.to_be_bytes();
    let [of_high, of_low] = &ID_EFFECT;
    crc.shifted_by(of_high.of(high) ^ of_low.of(low))
}

/// The one identification, if there is one, that makes this `difference` to a CRC of which `rest`
/// bytes followed the steady part of the BTH. Of all differences, one in 65536 has one.
pub(super) fn id_of(difference: u32, rest: usize) -> Option<IpId> {
    // Two bytes taken into a register are the same as these bytes in it, and then two of zeros.
    let bytes = u16::try_from(Crc::difference_before(difference, 2 + BEHIND_ID + rest)).ok()?;
    Some(IpId(u16::from_be_bytes(bytes.to_le_bytes())))
}

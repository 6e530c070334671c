//! A type for every integer on the wire, so that no integer is taken for another.

use std::fmt;
use std::net::{AddrParseError, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::integers::{narrow_integer, wire_integer};

wire_integer! {
    /// The key that grants a peer access to a region.
    Rkey(u32) = "{:#010x}";
    /// The partition key, whose top bit distinguishes full from limited membership.
    Pkey(u16) = "{:#06x}";
    /// The key that a datagram must carry to be accepted.
    Qkey(u32) = "{:#010x}";
    /// Four bytes that travel beside a message into its receive completion.
    Imm(u32) = "{:#010x}";
    /// An address in a peer's registered memory.
    RemoteAddr(u64) = "{:#x}";
    /// The length of a whole RDMA message in bytes, as the RETH carries it.
    DmaLength(u32) = "{}";
    /// A 64-bit operand or result of an atomic operation.
    AtomicValue(u64) = "{:#x}";
    /// The type field of an Ethernet frame.
    EtherType(u16) = "{:#06x}";
    /// The protocol number of an IPv4 header, the next header of an IPv6 one.
    IpProtocol(u8) = "{}";
    /// The identification of an IPv4 packet, which the ICRC covers.
    IpId(u16) = "{}";
    /// The number of a UDP port.
    UdpPort(u16) = "{}";
    /// A checksum of the Internet family (IPv4 header, UDP).
    InetChecksum(u16) = "{:#06x}";
    /// The identifier of a service that a connection request asks for.
    ServiceId(u64) = "{:#018x}";
    /// A connection manager's identifier for one end of a connection: its communication ID.
    CommId(u32) = "{:#010x}";
    /// A transaction ID, which a management datagram and its answer share.
    TransactionId(u64) = "{:#018x}";
    /// The globally unique identifier of a channel adapter.
    CaGuid(u64) = "{:#018x}";
    /// A local identifier of a subnet; RoCE has none and writes 0xFFFF.
    Lid(u16) = "{:#06x}";
}

narrow_integer! {
    /// A packet sequence number: 24 bits that wrap.
    Psn(u32, 24 bits) = "{}";
    /// A message sequence number: 24 bits that wrap.
    Msn(u32, 24 bits) = "{}";
    /// The number of a queue pair.
    Qpn(u32, 24 bits) = "{:#08x}";
    /// The flow label of an IPv6 header or GRH.
    FlowLabel(u32, 20 bits) = "{:#07x}";
}

impl Psn {
    /// Returns the sequence number `count` packets later.
    #[inline]
    #[must_use]
    pub const fn add(self, count: u32) -> Self {
        Self::new(self.0.wrapping_add(count))
    }

    /// Returns the sequence number of the packet before.
    #[inline]
    #[must_use]
    pub const fn before(self) -> Self {
        Self::new(self.0.wrapping_sub(1))
    }

    /// Returns how far `self` lies ahead of `other`, negative when it lies behind: up to half of
    /// all sequence numbers each way.
    #[inline]
    pub const fn distance_from(self, other: Self) -> i32 {
        // In the top bits of a word, the subtraction wraps where the sequence numbers do.
        ((self.0 << 8).wrapping_sub(other.0 << 8)) as i32 >> 8
    }
}

impl Msn {
    /// Returns the sequence number `count` messages later.
    #[inline]
    #[must_use]
    pub const fn add(self, count: u32) -> Self {
        Self::new(self.0.wrapping_add(count))
    }
}

impl Qpn {
    /// The queue pair that takes management datagrams: the general service interface.
    pub const GSI: Self = Self(1);
    /// The destination of a multicast datagram.
    pub const MULTICAST: Self = Self(0xFF_FFFF);
}

impl Pkey {
    /// Full membership in the default partition, which RoCE uses.
    pub const DEFAULT: Self = Self(0xFFFF);

    /// Whether queue pairs with these keys may communicate: the low 15 bits agree, and at least one
    /// of the two is a full member.
    #[inline]
    pub const fn same_partition(self, other: Self) -> bool {
        (self.0 ^ other.0) & 0x7FFF == 0 && (self.0 | other.0) & 0x8000 != 0
    }
}

impl Qkey {
    /// The key of queue pair 1, the general service interface.
    pub const GSI: Self = Self(0x8001_0000);
}

impl Lid {
    /// The value of a local identifier where RoCE has none.
    pub const PERMISSIVE: Self = Self(0xFFFF);
}

impl EtherType {
    /// The type of frames with IPv4 packets.
    pub const IPV4: Self = Self(0x0800);
    /// The type of frames with IPv6 packets.
    pub const IPV6: Self = Self(0x86DD);
    /// The type of RoCE version 1, in which a GRH follows.
    pub const ROCE: Self = Self(0x8915);
}

impl IpProtocol {
    /// The protocol number of TCP.
    pub const TCP: Self = Self(6);
    /// The protocol number of UDP.
    pub const UDP: Self = Self(17);
    /// The protocol number of the InfiniBand transport header, which the next header field of a GRH
    /// has.
    pub const IBA: Self = Self(0x1B);
}

impl UdpPort {
    /// The UDP port of RoCE version 2.
    pub const ROCE_V2: Self = Self(4791);
}

/// An Ethernet (MAC) address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for Mac {
    type Err = NotMac;

    fn from_str(text: &str) -> Result<Self, NotMac> {
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().filter(|part| part.len() == 2).ok_or(NotMac)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| NotMac)?;
        }
        parts.next().is_none().then_some(Self(bytes)).ok_or(NotMac)
    }
}

/// The error for text that is no Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("an Ethernet address is six pairs of hexadecimal digits with colons between them")]
pub struct NotMac;

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mac({self})")
    }
}

/// A global identifier (GID): 128 bits that identify a port, in the form of an IPv6 address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Gid(pub [u8; 16]);

impl Gid {
    /// Returns the identifier that RoCE derives from an Ethernet address: `fe80::` and the modified
    /// EUI-64.
    pub const fn from_mac(mac: Mac) -> Self {
        let [a, b, c, d, e, f] = mac.0;
        Self([0xFE, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xFF, 0xFE, d, e, f])
    }

    /// Returns the Ethernet address that the identifier was [derived](Self::from_mac) from, if it
    /// was.
    pub const fn to_mac(self) -> Option<Mac> {
        match self.0 {
            [0xFE, 0x80, 0, 0, 0, 0, 0, 0, a, b, c, 0xFF, 0xFE, d, e, f] => {
                Some(Mac([a ^ 2, b, c, d, e, f]))
            }
            _ => None,
        }
    }

    /// Returns the IPv4 address in an identifier of the form `::ffff:a.b.c.d`.
    pub fn to_ipv4(self) -> Option<Ipv4Addr> {
        Ipv6Addr::from(self.0).to_ipv4_mapped()
    }
}

impl From<[u8; 6]> for Mac {
    fn from(bytes: [u8; 6]) -> Self {
        Self(bytes)
    }
}

impl From<Mac> for [u8; 6] {
    fn from(mac: Mac) -> Self {
        mac.0
    }
}

/// Parses text in the form of an IPv6 address, as identifiers are displayed.
impl FromStr for Gid {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        text.parse::<Ipv6Addr>().map(Self::from)
    }
}

impl From<Ipv4Addr> for Gid {
    fn from(ip: Ipv4Addr) -> Self {
        Self(ip.to_ipv6_mapped().octets())
    }
}

impl From<Ipv6Addr> for Gid {
    fn from(ip: Ipv6Addr) -> Self {
        Self(ip.octets())
    }
}

impl From<Gid> for Ipv6Addr {
    fn from(gid: Gid) -> Self {
        Self::from(gid.0)
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv6Addr::from(self.0).fmt(f)
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gid({self})")
    }
}

/// The path MTU, which is the largest payload of a packet on a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "u16", try_from = "u16"))]
#[repr(u16)]
pub enum PathMtu {
    /// An MTU of 256 bytes.
    Mtu256 = 256,
    /// An MTU of 512 bytes.
    Mtu512 = 512,
    /// An MTU of 1024 bytes.
    Mtu1024 = 1024,
    /// An MTU of 2048 bytes.
    Mtu2048 = 2048,
    /// An MTU of 4096 bytes.
    Mtu4096 = 4096,
}

impl PathMtu {
    /// The list of path MTUs, smallest first.
    pub const ALL: [Self; 5] =
        [Self::Mtu256, Self::Mtu512, Self::Mtu1024, Self::Mtu2048, Self::Mtu4096];

    /// Returns the largest payload in bytes.
    #[inline]
    pub const fn bytes(self) -> usize {
        self as usize
    }

    /// Returns how many packets a message of `len` bytes takes: one, if it is empty.
    #[inline]
    pub const fn packets(self, len: u32) -> u32 {
        // A shift instead of a division, since the compiler doesn't know that it divides by a power
        // of two.
        let len = if len == 0 { 1 } else { len as u64 };
        let packets = (len + self as u64 - 1) >> (self as u32).trailing_zeros();
        // The shift is by at least eight bits, so the result fits 32 bits.
        (packets & 0xFFFF_FFFF) as u32
    }

    /// Returns the 4-bit code on the wire.
    pub const fn code(self) -> u8 {
        match self {
            Self::Mtu256 => 1,
            Self::Mtu512 => 2,
            Self::Mtu1024 => 3,
            Self::Mtu2048 => 4,
            Self::Mtu4096 => 5,
        }
    }

    /// Returns the path MTU of a 4-bit code on the wire, if the code has a meaning.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Mtu256),
            2 => Some(Self::Mtu512),
            3 => Some(Self::Mtu1024),
            4 => Some(Self::Mtu2048),
            5 => Some(Self::Mtu4096),
            _ => None,
        }
    }

    /// Returns the largest path MTU that fits an interface's MTU together with all headers in front
    /// of the payload, for which the Linux kernel allows 80 bytes.
    pub fn fitting(interface_mtu: usize) -> Option<Self> {
        let beside = Self::LEAST_INTERFACE - Self::Mtu256.bytes();
        Self::ALL.into_iter().rev().find(|mtu| mtu.bytes() + beside <= interface_mtu)
    }

    /// The least MTU of an interface that a path MTU fits.
    pub const LEAST_INTERFACE: usize = Self::Mtu256.bytes() + 80;
}

/// The error for a number or a text that is no path MTU.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{found}` is no path MTU: that is 256, 512, 1024, 2048 or 4096")]
pub struct NotPathMtu {
    found: String,
}

impl From<PathMtu> for u16 {
    fn from(mtu: PathMtu) -> Self {
        mtu as Self
    }
}

impl TryFrom<u16> for PathMtu {
    type Error = NotPathMtu;

    fn try_from(bytes: u16) -> Result<Self, NotPathMtu> {
        let known = Self::ALL.into_iter().find(|&mtu| mtu as u16 == bytes);
        known.ok_or_else(|| NotPathMtu { found: bytes.to_string() })
    }
}

/// Displays the largest payload in bytes.
impl fmt::Display for PathMtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().fmt(f)
    }
}

impl FromStr for PathMtu {
    type Err = NotPathMtu;

    fn from_str(text: &str) -> Result<Self, NotPathMtu> {
        let bytes = text.parse::<u16>().map_err(|_| NotPathMtu { found: text.to_owned() })?;
        bytes.try_into()
    }
}

#[cfg(feature = "serde")]
super::integers::serde_as_text! { Gid Mac }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ethernet_address_is_read_as_it_is_written() {
        let mac = Mac([2, 0xDB, 0, 0x7F, 9, 0xAB]);
        assert_eq!(mac.to_string().parse(), Ok(mac));
        for wrong in ["", "02:db:00:7f:09", "02:db:00:7f:09:ab:cd", "2:db:0:7f:9:ab", "02-db"] {
            assert_eq!(wrong.parse::<Mac>(), Err(NotMac), "{wrong}");
        }
    }

    #[test]
    fn a_path_mtu_is_read_as_it_is_written() {
        for mtu in PathMtu::ALL {
            assert_eq!(mtu.to_string().parse(), Ok(mtu));
            assert_eq!(PathMtu::try_from(u16::from(mtu)), Ok(mtu));
        }
        for wrong in ["", "1500", "-256", "65536"] {
            let why = wrong.parse::<PathMtu>().unwrap_err();
            assert!(why.to_string().starts_with(&format!("`{wrong}` is no path MTU")), "{why}");
        }
    }

    #[test]
    fn a_message_takes_as_many_packets_as_it_fills_or_begins() {
        let packets = |len| PathMtu::Mtu1024.packets(len);
        assert_eq!([0, 1, 1024, 1025, 2048].map(packets), [1, 1, 1, 2, 2]);
        assert_eq!(PathMtu::Mtu256.packets(1 << 31), 1 << 23);
    }

    #[test]
    fn sequence_numbers_compare_across_the_wrap() {
        let last = Psn::MAX;
        assert_eq!(last.add(1), Psn::new(0));
        assert_eq!(Psn::new(3).distance_from(last), 4);
        assert_eq!(last.distance_from(Psn::new(3)), -4);
        assert_eq!((Psn::new(0).before(), last.before().add(1)), (last, last));
        assert_eq!(Psn::new(1 << 23).distance_from(Psn::new(0)), -(1 << 23));
    }

    #[test]
    fn a_gid_comes_from_an_address_of_either_kind() {
        let ip = Ipv4Addr::new(10, 77, 0, 2);
        assert_eq!(Gid::from(ip).to_string(), "::ffff:10.77.0.2");
        assert_eq!(Gid::from(ip).to_ipv4(), Some(ip));
        let mac = Mac([0x52, 0x54, 0, 0x12, 0x34, 0x56]);
        assert_eq!(Gid::from_mac(mac).to_string(), "fe80::5054:ff:fe12:3456");
        assert_eq!(Gid::from_mac(mac).to_ipv4(), None);
        assert_eq!(Gid::from_mac(mac).to_string().parse(), Ok(Gid::from_mac(mac)));
    }

    #[test]
    fn the_path_mtu_leaves_room_for_the_headers() {
        let fits = |mtu| PathMtu::fitting(mtu).map(PathMtu::bytes);
        assert_eq!(fits(1500), Some(1024));
        assert_eq!(fits(4175), Some(2048));
        assert_eq!(fits(4176), Some(4096));
        assert_eq!(fits(335), None);
    }
}

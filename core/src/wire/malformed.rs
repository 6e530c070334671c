//! Errors of parsers: why bytes are not the packet that they claim to be.

use super::numbers::{EtherType, IpProtocol, UdpPort};

/// A header or a part of a packet, named in errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Part {
    /// The Ethernet header of a frame.
    Ethernet,
    /// The IPv4 header of a packet.
    Ipv4,
    /// The IPv6 header of a packet.
    Ipv6,
    /// InfiniBand's global route header (GRH).
    Grh,
    /// The UDP header of a datagram.
    Udp,
    /// The base transport header (BTH).
    Bth,
    /// The extension headers that the opcode calls for.
    Extensions,
    /// The payload with its padding.
    Payload,
    /// The invariant CRC (ICRC).
    Icrc,
    /// A management datagram (MAD).
    Mad,
    /// The IP addressing that begins a connection request's private data.
    IpCm,
    /// The header of a capture file.
    PcapFile,
    /// The header of a captured frame.
    PcapRecord,
    /// A frame in a capture file.
    PcapFrame,
}

/// The reason why bytes could not be parsed.
///
/// It is small and `Copy`, since it is made on the data path, where a bad frame is counted and
/// dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// Fewer bytes are there than the part needs.
    #[error("{part:?} needs {need} bytes and {have} are there")]
    Truncated {
        /// The part that was being parsed.
        part: Part,
        /// The number of bytes that the part needs.
        need: usize,
        /// The number of bytes that there are.
        have: usize,
    },
    /// A length field contradicts the bytes around it.
    #[error("{part:?} claims {claimed} bytes where {have} are possible")]
    Length {
        /// The part that has the length field.
        part: Part,
        /// The length that the field claims.
        claimed: usize,
        /// The largest length that is possible.
        have: usize,
    },
    /// A version field has an unsupported version.
    #[error("{part:?} has version {found}, which is not spoken here")]
    Version {
        /// The part that has the version field.
        part: Part,
        /// The version that was found.
        found: u8,
    },
    /// An Ethernet frame carries another protocol.
    #[error("EtherType {0} is neither IPv4, IPv6 nor RoCE")]
    EtherType(EtherType),
    /// An IP packet or GRH carries another protocol.
    #[error("{part:?} carries protocol {found}, not RoCE")]
    Protocol {
        /// The header that names the protocol.
        part: Part,
        /// The protocol that the header names.
        found: IpProtocol,
    },
    /// A UDP datagram is for another port.
    #[error("UDP port {0} is not RoCE's")]
    Port(UdpPort),
    /// An IPv4 packet is a fragment: RoCE is never fragmented.
    #[error("a fragment of an IPv4 packet: RoCE is never fragmented")]
    Fragment,
    /// The checksum of an IPv4 header does not match.
    #[error("the IPv4 header checksum is {found:#06x} and should be {expected:#06x}")]
    Ipv4Checksum {
        /// The checksum that the header carries.
        found: u16,
        /// The checksum that the header's bytes add up to.
        expected: u16,
    },
    /// The opcode belongs to no service.
    #[error("opcode {0:#04x} is not one of RC, UC or UD")]
    Opcode(u8),
    /// The pad count is larger than the padded payload.
    #[error("{pad} bytes of padding in a payload of {payload}")]
    Padding {
        /// The pad count of the BTH.
        pad: usize,
        /// The number of bytes between the headers and the ICRC.
        payload: usize,
    },
    /// The invariant CRC does not match: the packet was damaged.
    #[error("the ICRC is {found:#010x} and should be {expected:#010x}")]
    Icrc {
        /// The ICRC that the packet carries.
        found: u32,
        /// The ICRC that the packet's bytes give.
        expected: u32,
    },
    /// A management datagram is not for the connection manager.
    #[error("a management datagram of class {class}, version {version}, method {method}")]
    MadClass {
        /// The management class of the datagram.
        class: u8,
        /// The class version of the datagram.
        version: u8,
        /// The method of the datagram.
        method: u8,
    },
    /// A message of the connection manager has an unsupported kind.
    #[error("connection manager attribute {0:#06x} is not spoken here")]
    MadAttribute(u16),
    /// A field holds a value that has no meaning.
    #[error("{field} of {part:?} is {found}, which has no meaning")]
    Field {
        /// The part that has the field.
        part: Part,
        /// The name of the field.
        field: &'static str,
        /// The value of the field.
        found: u32,
    },
    /// A file does not begin as a capture file does.
    #[error("a capture file begins with {0:#010x}, which is no pcap magic number")]
    PcapMagic(u32),
    /// A capture file is from a kind of link other than Ethernet.
    #[error("link type {0} is not Ethernet")]
    PcapLinkType(u32),
}

/// Splits the first `N` bytes off, or returns the error that says how many are missing.
#[inline]
pub(crate) fn split<const N: usize>(
    part: Part,
    bytes: &[u8],
) -> Result<(&[u8; N], &[u8]), Malformed> {
    bytes.split_first_chunk().ok_or(Malformed::Truncated { part, need: N, have: bytes.len() })
}

//! Why bytes are not the packet that they claim to be.

use super::numbers::{EtherType, IpProtocol, UdpPort};

/// A header or a part of a packet, named in errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Part {
    /// The Ethernet header.
    Ethernet,
    /// The IPv4 header.
    Ipv4,
    /// The IPv6 header.
    Ipv6,
    /// InfiniBand's global route header.
    Grh,
    /// The UDP header.
    Udp,
    /// The base transport header.
    Bth,
    /// The extension headers that the opcode asks for.
    Extensions,
    /// The payload, its padding included.
    Payload,
    /// The invariant CRC.
    Icrc,
    /// A management datagram.
    Mad,
    /// The IP addressing that begins a connection request's private data.
    IpCm,
    /// The header of a capture file.
    PcapFile,
    /// The header of a captured frame.
    PcapRecord,
    /// A captured frame.
    PcapFrame,
}

/// Why some bytes could not be taken for what was expected there.
///
/// Small and `Copy`: it is made on the data path, where a bad frame is counted and dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// Fewer bytes than the part needs.
    #[error("{part:?} needs {need} bytes and {have} are there")]
    Truncated {
        /// What was being read.
        part: Part,
        /// How many bytes it needs.
        need: usize,
        /// How many there are.
        have: usize,
    },
    /// A length field that contradicts the bytes around it.
    #[error("{part:?} claims {claimed} bytes where {have} are possible")]
    Length {
        /// Whose length field it is.
        part: Part,
        /// What it says.
        claimed: usize,
        /// What would fit.
        have: usize,
    },
    /// A version other than the one that is spoken here.
    #[error("{part:?} has version {found}, which is not spoken here")]
    Version {
        /// Whose version field it is.
        part: Part,
        /// What it says.
        found: u8,
    },
    /// An Ethernet frame of another protocol.
    #[error("EtherType {0} is neither IPv4, IPv6 nor RoCE")]
    EtherType(EtherType),
    /// An IP packet or GRH of another protocol.
    #[error("{part:?} carries protocol {found}, not RoCE")]
    Protocol {
        /// The header that says so.
        part: Part,
        /// The protocol it announces.
        found: IpProtocol,
    },
    /// A UDP datagram to another port.
    #[error("UDP port {0} is not RoCE's")]
    Port(UdpPort),
    /// A part of a fragmented IPv4 packet: RoCE is never fragmented.
    #[error("a fragment of an IPv4 packet: RoCE is never fragmented")]
    Fragment,
    /// An IPv4 header whose checksum does not match.
    #[error("the IPv4 header checksum is {found:#06x} and should be {expected:#06x}")]
    Ipv4Checksum {
        /// What the header carries.
        found: u16,
        /// What its bytes add up to.
        expected: u16,
    },
    /// An opcode that no service knows.
    #[error("opcode {0:#04x} is not one of RC, UC or UD")]
    Opcode(u8),
    /// More padding than there is payload.
    #[error("{pad} bytes of padding in a payload of {payload}")]
    Padding {
        /// The pad count of the BTH.
        pad: usize,
        /// How many bytes stand between the headers and the ICRC.
        payload: usize,
    },
    /// The invariant CRC does not match: the packet was damaged.
    #[error("the ICRC is {found:#010x} and should be {expected:#010x}")]
    Icrc {
        /// What the packet carries.
        found: u32,
        /// What its bytes give.
        expected: u32,
    },
    /// A management datagram that is not the connection manager's.
    #[error("a management datagram of class {class}, version {version}, method {method}")]
    MadClass {
        /// The management class.
        class: u8,
        /// The class version.
        version: u8,
        /// The method.
        method: u8,
    },
    /// A connection manager's message of a kind that is not spoken here.
    #[error("connection manager attribute {0:#06x} is not spoken here")]
    MadAttribute(u16),
    /// A field that holds a value without meaning.
    #[error("{field} of {part:?} is {found}, which has no meaning")]
    Field {
        /// The part it stands in.
        part: Part,
        /// The field's name.
        field: &'static str,
        /// What it holds.
        found: u32,
    },
    /// A file that does not begin as a capture does.
    #[error("a capture file begins with {0:#010x}, which is no pcap magic number")]
    PcapMagic(u32),
    /// A capture of another kind of link.
    #[error("link type {0} is not Ethernet")]
    PcapLinkType(u32),
}

/// The first `N` bytes and the rest, or what is missing.
#[inline]
pub(crate) fn split<const N: usize>(
    part: Part,
    bytes: &[u8],
) -> Result<(&[u8; N], &[u8]), Malformed> {
    bytes.split_first_chunk().ok_or(Malformed::Truncated { part, need: N, have: bytes.len() })
}

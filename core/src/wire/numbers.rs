//! A type for every integer on the wire, so that no integer is taken for another.

use std::fmt;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_compare_across_the_wrap() {
        let last = Psn::MAX;
        assert_eq!(last.add(1), Psn::new(0));
        assert_eq!(Psn::new(3).distance_from(last), 4);
        assert_eq!(last.distance_from(Psn::new(3)), -4);
        assert_eq!((Psn::new(0).before(), last.before().add(1)), (last, last));
        assert_eq!(Psn::new(1 << 23).distance_from(Psn::new(0)), -(1 << 23));
    }
}

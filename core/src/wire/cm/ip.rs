//! IP addressing (IP CM service): what `rdma_cm` adds to a request for a connection between IP
//! addresses (annex A11 of the InfiniBand specification).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::ParseIntError;
use std::str::FromStr;

use super::private_data::TooLong;
use crate::fields::{at, be16};
use crate::wire::malformed::{Malformed, Part, split};
use crate::wire::numbers::{IpProtocol, ServiceId};

/// A port in one of `rdma_cm`'s port spaces. The port spaces borrow the protocol numbers of TCP and
/// UDP without using those protocols.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct CmPort(pub u16);

impl fmt::Display for CmPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<u16> for CmPort {
    fn from(port: u16) -> Self {
        Self(port)
    }
}

impl From<CmPort> for u16 {
    fn from(port: CmPort) -> Self {
        port.0
    }
}

impl FromStr for CmPort {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

impl ServiceId {
    /// The prefix of service IDs that name a protocol and a port.
    const IP_PREFIX: u64 = 0x01;

    /// Returns the service ID of a port in the port space of `protocol`.
    pub const fn from_ip_port(protocol: IpProtocol, port: CmPort) -> Self {
        Self(Self::IP_PREFIX << 24 | (protocol.0 as u64) << 16 | port.0 as u64)
    }

    /// Returns the service ID of a port in the port space of connections, `RDMA_PS_TCP`.
    pub const fn from_tcp_port(port: CmPort) -> Self {
        Self::from_ip_port(IpProtocol::TCP, port)
    }

    /// Returns the service ID of a port in the port space of datagrams, `RDMA_PS_UDP`.
    pub const fn from_udp_port(port: CmPort) -> Self {
        Self::from_ip_port(IpProtocol::UDP, port)
    }

    /// Returns the port space and the port, if the service is one of `rdma_cm`'s.
    pub const fn ip_port(self) -> Option<(IpProtocol, CmPort)> {
        match self.0 >> 24 {
            Self::IP_PREFIX => {
                let [.., protocol, high, low] = self.0.to_be_bytes();
                Some((IpProtocol(protocol), CmPort(u16::from_be_bytes([high, low]))))
            }
            _ => None,
        }
    }
}

/// The IP addressing that precedes a request's private data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IpCm {
    /// The port of the requester. The responder's port is in the [`ServiceId`].
    pub source_port: CmPort,
    /// The IP addresses of requester and responder.
    pub addresses: IpPair,
}

/// The addresses of requester and responder, which are of one family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IpPair {
    /// A pair of IPv4 addresses.
    V4 {
        /// The IPv4 address of the requester.
        source: Ipv4Addr,
        /// The IPv4 address of the responder.
        destination: Ipv4Addr,
    },
    /// A pair of IPv6 addresses.
    V6 {
        /// The IPv6 address of the requester.
        source: Ipv6Addr,
        /// The IPv6 address of the responder.
        destination: Ipv6Addr,
    },
}

impl IpPair {
    /// Returns the address of the requester.
    pub const fn source(self) -> IpAddr {
        match self {
            Self::V4 { source, .. } => IpAddr::V4(source),
            Self::V6 { source, .. } => IpAddr::V6(source),
        }
    }

    /// Returns the address of the responder.
    pub const fn destination(self) -> IpAddr {
        match self {
            Self::V4 { destination, .. } => IpAddr::V4(destination),
            Self::V6 { destination, .. } => IpAddr::V6(destination),
        }
    }
}

impl IpCm {
    /// The length of the IP addressing on the wire.
    pub const LEN: usize = 36;

    /// Parses the IP addressing in front of a request's private data. Returns the addressing and
    /// the application's part.
    pub fn parse(private: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (h, rest) = split::<{ Self::LEN }>(Part::IpCm, private)?;
        if h[0] != 0 {
            return Err(Malformed::Version { part: Part::IpCm, found: h[0] });
        }
        let (port, source, destination) = (be16::<2, _>(h), at::<4, 16, _>(h), at::<20, 16, _>(h));
        let addresses = match h[1] >> 4 {
            4 => IpPair::V4 { source: ipv4(source), destination: ipv4(destination) },
            6 => IpPair::V6 { source: source.into(), destination: destination.into() },
            found => {
                let found = u32::from(found);
                return Err(Malformed::Field { part: Part::IpCm, field: "IP version", found });
            }
        };
        Ok((Self { source_port: CmPort(port), addresses }, rest))
    }

    /// Returns the IP addressing as it stands on the wire.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut h = [0; Self::LEN];
        h[2..4].copy_from_slice(&self.source_port.0.to_be_bytes());
        match self.addresses {
            IpPair::V4 { source, destination } => {
                h[1] = 4 << 4;
                h[16..20].copy_from_slice(&source.octets());
                h[32..36].copy_from_slice(&destination.octets());
            }
            IpPair::V6 { source, destination } => {
                h[1] = 6 << 4;
                h[4..20].copy_from_slice(&source.octets());
                h[20..36].copy_from_slice(&destination.octets());
            }
        }
        h
    }

    /// Returns a request's whole private data: the IP addressing, followed by the application's
    /// bytes.
    ///
    /// The message determines `ROOM`, the length of its private data.
    pub fn before<const ROOM: usize>(&self, application: &[u8]) -> Result<[u8; ROOM], TooLong> {
        let limit = const { ROOM.checked_sub(Self::LEN).expect("no room for IP addressing") };
        let mut private = [0; ROOM];
        let (header, rest) = private.split_at_mut(Self::LEN);
        header.copy_from_slice(&self.to_bytes());
        match rest.get_mut(..application.len()) {
            Some(room) => room.copy_from_slice(application),
            None => return Err(TooLong { given: application.len(), limit }),
        }
        Ok(private)
    }
}

/// Returns the IPv4 address in the last four of 16 bytes.
fn ipv4([.., a, b, c, d]: [u8; 16]) -> Ipv4Addr {
    Ipv4Addr::new(a, b, c, d)
}

//! Socket addresses in the form in which the kernel reads and writes them.

use std::net::{Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// An address of either family as the kernel reads and writes it: a `sockaddr_in` or a
/// `sockaddr_in6`.
#[derive(Clone, Copy)]
#[repr(C, align(4))]
pub(crate) struct EncodedAddress {
    bytes: [u8; Self::ROOM],
    len: u32,
}

const V4_LEN: usize = size_of::<libc::sockaddr_in>();
const V6_LEN: usize = size_of::<libc::sockaddr_in6>();

impl EncodedAddress {
    const ROOM: usize = V6_LEN;

    /// Room for an address that the kernel writes.
    pub(super) const UNKNOWN: Self = Self { bytes: [0; _], len: Self::ROOM as u32 };

    /// Encodes an address, so that a send need not do so.
    pub fn of(address: SocketAddr) -> Self {
        let mut bytes = [0; Self::ROOM];
        bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
        let (family, len) = match address {
            SocketAddr::V4(address) => {
                bytes[4..8].copy_from_slice(&address.ip().octets());
                (libc::AF_INET, V4_LEN)
            }
            SocketAddr::V6(address) => {
                bytes[8..24].copy_from_slice(&address.ip().octets());
                bytes[24..].copy_from_slice(&address.scope_id().to_ne_bytes());
                (libc::AF_INET6, V6_LEN)
            }
        };
        bytes[..2].copy_from_slice(&(family as u16).to_ne_bytes());
        Self { bytes, len: len as u32 }
    }

    /// Returns the address, if it is of one of the two families.
    #[inline]
    pub(super) fn decoded(&self) -> Option<SocketAddr> {
        let [low, high, a, b, ref rest @ ..] = self.bytes;
        let port = u16::from_be_bytes([a, b]);
        match i32::from(u16::from_ne_bytes([low, high])) {
            libc::AF_INET => {
                let ip: &[u8; 4] = rest.first_chunk()?;
                Some(SocketAddrV4::new((*ip).into(), port).into())
            }
            libc::AF_INET6 => {
                let (ip, scope) = rest[4..].split_first_chunk::<16>()?;
                let scope = u32::from_ne_bytes(*scope.first_chunk()?);
                Some(SocketAddrV6::new(Ipv6Addr::from(*ip), port, 0, scope).into())
            }
            _ => None,
        }
    }

    /// Returns the encoded bytes, and all the room for them.
    pub(super) fn bytes(&self) -> (&[u8; Self::ROOM], u32) {
        (&self.bytes, self.len)
    }

    /// Returns the room for an address, to be written by the kernel.
    pub(super) fn room(&mut self) -> &mut [u8; Self::ROOM] {
        &mut self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_decoded_as_it_was_encoded() {
        for text in ["192.0.2.7:4791", "[2001:db8::1]:5000", "[fe80::1%3]:1"] {
            let address: SocketAddr = text.parse().expect("an address");
            assert_eq!(EncodedAddress::of(address).decoded(), Some(address));
        }
        assert_eq!(EncodedAddress::UNKNOWN.decoded(), None);
    }
}

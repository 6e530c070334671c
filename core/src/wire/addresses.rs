//! The addresses of ports: Ethernet addresses and global identifiers.

use std::fmt;
use std::net::{AddrParseError, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

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
    fn a_gid_comes_from_an_address_of_either_kind() {
        let ip = Ipv4Addr::new(10, 77, 0, 2);
        assert_eq!(Gid::from(ip).to_string(), "::ffff:10.77.0.2");
        assert_eq!(Gid::from(ip).to_ipv4(), Some(ip));
        let mac = Mac([0x52, 0x54, 0, 0x12, 0x34, 0x56]);
        assert_eq!(Gid::from_mac(mac).to_string(), "fe80::5054:ff:fe12:3456");
        assert_eq!(Gid::from_mac(mac).to_ipv4(), None);
        assert_eq!(Gid::from_mac(mac).to_string().parse(), Ok(Gid::from_mac(mac)));
    }
}

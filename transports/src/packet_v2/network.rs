//! The address of a device, and the network whose hosts are its neighbours.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use thiserror::Error;

use crate::host::not_a_hosts;

/// The address of a device, and how many of its bits are the network's. As text `192.0.2.7/24`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Network {
    own: IpAddr,
    prefix: u8,
}

/// Text that is no address in a network.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "`{0}` is no address in a network: that is an address of one host, and behind a slash how \
         many of its bits the whole network has in common, such as 192.0.2.7/24"
)]
pub struct NetworkError(String);

impl Network {
    /// Makes the link-local network of an address, which every interface is on.
    pub(super) fn link_local(own: Ipv6Addr) -> Self {
        Self { own: own.into(), prefix: 64 }
    }

    /// Returns the device's own address.
    pub fn own(&self) -> IpAddr {
        self.own
    }

    /// Returns why no host of this network can have an address, or `None` if one can.
    pub(super) fn not_a_neighbours(&self, address: IpAddr) -> Option<&'static str> {
        if let (IpAddr::V4(own), IpAddr::V4(ip)) = (self.own, address)
            && self.prefix < 31
            && self.holds(address)
        {
            let hosts = u32::MAX >> self.prefix;
            match ip.to_bits() & hosts {
                0 if ip != own => return Some("it is the address of the whole network"),
                bits if bits == hosts && ip != own => {
                    return Some("it is the broadcast address of this network");
                }
                _ => {}
            }
        }
        not_on_ethernet(address)
    }

    /// Returns whether a host is a neighbour, and not behind a router.
    pub(super) fn holds(&self, host: IpAddr) -> bool {
        match (self.own, host) {
            (IpAddr::V4(own), IpAddr::V4(host)) => {
                same(own.to_bits().into(), host.to_bits().into(), 32, self.prefix)
            }
            (IpAddr::V6(own), IpAddr::V6(host)) => {
                same(own.to_bits(), host.to_bits(), 128, self.prefix)
                    || host.is_unicast_link_local()
            }
            _ => false,
        }
    }
}

/// Returns whether the first `prefix` of `bits` bits are the same.
fn same(a: u128, b: u128, bits: u8, prefix: u8) -> bool {
    (a ^ b).checked_shr(u32::from(bits - prefix)).unwrap_or(0) == 0
}

/// Returns why an address can't be that of a host on an Ethernet, or `None` if it can.
fn not_on_ethernet(address: IpAddr) -> Option<&'static str> {
    let loopback = "it is a loopback address, which no Ethernet carries";
    not_a_hosts(address).or_else(|| address.is_loopback().then_some(loopback))
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let parsed = || {
            let (own, prefix) = text.split_once('/')?;
            let (own, prefix): (IpAddr, u8) = (own.parse().ok()?, prefix.parse().ok()?);
            let most = if own.is_ipv4() { 32 } else { 128 };
            let fits = prefix <= most && not_on_ethernet(own).is_none();
            fits.then_some(Self { own, prefix })
        };
        parsed().ok_or_else(|| NetworkError(text.to_owned()))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.own, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_those_whose_first_bits_are_ones_own() {
        let network: Network = "192.0.2.7/24".parse().expect("a network");
        assert!(network.holds([192, 0, 2, 200].into()));
        assert!(
            !network.holds([192, 0, 3, 7].into()) && !network.holds(Ipv6Addr::LOCALHOST.into())
        );
        let all: Network = "192.0.2.7/0".parse().expect("a network");
        assert!(all.holds([8, 8, 8, 8].into()));
        let v6: Network = "fd00::1/64".parse().expect("a network");
        for (host, holds) in [("fd00::2", true), ("fd00:0:0:1::2", false), ("fe80::2", true)] {
            assert_eq!(v6.holds(host.parse().expect("an address")), holds, "{host}");
        }
        assert!("::/0".parse::<Network>().is_err());
    }

    #[test]
    fn addresses_that_stand_for_many_hosts_are_no_neighbours() {
        let network: Network = "192.0.2.7/24".parse().expect("a network");
        let no =
            ["192.0.2.0", "192.0.2.255", "255.255.255.255", "224.0.0.1", "127.0.0.1", "0.0.0.0"];
        for ip in no.map(|ip| ip.parse().expect("an address")) {
            assert!(network.not_a_neighbours(ip).is_some(), "{ip}");
        }
        for ip in ["192.0.2.1", "192.0.3.255"].map(|ip| ip.parse().expect("an address")) {
            assert_eq!(network.not_a_neighbours(ip), None, "{ip}");
        }
        // A network of two hosts has no address for all of it, and none for broadcasts.
        let network: Network = "192.0.2.6/31".parse().expect("a network");
        assert_eq!(network.not_a_neighbours([192, 0, 2, 7].into()), None);
        let network: Network = "fd00::1/64".parse().expect("a network");
        for ip in ["ff02::1", "::", "::1", "::ffff:192.0.2.1"] {
            assert!(network.not_a_neighbours(ip.parse().expect("an address")).is_some(), "{ip}");
        }
    }

    #[test]
    fn what_is_no_hosts_address_or_has_no_prefix_is_refused() {
        let wrong = [
            "",
            "192.0.2.7",
            "192.0.2.7/33",
            "fd00::1/129",
            "224.0.0.1/24",
            "ff02::1/64",
            "0.0.0.0/0",
            "127.0.0.1/8",
            "192.0.2.7/",
            "/24",
            "here/24",
        ];
        for text in wrong {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}

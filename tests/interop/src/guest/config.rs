//! What a guest is to be.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use doorbell_kit::lab::End;

/// What a guest is to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GuestConfig {
    /// The address of its interface, and how many bits of it are the network's.
    pub ipv4: (Ipv4Addr, u8),
    /// The same of IPv6.
    pub ipv6: (Ipv6Addr, u8),
    /// The hardware address of its interface.
    pub mac: [u8; 6],
    /// The MTU of its interface, up to 9000. Packets of RDMA are at most 4096, 2048, 1024, 512 or
    /// 256 bytes: the largest that fits with its headers.
    pub mtu: u16,
    /// How many megabytes of memory it has.
    pub memory: u32,
    /// How many processors.
    pub processors: u32,
    /// How long it may take to come up.
    pub patience: Duration,
}

impl GuestConfig {
    /// One that takes the place of an end of a cable, with its addresses.
    pub fn of(end: &End) -> Self {
        Self { ipv4: (end.ipv4, 24), ipv6: (end.ipv6, 64), ..Self::default() }
    }

    /// What the first process of the guest is told by the kernel's command line.
    pub(super) fn variables(&self) -> String {
        let ((ipv4, ipv4_bits), (ipv6, ipv6_bits)) = (self.ipv4, self.ipv6);
        let (gid4, gid6) = (gid(ipv4.to_ipv6_mapped()), gid(ipv6));
        format!(
            "DOORBELL_IPV4={ipv4}/{ipv4_bits} DOORBELL_IPV6={ipv6}/{ipv6_bits} \
             DOORBELL_GID4={gid4} DOORBELL_GID6={gid6} DOORBELL_MTU={}",
            self.mtu,
        )
    }

    pub(super) fn mac(&self) -> String {
        self.mac.map(|byte| format!("{byte:02x}")).join(":")
    }
}

impl Default for GuestConfig {
    /// The second host of `10.219.0.0/24` and `fd00:db::/64`, with large frames.
    fn default() -> Self {
        Self {
            ipv4: (Ipv4Addr::new(10, 219, 0, 2), 24),
            ipv6: (Ipv6Addr::new(0xfd00, 0xdb, 0, 0, 0, 0, 0, 2), 64),
            mac: [0x52, 0x54, 0, 0xDB, 0, 2],
            mtu: 9000,
            memory: 512,
            processors: 1,
            patience: Duration::from_secs(120),
        }
    }
}

/// A GID as the kernel writes it: eight groups of four digits, none left out.
fn gid(address: Ipv6Addr) -> String {
    address.segments().map(|group| format!("{group:04x}")).join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_is_told_its_addresses_and_how_their_gids_are_written() {
        let told = GuestConfig::default().variables();
        assert!(told.contains("DOORBELL_IPV6=fd00:db::2/64 "), "{told}");
        assert!(told.contains("DOORBELL_GID4=0000:0000:0000:0000:0000:ffff:0adb:0002 "), "{told}");
    }
}

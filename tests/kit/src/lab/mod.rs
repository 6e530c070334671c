//! Real Ethernets to test on: network namespaces, and cables between them.
//!
//! [`test()`] runs the body of a test with a [`Lab`], as root or in a user namespace:
//!
//! ```no_run
//! use std::net::UdpSocket;
//!
//! use doorbell_kit::lab;
//!
//! # fn open(interface: &str) {}
//! // In a function marked as a test:
//! lab::test(|lab| {
//!     let cable = lab.cable("a0", "b0", 9000).unwrap();
//!     // This thread is in the near namespace, where `a0` is.
//!     let near = UdpSocket::bind((cable.near.ipv4, 4791)).unwrap();
//!     // What is to be in the far one is made there,
//!     let far = lab.far.within(|| UdpSocket::bind((cable.far.ipv6, 4791))).unwrap();
//!     // or by a process there.
//!     let mut ping = lab.far.command("ping");
//!     ping.args(["-c", "1"]).arg(cable.near.ipv4.to_string()).status().unwrap();
//! });
//! ```
//!
//! A namespace, with all interfaces in it, is gone when no [`Namespace`], socket, thread or process
//! holds it any more: there is nothing to be removed.

mod names;
mod test;

use std::cell::Cell;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;

pub use crate::lab_error::LabError;
pub use crate::namespace::Namespace;

pub use names::with_names;
pub(crate) use test::test_named;
pub use test::{passed_over, test};

/// An end of a cable, which is an interface that is up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// The name of the interface.
    pub interface: String,
    /// The IPv4 address of the interface, in a network of 24 bits.
    pub ipv4: Ipv4Addr,
    /// The IPv6 address of the interface, in a network of 64 bits. The address may be used at once.
    pub ipv6: Ipv6Addr,
}

/// A veth pair between two network namespaces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cable {
    /// The end of the cable in the near namespace.
    pub near: End,
    /// The end of the cable in the far namespace.
    pub far: End,
}

/// Two network namespaces, and cables between them.
#[derive(Debug)]
pub struct Lab {
    /// The first namespace, in which the body of a [`test()`] is.
    pub near: Namespace,
    /// The second namespace, for the other side of a test.
    pub far: Namespace,
    cables: Cell<u8>,
}

impl Lab {
    /// Makes two network namespaces without a cable between them.
    ///
    /// # Errors
    /// As [`Namespace::new`].
    pub fn new() -> Result<Self, LabError> {
        Ok(Self { near: Namespace::new()?, far: Namespace::new()?, cables: Cell::new(0) })
    }

    /// Plugs in a cable between an interface of the near namespace and one of the far namespace.
    /// Both interfaces are up, and have only the addresses that are returned, so nothing is sent on
    /// the cable by itself. The addresses of the first cable are `10.219.0.1` and `fd00:db::1`,
    /// `10.219.0.2` and `fd00:db::2`.
    ///
    /// # Errors
    /// When `ip` refuses: names have at most 15 bytes, and are used only once.
    pub fn cable(&self, near: &str, far: &str, mtu: u32) -> Result<Cable, LabError> {
        self.plug(&self.near, near, &self.far, far, mtu)
    }

    /// Plugs in a cable with both ends in the near namespace. The kernel moves no IP packets
    /// between these ends.
    ///
    /// # Errors
    /// As [`cable`](Self::cable).
    pub fn loopback(&self, one: &str, other: &str, mtu: u32) -> Result<Cable, LabError> {
        self.plug(&self.near, one, &self.near, other, mtu)
    }

    fn plug(
        &self,
        near: &Namespace,
        near_name: &str,
        far: &Namespace,
        far_name: &str,
        mtu: u32,
    ) -> Result<Cable, LabError> {
        let number = self.cables.replace(self.cables.get() + 1);
        let other = format!("/proc/{}/fd/{}", std::process::id(), far.file.as_raw_fd());
        // Linux tells that the other end of a veth pair is up after a delay of up to a second, if
        // both ends have the same interface number, as the first ones of two namespaces would have.
        let [here, there] = [0, 1].map(|end| 1000 + 2 * u32::from(number) + end);
        near.ip(&format!(
            "link add {near_name} index {here} mtu {mtu} type veth peer name {far_name} index \
             {there} mtu {mtu} netns {other}"
        ))?;
        for (namespace, interface) in [(near, near_name), (far, far_name)] {
            // The kernel must not give the interface an address by itself.
            namespace.ip(&format!("link set {interface} addrgenmode none"))?;
            namespace.ip(&format!("link set {interface} up"))?;
        }
        let address = |namespace: &Namespace, interface: &str, host: u8| {
            namespace.wait_for(&format!("-o link show dev {interface}"), |shown| {
                shown.contains(" state UP ") && !shown.contains(" qdisc noop ")
            })?;
            let ipv4 = Ipv4Addr::new(10, 219, number, host);
            let ipv6 = Ipv6Addr::new(0xfd00, 0xdb, u16::from(number), 0, 0, 0, 0, u16::from(host));
            namespace.ip(&format!("addr add {ipv4}/24 dev {interface}"))?;
            // Duplicate address detection is switched off, so that the address may be used at once.
            namespace.ip(&format!("addr add {ipv6}/64 dev {interface} nodad"))?;
            // The multicast group by which neighbours ask for the address.
            let group = format!("ff02::1:ff00:{host}");
            namespace.wait_for(&format!("-6 maddr show dev {interface}"), |shown| {
                shown.contains(&group)
            })?;
            Ok(End { interface: interface.to_owned(), ipv4, ipv6 })
        };
        Ok(Cable { near: address(near, near_name, 1)?, far: address(far, far_name, 2)? })
    }
}

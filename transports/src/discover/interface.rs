//! The interfaces of this network namespace.

use std::io;
use std::net::{IpAddr, SocketAddr};

use doorbell_core::wire::{Mac, PathMtu, UdpPort};

use super::probe::Probe;
use super::remark::Remark;
use crate::sys;
use crate::sys::ethtool::{self, SEGMENTATION};

/// RoCE's own port, which standard peers send to.
const ROCE_V2: u16 = UdpPort::ROCE_V2.0;

/// A network interface, as devices see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// The name of the interface.
    pub name: String,
    /// The interface's Ethernet address, if it has one.
    pub mac: Option<Mac>,
    /// The most bytes of a frame behind its Ethernet header.
    pub mtu: u32,
    /// True if the interface was taken up.
    pub up: bool,
    /// True if the interface has a carrier.
    pub running: bool,
    /// True if the interface's frames have Ethernet's form.
    pub ethernet: bool,
    /// True if the interface leads back to this machine.
    pub loopback: bool,
    /// The interface's IP addresses, each with how many of its bits are the network's.
    pub addresses: Vec<(IpAddr, u8)>,
    /// The name of the interface's driver, where it has one.
    pub driver: Option<String>,
    /// The work that the interface does for senders.
    pub offloads: Offloads,
}

/// The work that an interface does for senders.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Offloads {
    /// True if the interface cuts runs of UDP into packets.
    pub segmentation: bool,
    /// True if the interface computes the checksums of UDP.
    pub checksum: bool,
}

impl Offloads {
    fn of(interface: &str) -> Self {
        let on = ethtool::features(interface).unwrap_or_default();
        let has = |name| on.iter().any(|feature| feature == name);
        Self {
            segmentation: has(SEGMENTATION),
            checksum: has("tx-checksum-ip-generic") || has("tx-checksum-ipv4"),
        }
    }
}

/// Lists the interfaces of this thread's network namespace.
///
/// # Errors
/// When the system does not list them.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    sys::interface::all()?.into_iter().filter_map(|found| described(found).transpose()).collect()
}

/// Describes an interface of the system's list; `None` if it has gone meanwhile.
fn described(found: pnet_datalink::NetworkInterface) -> io::Result<Option<Interface>> {
    let asked = match sys::interface::Interface::named(&found.name) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        asked => asked?,
    };
    Ok(Some(Interface {
        mac: found.mac.map(|mac| Mac(mac.octets())),
        mtu: asked.mtu,
        up: asked.up,
        running: found.is_running(),
        ethernet: asked.ethernet,
        loopback: found.is_loopback(),
        addresses: found.ips.iter().map(|one| (one.ip(), one.prefix())).collect(),
        driver: ethtool::driver(&found.name).ok(),
        offloads: Offloads::of(&found.name),
        name: found.name,
    }))
}

impl Interface {
    /// Opens each device on the interface for a moment: raw devices on the interface itself, UDP
    /// sockets at its addresses.
    pub fn probes(&self) -> Vec<Probe> {
        let sockets = self.sockets().map(|it| format!("udp:{}", SocketAddr::new(it, ROCE_V2)));
        let raw = ["packet", "packet-v2"].map(|device| format!("{device}:{}", self.name));
        sockets.chain(raw).map(Probe::of).collect()
    }

    /// Returns the first address of each family that other machines can be told.
    fn sockets(&self) -> impl Iterator<Item = IpAddr> {
        let of = |wanted: fn(&IpAddr) -> bool| {
            self.addresses.iter().map(|(address, _)| *address).find(wanted)
        };
        let global = |address: &IpAddr| match address {
            IpAddr::V6(address) => !address.is_unicast_link_local(),
            IpAddr::V4(_) => false,
        };
        [of(IpAddr::is_ipv4), of(global)].into_iter().flatten()
    }

    /// Lists what of the interface keeps devices from being as fast as they could be.
    pub fn remarks(&self) -> Vec<Remark> {
        let mut remarks = Vec::new();
        let Self { name, mtu, .. } = self;
        if !self.up || self.loopback {
            return remarks;
        }
        if !self.running {
            let advice = "plug in a cable, or take the other end up";
            remarks.push(Remark::new("it has no carrier", advice));
        }
        let best = PathMtu::Mtu4096;
        match PathMtu::fitting(*mtu as usize) {
            Some(fits) if fits < best => {
                let need = best.bytes() + PathMtu::LEAST_INTERFACE - PathMtu::Mtu256.bytes();
                remarks.push(Remark::new(
                    format!("its MTU of {mtu} keeps packets to {} bytes of {}", fits.bytes(), best.bytes()),
                    format!("`ip link set {name} mtu {need}`, if the network carries it: 9000 is customary"),
                ));
            }
            _ => {}
        }
        if self.ethernet && !self.offloads.segmentation {
            remarks.push(Remark::new(
                "it does not cut runs of UDP, so the kernel does: small messages are slower",
                format!("`ethtool -K {name} {SEGMENTATION} on`, if its driver can"),
            ));
        }
        remarks
    }
}

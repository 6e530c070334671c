//! The interfaces of this network namespace.

use std::io;
use std::net::{IpAddr, SocketAddr};

use doorbell_core::wire::{Mac, PathMtu, UdpPort};

use super::Remark;
use super::trial::Trial;
use crate::sys;
use crate::sys::ethtool::{self, SEGMENTATION};

/// The port that standard peers speak to.
const ROCE_V2: u16 = UdpPort::ROCE_V2.0;

/// A network interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its Ethernet address, if it is of that kind.
    pub mac: Option<Mac>,
    /// The most bytes of a frame behind its Ethernet header.
    pub mtu: u32,
    /// Whether it was taken up.
    pub up: bool,
    /// Whether it has a carrier.
    pub running: bool,
    /// Whether its frames have Ethernet's form.
    pub ethernet: bool,
    /// Whether it leads back to this machine.
    pub loopback: bool,
    /// Its addresses, and the bits that their networks have.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Its driver, where that has a name.
    pub driver: Option<String>,
    /// What it does for who sends.
    pub offloads: Offloads,
}

/// What an interface does for who sends.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Offloads {
    /// It cuts runs of UDP into packets.
    pub segmentation: bool,
    /// It computes the checksums of UDP.
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

/// The interfaces of this thread's network namespace.
///
/// # Errors
/// When the system does not list them.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    sys::interface::all()?.into_iter().filter_map(|found| described(found).transpose()).collect()
}

/// What can be learnt of an interface; nothing if it has gone meanwhile.
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
    /// Opens each device on it for a moment: raw ones on the interface, sockets on its addresses.
    pub fn trials(&self) -> Vec<Trial> {
        let sockets = self.sockets().map(|it| format!("udp:{}", SocketAddr::new(it, ROCE_V2)));
        let raw = ["packet", "packet-v2"].map(|device| format!("{device}:{}", self.name));
        sockets.chain(raw).map(Trial::of).collect()
    }

    /// The first address of each family that others can be told.
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

    /// What of it keeps devices from being as fast as they could.
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

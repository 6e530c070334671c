//! Endpoints at the ends of a simulated cable, whose time passes as fast as the machine allows.

use std::time::Duration;

use doorbell_am::{Bundle, BundleConfig};
use doorbell_core::encap::Version;
use doorbell_simulation::{Ether, Faults, LinkConfig, LinkId};
use doorbell_verbs::{Config, Nic};

/// Two bundles on NICs at the ends of a cable with faults.
pub fn ends(seed: u64, faults: Faults) -> (Ether, LinkId, [Bundle; 2]) {
    let link =
        LinkConfig { mtu: 4200, latency: Duration::from_micros(20), ..LinkConfig::default() };
    let (ether, cable, stations) =
        Ether::cabled(seed, link.with_faults(faults), Version::V2Ipv4, false);
    let bundles = [0, 1].map(|end| {
        let seed = Some(2 * seed + end as u64);
        let config = Config { seed, spin: Duration::ZERO, ..Config::default() };
        let station = ether.station(stations[end]).expect("descriptors");
        let nic = Nic::builder().config(config).on(station).expect("a NIC");
        Bundle::new(&nic, &BundleConfig::default()).expect("there is room")
    });
    (ether, cable, bundles)
}

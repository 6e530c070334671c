//! The fabric as a device, held to what every device must do: by real threads and processes, and so
//! with a network that runs by itself.

use std::thread;

use doorbell_core::encap::Version;
use doorbell_kit::conformance;
use doorbell_kit::conformance::Subject;
use doorbell_simulation::{Ether, LinkConfig, Network, Pace, Station};

fn pair(lossless: bool) -> (Station, Station) {
    let mut network = Network::new(1);
    let (a, b) = (network.station(), network.station());
    network.link(a, b, LinkConfig { mtu: 4200, ..LinkConfig::default() });
    let ether = Ether::new(network, Version::V2Ipv6, lossless);
    let pair = (ether.station(a).unwrap(), ether.station(b).unwrap());
    // It ends with the last of them.
    thread::spawn(move || ether.drive(Pace::Always));
    pair
}

fn fabric() -> Subject<Station> {
    Subject::joined(|| pair(false)).with_nobody_at("fabric:2".parse().unwrap())
}

fn fabric_that_loses_nothing() -> Subject<Station> {
    Subject::joined(|| pair(true)).with_nobody_at("fabric:2".parse().unwrap())
}

conformance!(threads: fabric);
conformance!(threads: fabric_that_loses_nothing);

//! Endpoints at the ends of a simulated cable, whose time passes as fast as the machine allows.

use std::future::Future;
use std::time::Duration;

use doorbell_am::{Bundle, BundleConfig};
use doorbell_core::encap::Version;
use doorbell_kit::{Ether, Faults, LinkConfig, LinkId, Network, Pace};
use doorbell_verbs::{Config, Nic};

/// Two bundles on NICs at the ends of a cable with faults.
pub fn ends(seed: u64, faults: Faults) -> (Ether, LinkId, [Bundle; 2]) {
    let mut network = Network::new(seed);
    let stations = [network.station(), network.station()];
    let link =
        LinkConfig { mtu: 4200, latency: Duration::from_micros(20), ..LinkConfig::default() };
    let cable = network.link(stations[0], stations[1], link.with_faults(faults));
    let ether = Ether::new(network, Version::V2Ipv4, false);
    let bundles = [0, 1].map(|end| {
        let seed = Some(2 * seed + end as u64);
        let config = Config { seed, spin: Duration::ZERO, ..Config::default() };
        let station = ether.station(stations[end]).expect("descriptors");
        let nic = Nic::builder().config(config).on(station).expect("a NIC");
        Bundle::new(&nic, &BundleConfig::default()).expect("there is room")
    });
    (ether, cable, bundles)
}

/// Lets time pass, a device's next event after the other, until the future is done.
pub async fn passing<F: Future>(ether: &Ether, future: F) -> F::Output {
    let passes = async {
        loop {
            let _ = ether.step(Pace::Asleep, ether.now() + Duration::from_secs(3600));
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        output = future => output,
        () = passes => unreachable!("time does not end"),
    }
}

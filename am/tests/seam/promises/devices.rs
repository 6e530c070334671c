//! What the endpoints are over.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use doorbell_core::encap::Version;
use doorbell_core::time::Time;
use doorbell_simulation::{Ether, Faults, LinkConfig, Network, SwitchConfig, passing};
use doorbell_verbs::{Config, Nic};

/// Several NICs that can reach each other, and what lets time pass for them if that is not the
/// world's.
pub struct Devices {
    pub nics: Vec<Nic>,
    ether: Option<Ether>,
}

fn config() -> Config {
    Config { time_wait: Duration::from_millis(5), ..Config::default() }
}

impl Devices {
    fn real(count: usize, name: impl Fn(usize) -> String) -> Self {
        let nics = (0..count).map(|number| {
            Nic::builder().config(config()).open_blocking(&name(number)).expect("a name")
        });
        Self { nics: nics.collect(), ether: None }
    }

    pub fn shm(count: usize) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (own, run) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self::real(count, |number| format!("shm:promises-{own}-{run}/{number}"))
    }

    pub fn udp(count: usize) -> Self {
        Self::real(count, |_| "udp:127.0.0.1:0".to_owned())
    }

    /// On the two interfaces of a lab's cable.
    pub fn packet(kind: &str) -> Self {
        Self::real(2, |number| format!("{kind}:{}", ["a0", "b0"][number]))
    }

    /// Stations of a simulated network, around a switch.
    pub fn ether(count: usize, seed: u64, faults: Faults, lossless: bool) -> Self {
        Self::ether_with(count, seed, faults, lossless, &config())
    }

    /// Stations of a simulated network, around a switch, with NICs that are configured like that.
    #[allow(dead_code)]
    pub fn ether_with(
        count: usize,
        seed: u64,
        faults: Faults,
        lossless: bool,
        config: &Config,
    ) -> Self {
        let mut network = Network::new(seed);
        let switch = network.switch(SwitchConfig::default());
        let link =
            LinkConfig { mtu: 4200, latency: Duration::from_micros(5), ..LinkConfig::default() };
        let stations: Vec<_> = (0..count)
            .map(|_| {
                let station = network.station();
                network.link(station, switch, link.with_faults(faults));
                station
            })
            .collect();
        let ether = Ether::new(network, Version::V2Ipv4, lossless);
        let nic = |(number, station): (u64, &_)| {
            let seed = Some(seed + number);
            let config = Config { seed, spin: Duration::ZERO, ..config.clone() };
            Nic::builder()
                .config(config)
                .on(ether.station(*station).expect("descriptors"))
                .expect("a NIC")
        };
        let nics = (1..).zip(&stations).map(nic).collect();
        Self { nics, ether: Some(ether) }
    }

    /// Runs a program on them, and lets time pass meanwhile.
    pub async fn run<F: Future>(&self, program: F) -> F::Output {
        let Some(ether) = &self.ether else { return program.await };
        passing(ether, program).await
    }

    /// The time of the simulated network.
    #[allow(dead_code)]
    pub fn now(&self) -> Time {
        self.network().now()
    }

    /// Keeps what goes over the simulated network from here on.
    pub fn record(&self) {
        self.network().with(|network| network.start_recording(64 << 20));
    }

    /// Returns the recorded frames as a capture.
    pub fn recorded(&self) -> Vec<u8> {
        self.network().with(|network| network.pcap())
    }

    fn network(&self) -> &Ether {
        self.ether.as_ref().expect("a simulated network")
    }

    /// Messages for which there was no buffer.
    pub fn without_buffer(&self) -> u64 {
        let rnr = |nic: &Nic| nic.statistics().nic.rnr_naks_sent;
        self.nics.iter().map(rnr).sum()
    }
}

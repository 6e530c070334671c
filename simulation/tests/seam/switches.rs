//! What a switch does: learn, flood, queue, mark, drop.

use std::net::Ipv4Addr;
use std::time::Duration;

use doorbell_core::wire::{EtherType, Ethernet, IpId, IpProtocol, Ipv4, Mac};
use doorbell_simulation::{Bandwidth, LinkConfig, Network, StationId, SwitchConfig};

use crate::common::*;

/// A microsecond of latency in each cable, and half a one in the switch.
const ONCE_ACROSS: u64 = 2_500;

fn star<const N: usize>(config: SwitchConfig, cable: LinkConfig) -> (Network, [StationId; N]) {
    let mut network = Network::new(0);
    let switch = network.switch(config);
    let stations = [(); N].map(|()| network.station());
    for station in stations {
        network.link(station, switch, cable);
    }
    (network, stations)
}

fn send(network: &mut Network, from: StationId, to: Mac) -> Vec<(u64, StationId)> {
    let start = network.now().as_nanos();
    network.send(from, frame(to, mac(from.index() as u8), 60));
    let arrived = times(network);
    arrived.into_iter().map(|(time, station)| (time - start, station)).collect()
}

#[test]
fn an_unknown_address_is_flooded_and_a_learnt_one_is_not() {
    let (mut network, [a, b, c]) = star(SwitchConfig::default(), LinkConfig::default());
    assert_eq!(send(&mut network, a, mac(1)), [(ONCE_ACROSS, b), (ONCE_ACROSS, c)]);
    assert_eq!(send(&mut network, b, mac(0)), [(ONCE_ACROSS, a)]);
    assert_eq!(send(&mut network, a, mac(1)), [(ONCE_ACROSS, b)]);
    // What is said to the sender's own side need not come back.
    assert_eq!(send(&mut network, a, mac(0)), []);
    assert_eq!((network.counters().flooded, network.counters().filtered), (1, 1));
}

#[test]
fn group_addresses_are_always_flooded_even_if_somebody_claims_to_have_one() {
    let (mut network, [a, b, c]) = star(SwitchConfig::default(), LinkConfig::default());
    network.send(b, frame(EVERYBODY, EVERYBODY, 60));
    assert_eq!(arrivals(&mut network).len(), 2);
    assert_eq!(send(&mut network, a, EVERYBODY), [(ONCE_ACROSS, b), (ONCE_ACROSS, c)]);
}

#[test]
fn an_address_that_moves_is_learnt_again() {
    let (mut network, [a, b, c]) = star(SwitchConfig::default(), LinkConfig::default());
    send(&mut network, b, EVERYBODY);
    network.send(c, frame(EVERYBODY, mac(1), 60));
    arrivals(&mut network);
    assert_eq!(send(&mut network, a, mac(1)), [(ONCE_ACROSS, c)]);
}

#[test]
fn what_is_too_short_to_have_an_address_goes_nowhere() {
    let (mut network, [a, _]) = star(SwitchConfig::default(), LinkConfig::default());
    network.send(a, vec![0; 13]);
    network.send(a, vec![]);
    assert_eq!(arrivals(&mut network), []);
    assert_eq!(network.counters().undeliverable, 2);
}

#[test]
fn a_switch_with_one_port_has_nowhere_to_flood_to() {
    let (mut network, [a]) = star(SwitchConfig::default(), LinkConfig::default());
    assert_eq!(send(&mut network, a, EVERYBODY), []);
    assert_eq!(network.counters().undeliverable, 1);
}

#[test]
fn frames_cross_as_many_switches_as_there_are() {
    let mut network = Network::new(0);
    let (a, b) = (network.station(), network.station());
    let switches = [(); 30].map(|()| network.switch(SwitchConfig::default()));
    network.link(a, switches[0], LinkConfig::default());
    for pair in switches.windows(2) {
        network.link(pair[0], pair[1], LinkConfig::default());
    }
    network.link(switches[29], b, LinkConfig::default());
    assert_eq!(send(&mut network, a, mac(1)), [(31 * 1_000 + 30 * 500, b)]);
}

#[test]
fn a_loop_of_switches_comes_to_rest() {
    let mut network = Network::new(0);
    let a = network.station();
    let switches = [(); 5].map(|()| network.switch(SwitchConfig::default()));
    network.link(a, switches[0], LinkConfig::default());
    for (index, one) in switches.iter().enumerate() {
        for other in &switches[index..] {
            network.link(*one, *other, LinkConfig::default());
        }
    }
    send(&mut network, a, EVERYBODY);
    assert!(network.counters().looped > 0);
}

/// A cable of 1 Gbit/s, onto which a frame of 125 bytes takes a microsecond to go.
fn slow() -> LinkConfig {
    LinkConfig { bandwidth: Bandwidth::gigabits_per_second(1), ..LinkConfig::default() }
}

#[test]
fn two_senders_to_one_port_share_its_bandwidth() {
    let (mut network, [a, b, c]) = star(SwitchConfig::default(), slow());
    send(&mut network, c, EVERYBODY);
    let start = network.now().as_nanos();
    for _ in 0..3 {
        network.send(a, frame(mac(2), mac(0), 125));
        network.send(b, frame(mac(2), mac(1), 125));
    }
    let arrived = times(&mut network);
    // The first is there after its microsecond, the cable, the switch, its microsecond, the cable.
    let expected: Vec<_> = (0..6).map(|turn| (start + 4_500 + turn * 1_000, c)).collect();
    assert_eq!(arrived, expected);
}

/// Sends a burst of `count` frames of 125 bytes over a fast cable to a station behind a slow one;
/// returns how many arrive.
fn burst(
    config: SwitchConfig,
    count: usize,
    make: impl Fn(Mac, Mac) -> Vec<u8>,
) -> (Network, usize) {
    let mut network = Network::new(0);
    let (a, b) = (network.station(), network.station());
    let switch = network.switch(config);
    network.link(a, switch, LinkConfig::default());
    network.link(b, switch, slow());
    network.start_recording(1 << 20);
    for _ in 0..count {
        network.send(a, make(mac(1), mac(0)));
    }
    let arrived = arrivals(&mut network).len();
    (network, arrived)
}

#[test]
fn a_full_buffer_drops_the_tail_at_exactly_its_size() {
    let plain = |to, from| frame(to, from, 125);
    for (buffer, fit) in [(1_249, 9), (1_250, 10), (1_374, 10), (124, 0)] {
        let (network, arrived) =
            burst(SwitchConfig { buffer, ..SwitchConfig::default() }, 20, plain);
        assert_eq!(arrived, fit);
        assert_eq!(network.counters().tail_dropped, 20 - fit as u64);
    }
}

#[test]
fn a_buffer_is_free_again_when_a_frame_has_left() {
    let config = SwitchConfig { buffer: 125, latency: Duration::ZERO, ..SwitchConfig::default() };
    let mut network = Network::new(0);
    let (a, b) = (network.station(), network.station());
    let switch = network.switch(config);
    network.link(a, switch, LinkConfig::default());
    network.link(switch, b, slow());
    for (pause, dropped) in [(999, 1), (1_000, 0)] {
        let before = network.counters().tail_dropped;
        network.send(a, frame(mac(1), mac(0), 125));
        network.step(network.now() + Duration::from_nanos(pause));
        network.send(a, frame(mac(1), mac(0), 125));
        assert_eq!(arrivals(&mut network).len(), 2 - dropped as usize);
        assert_eq!(network.counters().tail_dropped - before, dropped);
    }
}

/// 125 bytes of IPv4 whose ends say this of congestion marks.
fn ipv4(to: Mac, from: Mac, ecn: u8) -> Vec<u8> {
    let mut frame = frame(to, from, 125);
    frame[12..14].copy_from_slice(&EtherType::IPV4.0.to_be_bytes());
    let header = Ipv4 {
        tos: 26 << 2 | ecn,
        total_length: 111,
        id: IpId(0xFEED),
        dont_fragment: true,
        ttl: 64,
        protocol: IpProtocol::UDP,
        source: Ipv4Addr::new(10, 0, 0, 1),
        destination: Ipv4Addr::new(10, 0, 0, 2),
    };
    frame[Ethernet::LEN..][..Ipv4::LEN].copy_from_slice(&header.to_bytes());
    frame
}

#[test]
fn frames_that_find_a_queue_longer_than_the_threshold_are_marked() {
    for (threshold, marked) in [(0, 9), (374, 7), (375, 6), (10_000, 0)] {
        let config = SwitchConfig { ecn_threshold: Some(threshold), ..SwitchConfig::default() };
        let (network, arrived) = burst(config, 10, |to, from| ipv4(to, from, 0b10));
        assert_eq!((arrived, network.counters().marked), (10, marked));
        let (network, _) = burst(config, 10, |to, from| ipv4(to, from, 0b00));
        assert_eq!(network.counters().marked, 0);
    }
    let (network, _) = burst(SwitchConfig::default(), 10, |to, from| ipv4(to, from, 0b10));
    assert_eq!(network.counters().marked, 0);
}

#[test]
fn a_marked_frame_arrives_with_a_checksum_that_holds_and_is_otherwise_as_it_was() {
    let mut network = Network::new(0);
    let (a, b) = (network.station(), network.station());
    let switch = network.switch(SwitchConfig { ecn_threshold: Some(0), ..SwitchConfig::default() });
    network.link(a, switch, LinkConfig::default());
    network.link(b, switch, slow());
    network.send(a, ipv4(mac(1), mac(0), 0b01));
    network.send(a, ipv4(mac(1), mac(0), 0b01));
    let arrived = arrivals(&mut network);
    assert_eq!(arrived[0].2, ipv4(mac(1), mac(0), 0b01));
    assert_eq!(arrived[1].2, ipv4(mac(1), mac(0), 0b11));
    assert!(Ipv4::parse(&arrived[1].2[Ethernet::LEN..]).is_ok());
}

/// A frame of UDP from the first station to the second, from a port.
fn from_port(port: u16) -> Vec<u8> {
    let header = Ethernet { destination: mac(1), source: mac(0), ethertype: EtherType::IPV4 };
    let ip = Ipv4 {
        tos: 0,
        total_length: 46,
        id: IpId(port),
        dont_fragment: true,
        ttl: 64,
        protocol: IpProtocol::UDP,
        source: Ipv4Addr::new(10, 0, 0, 1),
        destination: Ipv4Addr::new(10, 0, 0, 2),
    };
    let mut frame = [&header.to_bytes()[..], &ip.to_bytes()].concat();
    frame.extend_from_slice(&port.to_be_bytes());
    frame.resize(60, 0);
    frame
}

/// A flow keeps its path, since a path that is longer would have its frames overtaken; other flows
/// go by others.
#[test]
fn flows_are_spread_over_routes_of_equal_cost_and_each_keeps_its_own() {
    let mut network = Network::new(0);
    let (near, far) = (network.station(), network.station());
    let [here, there] = [0, 1].map(|_| network.switch(SwitchConfig::default()));
    let paths = [1, 2, 3, 4].map(|micros| {
        let latency = Duration::from_micros(micros);
        network.link(here, there, LinkConfig { latency, ..LinkConfig::default() })
    });
    network.link(near, here, LinkConfig::default());
    let last = network.link(there, far, LinkConfig::default());
    network.add_route(here, mac(1), &paths);
    network.add_route(there, mac(1), &[last]);
    let took = |network: &mut Network, port| {
        let start = network.now().as_nanos();
        network.send(near, from_port(port));
        let arrived = times(network);
        assert!(arrived.len() <= 1, "{arrived:?}");
        arrived.first().map(|(time, station)| {
            assert_eq!(*station, far);
            time - start
        })
    };
    let mut ports_of = std::collections::BTreeMap::<u64, Vec<u16>>::new();
    for port in 0..64 {
        let time = took(&mut network, port).expect("all paths are whole");
        assert_eq!(took(&mut network, port), Some(time));
        ports_of.entry(time).or_default().push(port);
    }
    assert_eq!(ports_of.len(), 4, "all paths are used");
    assert!(ports_of.values().all(|ports| ports.len() >= 6), "{ports_of:?}");
    network.cut(paths[0]);
    for (path, ports) in ports_of.values().enumerate() {
        assert_eq!(took(&mut network, ports[0]).is_some(), path > 0);
    }
}

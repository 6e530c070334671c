//! Cables are cut, networks parted, stations restarted.

use std::time::Duration;

use doorbell_simulation::{Bandwidth, Event, LinkConfig, Network, StationId, SwitchConfig};

use crate::common::*;

fn star<const N: usize>() -> (Network, [StationId; N]) {
    let mut network = Network::new(0);
    let switch = network.switch(SwitchConfig::default());
    let stations = [(); N].map(|()| network.station());
    for station in stations {
        network.link(station, switch, LinkConfig::default());
    }
    (network, stations)
}

/// Whom a station reaches by speaking to everybody.
fn reached(network: &mut Network, from: StationId) -> Vec<StationId> {
    network.send(from, frame(EVERYBODY, mac(from.index() as u8), 60));
    times(network).into_iter().map(|(_, station)| station).collect()
}

#[test]
fn a_cut_loses_what_is_on_the_cable_and_what_comes_until_it_is_healed() {
    let mut network = Network::new(0);
    let (a, b) = (network.station(), network.station());
    let link = network.link(a, b, LinkConfig::default());
    network.send(a, numbered(0));
    network.send(b, numbered(1));
    network.step(at(500));
    network.cut(link);
    network.send(a, numbered(2));
    network.step(at(600));
    network.heal(link);
    network.send(a, numbered(3));
    assert_eq!(numbers(&mut network), [3]);
    assert_eq!(network.counters().cut, 3);
}

#[test]
fn a_cut_at_one_place_leaves_other_cables_alone() {
    let mut network = Network::new(0);
    let [a, b, c, d] = [(); 4].map(|()| network.station());
    let link = network.link(a, b, LinkConfig::default());
    network.link(c, d, LinkConfig::default());
    network.send(c, numbered(0));
    network.cut(link);
    network.send(d, numbered(1));
    assert_eq!(numbers(&mut network), [0, 1]);
}

#[test]
fn no_frame_crosses_a_partition_until_it_is_healed() {
    let (mut network, [a, b, c, d]) = star();
    network.partition(&[a, b]);
    assert_eq!(reached(&mut network, a), [b]);
    assert_eq!(reached(&mut network, b), [a]);
    assert_eq!(reached(&mut network, c), [d]);
    assert_eq!(reached(&mut network, d), [c]);
    assert_eq!(network.counters().partitioned, 8);
    network.heal_partitions();
    assert_eq!(reached(&mut network, a), [b, c, d]);
}

#[test]
fn partitions_lie_over_each_other_and_those_not_named_are_on_the_other_side() {
    let (mut network, [a, b, c, d]) = star();
    network.partition(&[a, b]);
    network.partition(&[b, c]);
    for station in [a, b, c, d] {
        assert_eq!(reached(&mut network, station), []);
    }
    network.heal_partitions();
    network.partition(&[a, b, c]);
    network.partition(&[b, c]);
    assert_eq!(reached(&mut network, b), [c]);
    assert_eq!(reached(&mut network, a), []);
}

#[test]
fn a_station_added_during_a_partition_is_with_the_rest() {
    let mut network = Network::new(0);
    let switch = network.switch(SwitchConfig::default());
    let add = |network: &mut Network| {
        let station = network.station();
        network.link(station, switch, LinkConfig::default());
        station
    };
    let (a, b) = (add(&mut network), add(&mut network));
    network.partition(&[a]);
    let c = add(&mut network);
    assert_eq!(reached(&mut network, c), [b]);
    assert_eq!(reached(&mut network, a), []);
}

#[test]
fn a_partition_keeps_back_what_is_on_its_way() {
    let (mut network, [a, b]) = star();
    network.send(a, frame(EVERYBODY, mac(0), 60));
    network.step(at(2_000));
    network.partition(&[b]);
    assert_eq!(arrivals(&mut network), []);
    assert_eq!(network.counters().partitioned, 1);
}

#[test]
fn a_restart_loses_the_timer_and_what_is_on_its_way_there() {
    let mut network = Network::new(0);
    let (a, b) = (network.station(), network.station());
    network.link(a, b, LinkConfig::default());
    network.wake_at(a, Some(at(900)));
    network.wake_at(b, Some(at(900)));
    network.send(a, numbered(0));
    network.send(b, numbered(1));
    network.step(at(500));
    network.restart(b);
    network.send(a, numbered(2));
    // What the restarted one had sent is on its way, and so is what came later.
    assert_eq!(network.step(at(5_000)), Some((a, Event::Wake)));
    assert_eq!(network.step(at(5_000)), Some((a, Event::Frame(numbered(1)))));
    assert_eq!(network.step(at(5_000)), Some((b, Event::Frame(numbered(2)))));
    assert_eq!(network.step(at(5_000)), None);
    assert_eq!(network.counters().restarted, 1);
}

#[test]
fn a_restart_empties_the_queues_on_both_sides_and_they_work_afterwards() {
    let mut network = Network::new(0);
    let (a, b) = (network.station(), network.station());
    let bandwidth = Bandwidth::bits_per_second(480_000_000);
    network.link(a, b, LinkConfig { bandwidth, ..LinkConfig::default() });
    // 60 bytes take a microsecond to leave, and one to arrive.
    for number in 0..5 {
        network.send(a, numbered(number));
        network.send(b, numbered(10 + number));
    }
    let events = |network: &mut Network, until| {
        std::iter::from_fn(|| network.step(at(until)))
            .map(|(station, event)| match event {
                Event::Frame(frame) => (station, number(&frame)),
                Event::Wake => unreachable!(),
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(events(&mut network, 2_500), [(b, 0), (a, 10)]);
    network.restart(b);
    // Of those to `b`, the first is there; of those from it, the second is on the cable.
    assert_eq!(network.counters().restarted, 4 + 3);
    network.send(a, numbered(20));
    network.send(b, numbered(21));
    assert_eq!(events(&mut network, 4_499), [(a, 11)]);
    assert_eq!(events(&mut network, 4_500), [(b, 20), (a, 21)]);
    assert_eq!(network.in_flight(), 0);
}

#[test]
fn what_is_further_away_than_the_last_cable_survives_a_restart() {
    let (mut network, [a, b]) = star();
    network.send(a, frame(EVERYBODY, mac(0), 60));
    network.step(at(1_200)); // inside the switch
    network.restart(b);
    assert_eq!(times(&mut network), [(2_500, b)]);
    network.send(a, frame(EVERYBODY, mac(0), 60));
    network.step(network.now() + Duration::from_nanos(1_600)); // on the cable to `b`
    network.restart(b);
    assert_eq!(times(&mut network), []);
}

//! A run as a whole: the same again from its seed, nothing unaccounted for, and on record.

use std::time::Duration;

use doorbell_core::pcap::{Reader, Record};
use doorbell_simulation::{
    Bandwidth, Counters, Event, Faults, LinkConfig, Network, SwitchConfig, Time,
};

use crate::common::*;

/// Runs six stations at two switches, with every fault, queues that fill, a restart, a cut, a
/// partition, and stations that answer and set timers.
fn turmoil(seed: u64, turns: u32) -> Network {
    let mut network = Network::new(seed);
    let narrow = SwitchConfig { buffer: 400, ecn_threshold: Some(60), ..SwitchConfig::default() };
    let switches = [(); 2].map(|()| network.switch(narrow));
    let stations = [(); 6].map(|()| network.station());
    let faults =
        Faults { loss: 0.05, duplication: 0.1, corruption: 0.1, reordering: 0.2, ..Faults::NONE };
    let cable = LinkConfig {
        bandwidth: Bandwidth::bits_per_second(700_000_000),
        mtu: 100,
        ..LinkConfig::default().with_faults(faults)
    };
    let trunk = network.link(switches[0], switches[1], cable);
    for station in stations {
        network.link(station, switches[station.index() % 2], cable);
    }
    for turn in 0..turns {
        let from = stations[turn as usize % 6];
        let to = mac(turn as u8 % 7);
        network.send(from, frame(to, mac(from.index() as u8), 60 + turn as usize % 60));
        network.wake_at(from, Some(network.now() + MICROSECOND * (turn % 5)));
        match turn % 500 {
            100 => network.cut(trunk),
            150 => network.heal(trunk),
            200 => network.partition(&stations[..3]),
            250 => network.heal_partitions(),
            300 => network.restart(stations[4]),
            350 => network.reconfigure(trunk, LinkConfig { mtu: 1_500, ..cable }),
            _ => {}
        }
        let until = network.now() + Duration::from_nanos(700);
        while let Some((station, event)) = network.step(until) {
            if let Event::Wake = event {
                network.send(station, frame(EVERYBODY, mac(station.index() as u8), 80));
            }
        }
        account(&network);
    }
    network
}

/// Every frame that came to be has ended or is on its way.
fn account(network: &Network) {
    let &Counters { sent, duplicated, flooded, .. } = network.counters();
    let &Counters { delivered, lost, cut, partitioned, restarted, .. } = network.counters();
    let &Counters { oversized, tail_dropped, filtered, looped, .. } = network.counters();
    let ended = delivered + lost + cut + partitioned + restarted;
    let ended = ended + oversized + tail_dropped + filtered + looped;
    let ended = ended + network.counters().undeliverable;
    assert_eq!(sent + duplicated + flooded, ended + network.in_flight() as u64);
}

#[test]
fn no_frame_is_ever_unaccounted_for() {
    let c = *turmoil(1, 3_000).counters();
    let seen = [
        c.delivered,
        c.lost,
        c.cut,
        c.partitioned,
        c.restarted,
        c.oversized,
        c.tail_dropped,
        c.filtered,
        c.flooded,
        c.duplicated,
        c.corrupted,
        c.reordered,
    ];
    assert!(seen.iter().all(|count| *count > 0), "not everything was tried: {c:?}");
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let mut hashes: Vec<_> = (0..20).map(|seed| turmoil(seed, 600).trace_hash()).collect();
    for (seed, hash) in (0..).zip(&hashes) {
        assert_eq!(turmoil(seed, 600).trace_hash(), *hash);
    }
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 20);
}

#[test]
fn the_hash_tells_a_call_made_differently() {
    let run = |len: usize, when: u64| {
        let mut network = Network::new(0);
        let (a, b) = (network.station(), network.station());
        network.link(a, b, LinkConfig::default());
        network.wake_at(b, Some(at(when)));
        network.send(a, frame(mac(1), mac(0), len));
        while network.step(at(1_000_000)).is_some() {}
        network.trace_hash()
    };
    assert_eq!(run(60, 5), run(60, 5));
    assert_ne!(run(60, 5), run(61, 5));
    assert_ne!(run(60, 5), run(60, 6));
}

fn records(file: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let record = |record: Record<'_>| (record.time, record.data.to_vec());
    Reader::new(file).unwrap().map(|found| record(found.unwrap())).collect()
}

#[test]
fn a_capture_has_what_was_sent_and_what_arrived_otherwise() {
    let mut network = Network::new(3);
    let (a, b) = (network.station(), network.station());
    let faulty = Faults { corruption: 1.0, ..Faults::NONE };
    network.link(a, b, LinkConfig { forth: faulty, ..LinkConfig::default() });
    network.start_recording(usize::MAX);
    network.step(at(40));
    network.send(a, numbered(1));
    network.send(b, numbered(2));
    let arrived = arrivals(&mut network);
    network.stop_recording();
    network.send(a, numbered(3));
    arrivals(&mut network);
    let damaged = arrived[0].2.clone();
    assert_ne!(damaged, numbered(1));
    let expected = [(40, numbered(1)), (40, numbered(2)), (1_040, damaged)];
    assert_eq!(records(&network.pcap()), expected);
}

#[test]
fn a_capture_is_written_to_a_file() {
    let mut network = Network::new(0);
    let station = network.station();
    network.start_recording(1_000);
    network.send(station, numbered(1));
    let name = format!("doorbell-kit-{}.pcap", std::process::id());
    let path = std::env::temp_dir().join(name);
    network.write_pcap(&path).unwrap();
    let file = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(file, network.pcap());
    assert_eq!(records(&file), [(0, numbered(1))]);
}

#[test]
fn nothing_is_recorded_unasked() {
    assert_eq!(records(&turmoil(0, 10).pcap()), []);
}

#[test]
fn a_capture_keeps_to_its_bound_by_forgetting_the_oldest() {
    let mut network = Network::new(0);
    let station = network.station();
    // A file's header, and three records of 60 bytes with theirs.
    let limit = 24 + 3 * (16 + 60);
    for (limit, first) in [(limit, 7), (limit - 1, 8), (0, 10)] {
        network.start_recording(limit);
        for number in 0..10 {
            network.send(station, numbered(number));
        }
        let kept: Vec<_> = records(&network.pcap()).iter().map(|(_, f)| number(f)).collect();
        assert!(kept.iter().copied().eq(first..10), "{kept:?}");
        assert!(network.pcap().len() <= limit.max(24));
    }
}

#[test]
fn a_time_that_no_capture_can_tell_does_not_spoil_one() {
    let mut network = Network::new(0);
    let station = network.station();
    network.start_recording(1_000);
    network.step(Time::from_nanos(u64::MAX));
    network.send(station, numbered(1));
    assert_eq!(records(&network.pcap()), [(u64::from(u32::MAX) * 1_000_000_000, numbered(1))]);
}

//! Faults strike as often as they were asked to, and where.

use std::collections::BTreeSet;
use std::time::Duration;

use doorbell_simulation::{Faults, LinkConfig, Network, StationId};

use crate::common::*;

const FRAMES: u32 = 20_000;

fn forth(faults: Faults) -> LinkConfig {
    LinkConfig { forth: faults, ..LinkConfig::default() }
}

fn pair(seed: u64, config: LinkConfig) -> (Network, StationId, StationId) {
    let mut network = Network::new(seed);
    let (a, b) = (network.station(), network.station());
    network.link(a, b, config);
    (network, a, b)
}

/// Sends numbered frames, a microsecond apart, and returns what arrives.
fn stream(network: &mut Network, from: StationId) -> Vec<Vec<u8>> {
    let mut arrived = Vec::new();
    for number in 0..FRAMES {
        network.send(from, numbered(number));
        let next = network.now() + MICROSECOND;
        while let Some((_, event)) = network.step(next) {
            let doorbell_simulation::Event::Frame(frame) = event else { unreachable!() };
            arrived.push(frame);
        }
    }
    arrived.extend(arrivals(network).into_iter().map(|(_, _, frame)| frame));
    arrived
}

/// Returns whether a count of frames is within four standard deviations of a tenth of all.
fn is_a_tenth(count: u64) -> bool {
    (1_830..=2_170).contains(&count)
}

#[test]
fn frames_are_lost_as_often_as_asked_in_that_direction_only() {
    for seed in 0..10 {
        let (mut network, a, b) = pair(seed, forth(Faults { loss: 0.1, ..Faults::NONE }));
        let arrived = stream(&mut network, a).len() as u64;
        let lost = network.counters().lost;
        assert!(is_a_tenth(lost), "{lost} lost");
        assert_eq!(arrived + lost, u64::from(FRAMES));
        assert_eq!(stream(&mut network, b).len() as u32, FRAMES);
        assert_eq!(network.counters().lost, lost);
    }
}

#[test]
fn a_second_copy_comes_a_little_later() {
    let faults = Faults { duplication: 1.0, ..Faults::NONE };
    let (mut network, a, _) = pair(0, forth(faults));
    network.send(a, numbered(5));
    let arrived = arrivals(&mut network);
    assert_eq!((&arrived[0].2, &arrived[1].2, arrived.len()), (&numbered(5), &numbered(5), 2));
    let later = arrived[1].0 - arrived[0].0;
    assert!(NANOSECOND <= later && later <= faults.duplication_delay, "{later:?}");
}

#[test]
fn frames_are_duplicated_as_often_as_asked() {
    for seed in 0..10 {
        let faults = Faults { duplication: 0.1, ..Faults::NONE };
        let (mut network, a, _) = pair(seed, forth(faults));
        let arrived = stream(&mut network, a);
        let duplicated = network.counters().duplicated;
        assert!(is_a_tenth(duplicated), "{duplicated} duplicated");
        assert_eq!(arrived.len() as u64, u64::from(FRAMES) + duplicated);
        let different: BTreeSet<_> = arrived.iter().map(|frame| number(frame)).collect();
        assert_eq!(different.len() as u32, FRAMES);
    }
}

#[test]
fn one_to_three_bits_of_a_corrupted_frame_are_flipped() {
    let (mut network, a, _) = pair(1, forth(Faults { corruption: 0.1, ..Faults::NONE }));
    let arrived = stream(&mut network, a);
    let mut damaged = [0; 4];
    let mut where_to = BTreeSet::new();
    for (sent, arrived) in (0..).map(numbered).zip(&arrived) {
        assert_eq!(sent.len(), arrived.len());
        let flipped = sent.iter().zip(arrived).map(|(a, b)| (a ^ b).count_ones());
        damaged[flipped.sum::<u32>() as usize] += 1;
        where_to.extend((0..sent.len()).filter(|&at| sent[at] != arrived[at]));
    }
    let corrupted = network.counters().corrupted;
    assert!(is_a_tenth(corrupted), "{corrupted} corrupted");
    assert_eq!(damaged[0], u64::from(FRAMES) - corrupted);
    assert!(damaged[1..].iter().all(|count| *count > corrupted / 4), "{damaged:?}");
    assert_eq!(where_to.len(), 60, "some bytes are never struck");
}

#[test]
fn later_frames_overtake_one_that_is_held_back() {
    for seed in 0..10 {
        let faults = Faults { reordering: 0.1, ..Faults::NONE };
        let (mut network, a, _) = pair(seed, forth(faults));
        let order: Vec<_> = stream(&mut network, a).iter().map(|frame| number(frame)).collect();
        let reordered = network.counters().reordered;
        assert!(is_a_tenth(reordered), "{reordered} held back");
        let overtaken = order.windows(2).filter(|pair| pair[0] > pair[1]).count();
        // Held back by up to ten times the distance of frames: nine in ten are overtaken.
        assert!(overtaken as u64 > reordered / 2, "{overtaken} of {reordered} overtaken");
        let mut sorted = order;
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..FRAMES));
    }
}

#[test]
fn a_frame_is_held_back_no_longer_than_asked() {
    let reordering_delay = Duration::from_nanos(700);
    let faults = Faults { reordering: 1.0, reordering_delay, ..Faults::NONE };
    let (mut network, a, _) = pair(0, forth(faults));
    for number in 0..1_000 {
        network.send(a, numbered(number));
    }
    let times = times(&mut network);
    assert_eq!(times.len(), 1_000);
    assert!(times.iter().all(|(time, _)| (1_001..=1_700).contains(time)));
}

#[test]
fn the_counts_of_a_seed_are_what_they_were() {
    // A run is promised to be the same on every machine. Who changes these numbers on purpose
    // makes every seed that anybody noted down useless.
    let all =
        Faults { loss: 0.1, duplication: 0.2, corruption: 0.3, reordering: 0.4, ..Faults::NONE };
    let (mut network, a, _) = pair(42, forth(all));
    stream(&mut network, a);
    let c = network.counters();
    assert_eq!([c.lost, c.duplicated, c.corrupted, c.reordered], [2_065, 3_588, 6_458, 7_201]);
    assert_eq!(network.trace_hash(), 0xFB61_E62A_7022_DAB2);
}

#[test]
fn traffic_on_one_cable_changes_nothing_on_another() {
    let lossy = LinkConfig::default().with_faults(Faults { loss: 0.5, ..Faults::NONE });
    let run = |busy: bool| {
        let mut network = Network::new(8);
        let [a, b, c, d] = [(); 4].map(|()| network.station());
        network.link(a, b, lossy);
        network.link(c, d, lossy);
        let mut kept = Vec::new();
        for number in 0..1_000 {
            network.send(c, numbered(number));
            if busy {
                network.send(a, numbered(number));
                network.send(d, numbered(number));
            }
            let arrived = arrivals(&mut network);
            kept.extend(arrived.into_iter().filter(|(_, to, _)| *to == d).map(|(.., f)| f));
        }
        kept
    };
    assert_eq!(run(false), run(true));
}

#[test]
fn the_directions_of_a_cable_and_different_cables_have_different_luck() {
    let lossy = LinkConfig::default().with_faults(Faults { loss: 0.5, ..Faults::NONE });
    let mut network = Network::new(0);
    let stations = [(); 6].map(|()| network.station());
    for pair in stations.chunks(2) {
        network.link(pair[0], pair[1], lossy);
    }
    let mut seen = BTreeSet::new();
    for station in stations {
        (0..100).for_each(|number| network.send(station, numbered(number)));
        assert!(seen.insert(numbers(&mut network)));
    }
}

//! Probes: a sign of life that one queue pair demands of its peer.

use std::time::Duration;

use doorbell_core::encap::Version;
use doorbell_core::nic::*;
use doorbell_core::wire::PathMtu;
use doorbell_simulation::{Fabric, Faults, LinkConfig};

use crate::reliable::common::{End, Setup, Two, lossless, outcomes, short};

/// What a silent peer ends a connection with.
const SILENT: Cause = Cause::PeerSilent { millis: 1000, limit: Silence::Busy };

fn events(fabric: &mut Fabric, end: &End) -> Vec<Event> {
    std::iter::from_fn(|| fabric.nic(end.node).event()).collect()
}

/// Runs until the first event of an end, for ten seconds at most: when it came, and what it was.
fn first_event(fabric: &mut Fabric, end: &End) -> Option<(Duration, Event)> {
    let (before, mut found) = (fabric.now(), None);
    fabric.run_until(Duration::from_secs(10), |fabric| {
        found = fabric.nic(end.node).event();
        found.is_some()
    });
    Some((fabric.now().since(before), found?))
}

#[test]
fn a_peer_that_is_gone_is_found_by_a_probe_within_the_busy_time() {
    let mut two = Two::new();
    two.b.receives(1, 10);
    two.a.post(short(1));
    assert!(two.run(1, 1).0[0].outcome.is_ok());
    let station = two.fabric.station(two.b.node);
    two.fabric.network.partition(&[station]);
    two.fabric.nic(two.a.node).probe(two.a.qpn);
    let (took, event) = first_event(&mut two.fabric, &two.a).expect("it is noticed");
    assert_eq!(event, Event::Broken(two.a.qpn, SILENT));
    let range = Duration::from_millis(1000)..Duration::from_millis(1010);
    assert!(range.contains(&took), "{took:?}");
}

#[test]
fn the_busy_time_that_is_configured_is_that_of_a_probe() {
    for millis in [40, 7000] {
        let busy = Duration::from_millis(millis);
        let keep_alive = KeepAlive { busy, ..KeepAlive::default() };
        let config = Config { keep_alive, ..Setup::default().config };
        let mut two = Setup { config, ..Setup::default() }.connected(|_, _| {});
        let station = two.fabric.station(two.b.node);
        two.fabric.network.partition(&[station]);
        two.fabric.nic(two.a.node).probe(two.a.qpn);
        let (took, event) = first_event(&mut two.fabric, &two.a).expect("it is noticed");
        let cause = Cause::PeerSilent { millis: millis as u32, limit: Silence::Busy };
        assert_eq!(event, Event::Broken(two.a.qpn, cause));
        assert!((busy..busy + Duration::from_millis(10)).contains(&took), "{took:?}");
    }
}

#[test]
fn a_peer_that_is_there_answers_a_probe_with_one_packet_and_that_is_all() {
    let mut two = Two::new();
    two.fabric.nic(two.a.node).probe(two.a.qpn);
    two.run_for(Duration::from_secs(5));
    let (a, b) = two.counters();
    assert_eq!((a.questions_sent, a.sent, b.sent), (1, 1, 1));
    assert_eq!(events(&mut two.fabric, &two.a), []);
}

#[test]
fn a_probe_of_a_peer_that_has_a_message_under_way_neither_disturbs_it_nor_is_disturbed() {
    let mut two = Two::new();
    two.b.receives(2, 10);
    two.a.post(short(1));
    two.fabric.nic(two.a.node).probe(two.a.qpn);
    two.a.post(short(2));
    let (done, _) = two.run(2, 2);
    assert_eq!(outcomes(&done), [(1, Ok(Done::Sent)), (2, Ok(Done::Sent))]);
    assert_eq!(two.counters().0.retransmitted, 0);
}

#[test]
fn to_probe_again_and_again_sends_no_more_and_ends_no_later() {
    let mut two = Two::new();
    let station = two.fabric.station(two.b.node);
    two.fabric.network.partition(&[station]);
    for _ in 0..101 {
        assert_eq!(events(&mut two.fabric, &two.a), []);
        two.fabric.nic(two.a.node).probe(two.a.qpn);
        two.run_for(Duration::from_millis(10));
    }
    assert_eq!(events(&mut two.fabric, &two.a), [Event::Broken(two.a.qpn, SILENT)]);
    assert_eq!(two.counters().0.questions_sent, 16);
}

#[test]
fn a_peer_behind_a_path_that_loses_three_packets_of_ten_survives_its_probes() {
    for seed in 0..30 {
        let faults = Faults { loss: 0.3, ..Faults::NONE };
        let cable = LinkConfig { forth: faults, back: faults, ..Setup::default().cable };
        let mut two = Setup { seed, cable, ..Setup::default() }.connected(|_, _| {});
        for _ in 0..10 {
            two.fabric.nic(two.a.node).probe(two.a.qpn);
            two.run_for(Duration::from_millis(1100));
        }
        assert_eq!(events(&mut two.fabric, &two.a), [], "seed {seed}");
    }
}

/// Two connections of two nodes, of which the second keeps talking.
fn beside_one_that_talks() -> (Fabric, [(End, End); 2]) {
    let mut fabric = Fabric::new(1, Version::V2Ipv4, Setup::default().config);
    let nodes = [fabric.node(), fabric.node()];
    let stations = nodes.map(|node| fabric.station(node));
    fabric.network.link(stations[0], stations[1], LinkConfig::default());
    let pairs = [(); 2].map(|()| {
        let [a, b] = nodes.map(|node| End::new(&mut fabric, node, 64, 64));
        fabric.connect((a.node, a.qpn), (b.node, b.qpn), PathMtu::Mtu1024, |_, _| {});
        (a, b)
    });
    (fabric, pairs)
}

/// Has a message arrive every 100 ms, for longer than a peer may be silent that is waited for.
fn talks(fabric: &mut Fabric, speaks: &mut End, hears: &mut End) {
    for id in 0..12 {
        hears.receives(1, 10);
        speaks.post(short(id).awaited());
        fabric.run_until(Duration::from_millis(100), |_| false);
    }
    assert_eq!(speaks.poll().len(), 12);
}

#[test]
fn another_queue_pair_of_the_same_host_does_not_answer_for_a_peer_that_is_gone() {
    let (mut fabric, [(asks, gone), (mut speaks, mut hears)]) = beside_one_that_talks();
    fabric.nic(1).change(gone.qpn, Change::Error).unwrap();
    let _ = events(&mut fabric, &gone);
    fabric.nic(0).probe(asks.qpn);
    talks(&mut fabric, &mut speaks, &mut hears);
    assert_eq!(events(&mut fabric, &asks), [Event::Broken(asks.qpn, SILENT)]);
}

#[test]
fn a_new_process_at_the_address_of_one_that_is_gone_does_not_answer_for_it() {
    let (mut fabric, [(asks, _), (old, _)]) = beside_one_that_talks();
    fabric.restart(1);
    fabric.nic(0).change(old.qpn, Change::Error).unwrap();
    let _ = events(&mut fabric, &old);
    let [mut speaks, mut hears] = [0, 1].map(|node| End::new(&mut fabric, node, 64, 64));
    fabric.connect((0, speaks.qpn), (1, hears.qpn), PathMtu::Mtu1024, |_, _| {});
    fabric.nic(0).probe(asks.qpn);
    talks(&mut fabric, &mut speaks, &mut hears);
    assert_eq!(events(&mut fabric, &asks), [Event::Broken(asks.qpn, SILENT)]);
}

#[test]
fn a_queue_pair_that_cannot_ask_is_not_probed() {
    let mut two = lossless().connected(|_, _| {});
    two.fabric.nic(two.a.node).probe(two.a.qpn);
    two.run_for(Duration::from_secs(5));
    assert_eq!(two.counters().0.sent, 0);
    assert_eq!(events(&mut two.fabric, &two.a), []);
    let mut two = Setup::default().unconnected();
    two.fabric.nic(two.a.node).probe(two.a.qpn);
    two.run_for(Duration::from_secs(5));
    assert_eq!(two.counters().0.sent, 0);
}

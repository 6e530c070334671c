//! Hosts that fall silent, and how soon it is noticed.

use std::time::Duration;

use doorbell_core::encap::Version;
use doorbell_core::nic::*;
use doorbell_core::time::Time;
use doorbell_core::wire::{CaGuid, PathMtu, Pkey, Psn, Qpn};
use doorbell_simulation::{Fabric, LinkConfig};

use crate::reliable::common::{BRIEF, End, Setup, Two, outcomes, short};

/// The GUID of either node, which tells that all of its connections are of one peer.
const SAME: CaGuid = CaGuid(7);

/// Two nodes with so many connections.
fn many(count: usize, config: Config) -> (Fabric, Vec<(End, End)>) {
    let mut fabric = Fabric::new(1, Version::V2Ipv4, config);
    let nodes = [fabric.node(), fabric.node()];
    let stations = nodes.map(|node| fabric.station(node));
    fabric.network.link(stations[0], stations[1], LinkConfig::default());
    let pairs = (0..count).map(|_| {
        let [a, b] = nodes.map(|node| End::new(&mut fabric, node, 16, 64));
        fabric.connect((a.node, a.qpn), (b.node, b.qpn), PathMtu::Mtu1024, |connection, _| {
            connection.peer_guid = Some(SAME);
        });
        (a, b)
    });
    let pairs = pairs.collect();
    (fabric, pairs)
}

fn config() -> Config {
    Config { queue_pairs: 16, registrations: 16, keep_alive: BRIEF, ..Config::default() }
}

fn events(nic: &mut Nic) -> Vec<Event> {
    std::iter::from_fn(|| nic.event()).collect()
}

#[test]
fn a_host_that_vanishes_while_nothing_is_sent_is_noticed_in_time_on_every_connection() {
    let (mut fabric, mut pairs) = many(5, config());
    pairs[2].1.receives(1, 10);
    pairs[2].0.post(short(1));
    fabric.run_until(Duration::from_secs(100), |_| false);
    assert_eq!((events(fabric.nic(0)), events(fabric.nic(1))), (vec![], vec![]));
    let station = fabric.station(1);
    fabric.network.partition(&[station]);
    fabric.run_until(Duration::from_secs(14), |_| false);
    assert_eq!(events(fabric.nic(0)), []);
    fabric.run_until(Duration::from_secs(17), |_| false);
    let cause = Cause::PeerSilent { millis: 30_000, limit: Silence::Idle };
    for node in [0, 1] {
        let mut broken = events(fabric.nic(node));
        assert_eq!(broken.len(), 5);
        for (a, b) in &pairs {
            let qpn = if node == 0 { a.qpn } else { b.qpn };
            broken.retain(|event| *event != Event::Broken(qpn, cause));
        }
        assert_eq!(broken, []);
    }
    fabric.run_until(Duration::from_secs(1), |_| false);
    assert_eq!(fabric.nic(0).next_timeout(), None, "nothing is left to wait for");
}

#[test]
fn a_host_is_asked_once_for_all_its_connections() {
    let (mut fabric, _pairs) = many(10, config());
    fabric.run_until(Duration::from_secs(600), |_| false);
    let asked = [0, 1].map(|node| fabric.nic(node).counters().questions_sent);
    // Each 15 seconds, by one side or the other: an answer, or a question, is a sign of life.
    let total: u64 = asked.iter().sum();
    assert!((38..=80).contains(&total), "{asked:?}");
    assert_eq!(events(fabric.nic(0)), []);
}

/// The question went by the same queue pair each time. Where the peer of that had gone, nobody
/// answered, and the host was taken for silent on every connection.
#[test]
fn a_host_on_which_one_queue_pair_has_gone_is_not_taken_for_silent() {
    let (mut fabric, _) = many(0, config());
    let mut pairs = Vec::new();
    for _ in 0..2 {
        let [a, b] = [0, 1].map(|node| End::new(&mut fabric, node, 16, 64));
        let [there, back] = [(0, 1), (1, 0)].map(|(from, to)| fabric.path(from, to));
        let first = Psn::new(5);
        let sends = Connection {
            peer_guid: Some(SAME),
            ..Connection::new(b.qpn, there, PathMtu::Mtu1024, Psn::new(0))
        };
        fabric.ready(0, a.qpn, sends, Sending::new(first));
        // The other end only answers, and asks nobody.
        let answers = Connection::new(a.qpn, back, PathMtu::Mtu1024, first);
        let init = Change::Init { rights: Rights::REMOTE, pkey: Pkey::DEFAULT };
        for change in [init, Change::ReadyToReceive(Box::new(answers))] {
            fabric.nic(1).change(b.qpn, change).unwrap();
        }
        pairs.push((a, b));
    }
    fabric.nic(1).change(pairs[0].1.qpn, Change::Error).unwrap();
    fabric.run_until(Duration::from_secs(100), |_| false);
    assert_eq!(events(fabric.nic(0)), []);
}

#[test]
fn a_host_that_vanishes_under_a_request_is_noticed_within_the_busy_time() {
    let mut two = Setup::default().connected(|_, sending| {
        // It would insist for half a minute by itself.
        (sending.timeout, sending.retries) = (Duration::from_secs(4), 7);
    });
    two.run_for(Duration::from_secs(5));
    let station = two.fabric.station(two.b.node);
    two.fabric.network.partition(&[station]);
    let before = two.fabric.now();
    two.a.post(short(1));
    let (done, _) = two.run(1, 0);
    let cause = Cause::PeerSilent { millis: 1000, limit: Silence::Busy };
    assert_eq!(outcomes(&done), [(1, Err(Failure::Broke(cause)))]);
    let took = two.fabric.now().since(before);
    let range = Duration::from_millis(1000)..Duration::from_millis(1010);
    assert!(range.contains(&took), "{took:?}");
}

/// A process that had no processor for a quarter of a second was taken to be gone.
#[test]
fn a_peer_that_is_away_for_no_longer_than_it_may_be_is_waited_for() {
    for (patience, away, stands) in [(1000, 800, true), (0, 800, false), (1000, 1100, false)] {
        let mut two = Setup::default().connected(|_, sending| {
            sending.patience = Duration::from_millis(patience);
        });
        let station = two.fabric.station(two.b.node);
        two.fabric.network.partition(&[station]);
        two.b.receives(1, 10);
        two.a.post(short(1));
        two.run_for(Duration::from_millis(away));
        two.fabric.network.heal_partitions();
        let (done, _) = two.run(1, 0);
        assert_eq!(done[0].outcome.is_ok(), stands, "{patience} {away} {:?}", done[0].outcome);
    }
}

/// What another connection hears of a host says that it is there: then it is the peer that is gone,
/// and it has all the time that it was given.
#[test]
fn a_peer_that_is_gone_is_not_taken_for_a_silent_host_while_others_there_speak() {
    let (mut fabric, _) = many(0, config());
    let pairs = [(); 2].map(|()| {
        let [a, b] = [0, 1].map(|node| End::new(&mut fabric, node, 64, 64));
        fabric.connect(
            (a.node, a.qpn),
            (b.node, b.qpn),
            PathMtu::Mtu1024,
            |connection, sending| {
                connection.peer_guid = Some(SAME);
                (sending.timeout, sending.retries) = (Duration::from_secs(4), 7);
            },
        );
        (a, b)
    });
    let [(mut gone, other), (mut speaks, mut hears)] = pairs;
    fabric.nic(1).change(other.qpn, Change::Error).unwrap();
    gone.post(short(1));
    for id in 0..18 {
        hears.receives(1, 10);
        speaks.post(short(id).awaited());
        fabric.run_until(Duration::from_millis(100), |_| false);
    }
    assert_eq!(speaks.poll().len(), 18);
    let cause = Cause::NoAnswer { tries: 8 };
    // Each try waits for a quarter of a second.
    fabric.run_until(Duration::from_secs(1), |_| false);
    assert_eq!(outcomes(&gone.poll()), [(1, Err(Failure::Broke(cause)))]);
}

#[test]
fn who_was_not_looked_at_for_long_asks_before_giving_up() {
    let mut two = Two::new();
    two.b.receives(1, 10);
    two.run_for(Duration::from_secs(1));
    let nic = two.fabric.nic(two.a.node);
    nic.advance(Time::ZERO + Duration::from_secs(3600));
    assert_eq!(nic.event(), None);
    assert!(nic.has_work(), "it asks");
}

/// Two connections between two hosts, whose peers at the second have these GUIDs; the first of the
/// two peers is no more.
fn one_of_two_gone(guids: [Option<CaGuid>; 2]) -> (Fabric, [(End, End); 2]) {
    let (mut fabric, _) = many(0, config());
    let pairs = guids.map(|guid| {
        let [a, b] = [0, 1].map(|node| End::new(&mut fabric, node, 64, 64));
        fabric.connect((a.node, a.qpn), (b.node, b.qpn), PathMtu::Mtu1024, |connection, _| {
            connection.peer_guid = guid;
        });
        (a, b)
    });
    fabric.nic(1).change(pairs[0].1.qpn, Change::Error).unwrap();
    (fabric, pairs)
}

/// Silence was judged by host: a client that was killed and came back at the same address vouched
/// for what it had been before, for as long as it lived.
#[test]
fn what_another_peer_at_the_same_host_says_does_not_vouch_for_one_that_is_gone() {
    let [old, new] = [1, 2].map(CaGuid);
    for guids in [[Some(old), Some(new)], [None, Some(new)], [None, None]] {
        let (mut fabric, [gone, mut lives]) = one_of_two_gone(guids);
        for id in 0..60 {
            lives.1.receives(1, 10);
            lives.0.post(short(id).awaited());
            fabric.run_until(Duration::from_millis(500), |_| false);
        }
        fabric.run_until(Duration::from_secs(5), |_| false);
        assert_eq!(lives.0.poll().len(), 60);
        let cause = Cause::PeerSilent { millis: 30_000, limit: Silence::Idle };
        assert_eq!(events(fabric.nic(0)), [Event::Broken(gone.0.qpn, cause)], "{guids:?}");
    }
}

#[test]
fn a_suspected_peer_that_is_gone_breaks_within_the_busy_time_and_others_stand() {
    let [old, new] = [1, 2].map(CaGuid);
    let (mut fabric, [gone, lives]) = one_of_two_gone([Some(old), Some(new)]);
    fabric.run_until(Duration::from_secs(5), |_| false);
    assert_eq!(events(fabric.nic(0)), []);
    let path = fabric.path(0, 1);
    let before = fabric.nic(0).counters().questions_sent;
    // However often it is suspected, it is asked as often, and has as long.
    for _ in 0..9 {
        fabric.nic(0).suspect(&path, lives.1.qpn);
        fabric.run_until(Duration::from_millis(100), |_| false);
    }
    assert_eq!(events(fabric.nic(0)), []);
    fabric.run_until(Duration::from_millis(110), |_| false);
    let cause = Cause::PeerSilent { millis: 1000, limit: Silence::Busy };
    assert_eq!(events(fabric.nic(0)), [Event::Broken(gone.0.qpn, cause)]);
    assert_eq!(fabric.nic(0).state(lives.0.qpn), Some(State::ReadyToSend));
    // Sixteen times it, and the other each time that it had answered the last.
    let asked = fabric.nic(0).counters().questions_sent - before;
    assert!((17..=27).contains(&asked), "{asked}");
}

/// Every newcomer at a host had all peers there asked, so that one that was stopped for a second,
/// and that nobody waited for, lost its connections when another process of its host connected.
#[test]
fn a_newcomer_of_another_tag_harms_no_idle_peer_that_is_stopped() {
    let [stopped, newcomer] = [1, 2].map(CaGuid);
    let (mut fabric, [stopped, lives]) = one_of_two_gone([Some(stopped), Some(newcomer)]);
    fabric.run_until(Duration::from_secs(5), |_| false);
    let path = fabric.path(0, 1);
    let before = fabric.nic(0).counters().questions_sent;
    let tag_bits = Numbering::default().tag_bits;
    let of_other_tag = Qpn::new(lives.1.qpn.get() ^ 3 << (24 - tag_bits));
    fabric.nic(0).suspect(&path, of_other_tag);
    fabric.run_until(Duration::from_secs(5), |_| false);
    assert_eq!(events(fabric.nic(0)), []);
    assert_eq!(fabric.nic(0).state(stopped.0.qpn), Some(State::ReadyToSend));
    assert_eq!(fabric.nic(0).counters().questions_sent, before);
}

#[test]
fn on_a_device_that_loses_nothing_nobody_asks() {
    let config = Config { lossless: true, ..config() };
    let (mut fabric, _pairs) = many(3, config);
    fabric.run_until(Duration::from_secs(600), |_| false);
    assert_eq!(fabric.nic(0).counters().sent, 0);
    assert_eq!(fabric.nic(0).next_timeout(), None);
}

/// A host whose last connection broke at the very moment at which it was to be asked was asked for
/// ever.
#[test]
fn a_host_that_nobody_is_connected_to_any_more_is_forgotten() {
    let mut two = Setup::default().connected(|_, sending| sending.retries = 0);
    let station = two.fabric.station(two.b.node);
    two.fabric.network.partition(&[station]);
    two.a.post(short(1));
    two.fabric.turn(two.a.node);
    let nic = two.fabric.nic(two.a.node);
    nic.advance(Time::ZERO + Duration::from_secs(20));
    assert_eq!(nic.event(), Some(Event::Broken(two.a.qpn, Cause::NoAnswer { tries: 1 })));
    assert_eq!(nic.objects().hosts, 0);
    two.fabric.turn(two.a.node);
    let nic = two.fabric.nic(two.a.node);
    nic.advance(Time::ZERO + Duration::from_secs(21));
    assert_eq!(nic.next_timeout(), None);
}

#[test]
fn who_only_receives_waits_for_as_long_as_it_takes() {
    let mut two = Setup::default().unconnected();
    let path = two.fabric.path(two.b.node, two.a.node);
    let connection = Connection::new(two.a.qpn, path, PathMtu::Mtu1024, Psn::new(5));
    let nic = two.fabric.nic(two.b.node);
    let init = Change::Init { rights: Rights::REMOTE, pkey: Pkey::DEFAULT };
    nic.change(two.b.qpn, init).unwrap();
    nic.change(two.b.qpn, Change::ReadyToReceive(Box::new(connection))).unwrap();
    two.run_for(Duration::from_secs(300));
    assert_eq!(events(two.fabric.nic(two.b.node)), []);
}

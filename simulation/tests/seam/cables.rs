//! What a cable without faults does, and a station's timer.

use std::time::Duration;

use doorbell_simulation::{Bandwidth, Event, LinkConfig, LinkId, Network, StationId};

use crate::common::*;

fn pair(config: LinkConfig) -> (Network, StationId, StationId, LinkId) {
    let mut network = Network::new(0);
    let (a, b) = (network.station(), network.station());
    let link = network.link(a, b, config);
    (network, a, b, link)
}

#[test]
fn a_frame_takes_exactly_the_latency_and_arrives_as_it_was_sent() {
    let config = LinkConfig { latency: Duration::from_nanos(1_234), ..LinkConfig::default() };
    let (mut network, a, b, _) = pair(config);
    assert_eq!(network.step(at(100)), None);
    network.send(a, numbered(7));
    network.send(b, numbered(8));
    assert_eq!(network.in_flight(), 2);
    assert_eq!(network.next_at(), Some(at(1_334)));
    assert_eq!(network.step(at(1_333)), None);
    assert_eq!(network.step(at(1_334)), Some((b, Event::Frame(numbered(7)))));
    assert_eq!(network.step(at(1_334)), Some((a, Event::Frame(numbered(8)))));
    assert_eq!((network.now(), network.next_at()), (at(1_334), None));
}

#[test]
fn frames_queue_behind_each_other_at_the_interface_and_directions_do_not() {
    let bandwidth = Bandwidth::gigabits_per_second(1);
    let (mut network, a, b, _) = pair(LinkConfig { bandwidth, ..LinkConfig::default() });
    for len in [1_000, 60, 100] {
        network.send(a, frame(mac(1), mac(0), len));
    }
    network.send(b, frame(mac(0), mac(1), 125));
    let expected = [(2_000, a), (9_000, b), (9_480, b), (10_280, b)];
    assert_eq!(times(&mut network), expected);
}

#[test]
fn rounding_to_nanoseconds_does_not_add_up_in_a_burst() {
    let bandwidth = Bandwidth::gigabits_per_second(100);
    let (mut network, a, _, _) = pair(LinkConfig { bandwidth, ..LinkConfig::default() });
    for _ in 0..1_000 {
        network.send(a, frame(mac(1), mac(0), 64));
    }
    let times = times(&mut network);
    // 5.12 ns each.
    let exact = (1..=1_000).map(|count| 1_000 + count * 512 / 100);
    assert!(times.iter().map(|(time, _)| *time).eq(exact));
    // After a pause the sum begins afresh.
    let now = network.now();
    network.send(a, frame(mac(1), mac(0), 64));
    assert_eq!(network.step(now + Duration::from_nanos(1_004)), None);
    assert!(network.step(now + Duration::from_nanos(1_005)).is_some());
}

#[test]
fn a_frame_longer_than_the_mtu_is_dropped_and_counted() {
    let (mut network, a, _, _) = pair(LinkConfig { mtu: 1_000, ..LinkConfig::default() });
    network.send(a, frame(mac(1), mac(0), 1_015));
    network.send(a, frame(mac(1), mac(0), 1_014));
    let arrived = arrivals(&mut network);
    assert_eq!(arrived.iter().map(|(_, _, frame)| frame.len()).collect::<Vec<_>>(), [1_014]);
    assert_eq!((network.counters().oversized, network.counters().delivered), (1, 1));
}

#[test]
fn a_cable_changed_in_the_middle_of_a_run_is_another_for_what_has_not_left() {
    let slow = LinkConfig {
        bandwidth: Bandwidth::bits_per_second(480_000_000),
        latency: Duration::from_micros(10),
        ..LinkConfig::default()
    };
    let (mut network, a, b, link) = pair(slow);
    for number in 0..4 {
        network.send(a, numbered(number));
    }
    // 60 bytes take 1 µs: the first is on the cable, the second is leaving.
    assert_eq!(network.step(at(1_500)), None);
    let fast = LinkConfig { bandwidth: Bandwidth::UNLIMITED, latency: MICROSECOND, ..slow };
    network.reconfigure(link, fast);
    assert_eq!(times(&mut network), [(3_000, b), (3_000, b), (3_000, b), (11_000, b)]);
}

#[test]
fn a_station_without_a_cable_sends_nowhere() {
    let mut network = Network::new(0);
    let alone = network.station();
    network.send(alone, numbered(0));
    network.restart(alone);
    assert_eq!(arrivals(&mut network), []);
    assert_eq!(network.counters().undeliverable, 1);
}

#[test]
#[should_panic(expected = "StationId(0) has one interface, and a cable in it already")]
fn a_second_cable_at_a_station_is_refused() {
    let (mut network, a, _, _) = pair(LinkConfig::default());
    let third = network.station();
    network.link(a, third, LinkConfig::default());
}

#[test]
fn time_goes_to_where_it_was_told_and_never_back() {
    let mut network = Network::new(0);
    assert_eq!((network.step(at(500)), network.now()), (None, at(500)));
    assert_eq!((network.step(at(100)), network.now()), (None, at(500)));
}

#[test]
fn a_timer_goes_off_once_and_at_its_moment() {
    let (mut network, a, _, _) = pair(LinkConfig::default());
    network.wake_at(a, Some(at(70)));
    assert_eq!(network.next_at(), Some(at(70)));
    assert_eq!((network.step(at(69)), network.now()), (None, at(69)));
    assert_eq!(network.step(at(1_000)), Some((a, Event::Wake)));
    assert_eq!(network.now(), at(70));
    assert_eq!((network.step(at(1_000)), network.now()), (None, at(1_000)));
}

#[test]
fn a_timer_that_is_replaced_or_cleared_does_not_go_off() {
    let (mut network, a, b, _) = pair(LinkConfig::default());
    for (earlier, later) in [(50, 60), (60, 50)] {
        let start = network.now();
        network.wake_at(a, Some(start + NANOSECOND * earlier));
        network.wake_at(a, Some(start + NANOSECOND * later));
        network.wake_at(b, Some(start + NANOSECOND * 40));
        network.wake_at(b, None);
        assert_eq!(network.step(start + MICROSECOND), Some((a, Event::Wake)));
        assert_eq!(network.now(), start + NANOSECOND * later);
        assert_eq!(network.step(start + MICROSECOND), None);
    }
}

#[test]
fn a_timer_set_to_the_past_goes_off_now() {
    let (mut network, a, _, _) = pair(LinkConfig::default());
    network.step(at(500));
    network.wake_at(a, Some(at(3)));
    assert_eq!(network.step(at(500)), Some((a, Event::Wake)));
    assert_eq!(network.now(), at(500));
}

#[test]
fn what_falls_on_one_moment_happens_in_the_order_it_was_caused() {
    let (mut network, a, b, _) = pair(LinkConfig::default());
    network.wake_at(b, Some(at(1_000)));
    network.send(a, numbered(1));
    network.wake_at(a, Some(at(1_000)));
    network.send(b, numbered(2));
    assert_eq!(network.step(at(1_000)), Some((b, Event::Wake)));
    assert_eq!(network.step(at(1_000)), Some((b, Event::Frame(numbered(1)))));
    assert_eq!(network.step(at(1_000)), Some((a, Event::Wake)));
    assert_eq!(network.step(at(1_000)), Some((a, Event::Frame(numbered(2)))));
}

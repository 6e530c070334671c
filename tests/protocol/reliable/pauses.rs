//! Programs that pause, while nobody reads the clock, and processes that are stopped.

use std::time::Duration;

use doorbell_core::nic::{Config, Done, Event, KeepAlive, Sending};
use doorbell_simulation::{Fabric, Faults, LinkConfig, NodeId};

use crate::reliable::common::{Setup, Two, outcomes, short};

/// Two nodes whose round trip takes a fifth of the shortest time-out.
fn apart() -> Two {
    let cable = LinkConfig { latency: Duration::from_micros(150), ..Setup::default().cable };
    Setup { cable, ..Setup::default() }.connected(|_, _| {})
}

const TURN: Duration = Duration::from_micros(20);

/// What was posted after a pause bore the time of the turn before: it was taken for lost as soon as
/// somebody read the clock, and sent again.
#[test]
fn what_is_sent_after_a_pause_has_its_time_to_be_answered() {
    for pause in [900, 1400, 2000, 5000, 1_000_000] {
        let mut two = apart();
        for id in 0..50 {
            two.b.receives(1, 10);
            two.run_for(Duration::from_micros(pause));
            two.a.post(short(id).awaited());
            two.fabric.send_late(two.a.node);
            two.run_for(TURN);
            let (done, _) = two.run(1, 1);
            assert_eq!(outcomes(&done), [(id, Ok(Done::Sent))]);
        }
        let (a, _) = two.counters();
        assert_eq!((a.retransmitted, a.timeouts), (0, 0), "pauses of {pause} µs");
    }
}

/// The answer to the first was found before the clock was read, and the time of the second set by
/// it.
#[test]
fn what_is_sent_after_a_pause_behind_something_unanswered_has_its_time_too() {
    for pause in [900, 1400, 2000, 5000] {
        let mut two = apart();
        two.b.receives(64, 10);
        for id in 0..20 {
            two.a.post(short(2 * id).awaited());
            two.fabric.turn(two.a.node);
            // Its answer waits at the device.
            two.fabric.stop(two.a.node);
            two.run_for(Duration::from_micros(pause));
            two.a.post(short(2 * id + 1).awaited());
            two.fabric.send_late(two.a.node);
            two.fabric.resume(two.a.node);
            two.run_for(TURN);
            let (done, _) = two.run(2, 2);
            assert_eq!(done.len(), 2);
        }
        let (a, _) = two.counters();
        assert_eq!((a.retransmitted, a.timeouts), (0, 0), "pauses of {pause} µs");
    }
}

#[test]
fn what_is_lost_after_a_pause_is_sent_again_as_soon_as_else() {
    let mut two = apart();
    two.b.receives(1, 10);
    two.run_for(Duration::from_millis(300));
    let station = two.fabric.station(two.b.node);
    two.fabric.network.partition(&[station]);
    two.a.post(short(1).awaited());
    two.fabric.send_late(two.a.node);
    two.run_for(Duration::from_micros(200));
    two.fabric.network.heal_partitions();
    let before = two.fabric.now();
    let (done, _) = two.run(1, 1);
    assert_eq!(outcomes(&done), [(1, Ok(Done::Sent))]);
    let took = two.fabric.now().since(before);
    assert!(took < Duration::from_micros(2400), "{took:?}");
    assert_eq!(two.counters().0.retransmitted, 1);
}

/// Two nodes with that patience with each other, as connections of programs have it.
fn patient(idle: u64, busy: u64) -> Two {
    let [idle, busy] = [idle, busy].map(Duration::from_secs);
    let keep_alive = KeepAlive { idle, busy };
    let config = Config { keep_alive, ..Setup::default().config };
    let patience = |sending: &mut Sending| sending.patience = busy;
    Setup { config, ..Setup::default() }.connected(|_, sending| patience(sending))
}

fn events(fabric: &mut Fabric, node: NodeId) -> Vec<Event> {
    std::iter::from_fn(|| fabric.nic(node).event()).collect()
}

const STOPPED: Duration = Duration::from_secs(10);

fn assert_stands(two: &mut Two) {
    for node in [two.a.node, two.b.node] {
        assert_eq!(events(&mut two.fabric, node), []);
    }
}

#[test]
fn a_process_that_is_stopped_for_less_than_the_idle_time_keeps_its_idle_connections() {
    let mut two = patient(30, 1);
    for round in 0..10 {
        // When the peer is about to ask, and when it is not.
        two.run_for(Duration::from_secs(3 * round));
        two.fabric.stop(two.b.node);
        two.run_for(STOPPED);
        two.fabric.resume(two.b.node);
        two.run_for(Duration::from_secs(1));
        assert_stands(&mut two);
    }
}

/// Both send without a pause; either is stopped, as others see it and as it sees others.
#[test]
fn a_process_that_is_stopped_for_less_than_the_busy_time_keeps_its_busy_connections() {
    let mut two = patient(30, 20);
    two.a.receives(32, 10);
    two.b.receives(32, 10);
    for id in 0..16 {
        two.a.post(short(2 * id).awaited());
        two.b.post(short(2 * id).awaited());
        let stopped = if id % 2 == 0 { two.a.node } else { two.b.node };
        two.fabric.stop(stopped);
        two.a.post(short(2 * id + 1).awaited());
        two.b.post(short(2 * id + 1).awaited());
        two.run_for(STOPPED);
        two.fabric.resume(stopped);
        let (a, b) = two.run(4, 4);
        assert!(a.iter().chain(&b).all(|done| done.outcome.is_ok()));
    }
    assert_stands(&mut two);
}

/// What came to it meanwhile is taken in before it judges anybody.
#[test]
fn a_process_that_was_stopped_for_long_finds_the_answer_that_waits_for_it() {
    for late in [false, true] {
        let mut two = patient(30, 1);
        two.b.receives(4, 10);
        two.a.post(short(1).awaited());
        two.fabric.turn(two.a.node);
        two.fabric.stop(two.a.node);
        two.run_for(STOPPED);
        if late {
            // It goes on in the middle of posting.
            two.a.post(short(2));
            two.fabric.send_late(two.a.node);
        }
        two.fabric.resume(two.a.node);
        assert_eq!(outcomes(&two.a.poll()), [(1, Ok(Done::Sent))]);
        two.run_for(STOPPED);
        assert_stands(&mut two);
    }
}

/// It had asked several times in vain before it was stopped, and so took its peers for silent as
/// soon as it went on, though nobody had listened for nearly all of that time.
#[test]
fn a_process_that_goes_on_asks_its_peers_once_more_before_it_takes_them_for_silent() {
    // A request under way; a probe; and nothing but the watch over idle hosts.
    for (asks, millis) in [(0, 600), (1, 600), (2, 25_000)] {
        let mut two = patient(30, 1);
        two.b.receives(4, 10);
        // Nothing comes back from the peer, which hears all.
        let cable = Setup::default().cable;
        let mute = LinkConfig { back: Faults { loss: 1.0, ..Faults::NONE }, ..cable };
        two.fabric.network.reconfigure(two.cable, mute);
        match asks {
            0 => two.a.post(short(1).awaited()),
            1 => two.fabric.nic(two.a.node).probe(two.a.qpn),
            _ => {}
        }
        two.run_for(Duration::from_millis(millis));
        assert_stands(&mut two);
        two.fabric.stop(two.a.node);
        two.fabric.network.reconfigure(two.cable, cable);
        two.run_for(STOPPED);
        two.fabric.resume(two.a.node);
        two.run_for(Duration::from_secs(5));
        assert_stands(&mut two);
        assert_eq!(two.a.poll().len(), usize::from(asks == 0));
    }
}

/// Who is always late forgives itself only now and then.
#[test]
fn a_process_that_is_late_all_the_time_notices_nevertheless_that_a_peer_is_gone() {
    let mut two = patient(30, 1);
    let station = two.fabric.station(two.b.node);
    two.fabric.network.partition(&[station]);
    two.a.post(short(1).awaited());
    two.fabric.turn(two.a.node);
    for _ in 0..30 {
        two.fabric.stop(two.a.node);
        two.run_for(Duration::from_millis(500));
        two.fabric.resume(two.a.node);
    }
    assert_eq!(events(&mut two.fabric, two.a.node).len(), 1);
}

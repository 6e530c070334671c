//! Programs that pause, while nobody reads the clock.

use std::time::Duration;

use doorbell::nic::Done;
use doorbell_kit::LinkConfig;

use crate::common::{Setup, Two, outcomes, short};

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

/// The answer to the first was found before the clock was read, and the time of the second set by it.
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

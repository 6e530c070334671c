//! Partitions that heal and that don't, and nodes that come back as another.

use std::time::Duration;

use doorbell_core::memory::Buf;
use doorbell_core::nic::*;
use doorbell_core::time::Time;

use crate::reliable::common::{End, Setup, Two, bytes, outcomes, pattern, short};

#[test]
fn everything_completes_once_a_partition_has_healed() {
    let mut two = Two::new();
    two.b.receives(20, 5000);
    for id in 0..20 {
        two.a.post(WorkRequest::send(id, Memory::Buf(Buf::from(pattern(5000)))));
    }
    // In the middle of it, and not for so long that anybody gives up.
    two.run_for(Duration::from_micros(4));
    let station = two.fabric.station(two.b.node);
    two.fabric.network.partition(&[station]);
    two.run_for(Duration::from_millis(20));
    assert!(two.a.queue.len() < 20, "{} messages", two.a.queue.len());
    two.fabric.network.heal_partitions();

    let (sent, received) = two.run(20, 20);
    for (id, (one, other)) in (0..).zip(sent.iter().zip(&received)) {
        assert_eq!((one.id, one.outcome), (id, Ok(Done::Sent)));
        assert_eq!((other.id, other.outcome), (id, Ok(Done::Received)));
        assert_eq!(bytes(other), pattern(5000));
    }
    assert!(two.counters().0.timeouts > 0);
}

/// The first is to blame, and all behind it are flushed.
fn assert_unanswered(completions: &[Completion], tries: u8) {
    let cause = Cause::NoAnswer { tries };
    let mut expected = vec![Err(Failure::Flushed(cause)); completions.len()];
    expected[0] = Err(Failure::Broke(cause));
    let found: Vec<_> = completions.iter().map(|completion| completion.outcome).collect();
    assert_eq!(found, expected);
}

#[test]
fn requests_that_nobody_answers_fail_and_say_so() {
    let mut two = Two::new();
    let station = two.fabric.station(two.b.node);
    two.fabric.network.partition(&[station]);
    two.a.receives(3, 100);
    (0..5).for_each(|id| two.a.post(short(id)));
    two.b.receives(2, 100);
    two.b.post(short(7));

    let (at_a, at_b) = two.run(8, 3);
    assert_unanswered(&at_a, 8);
    assert_unanswered(&at_b, 8);
    assert_eq!(at_a.iter().map(|c| c.id).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 0, 1, 2]);
    for end in [&mut two.a, &mut two.b] {
        let nic = two.fabric.nic(end.node);
        assert_eq!(nic.state(end.qpn), Some(State::Error));
        let broken = Event::Broken(end.qpn, Cause::NoAnswer { tries: 8 });
        assert_eq!(nic.event(), Some(broken));
        assert_eq!(nic.event(), None);
    }
    // Two milliseconds, doubled with each of the eight tries.
    assert!(two.fabric.now().since(Time::ZERO) < Duration::from_millis(520));
    two.run_for(Duration::from_secs(1));
    assert_eq!(two.fabric.nic(two.a.node).next_timeout(), None, "nothing is tried any more");

    // Whatever is posted later is flushed, too, on both sides.
    for end in [&mut two.a, &mut two.b] {
        end.post(short(100));
        end.receive(101, Buf::with_capacity(10));
    }
    let flushed = Err(Failure::Flushed(Cause::NoAnswer { tries: 8 }));
    let (at_a, at_b) = two.run(2, 2);
    assert_eq!(outcomes(&at_a), [(100, flushed), (101, flushed)]);
    assert_eq!(outcomes(&at_b), [(100, flushed), (101, flushed)]);
}

/// To say how often it was tried took one more than the number could be.
#[test]
fn as_many_tries_as_can_be_asked_for_come_to_an_end() {
    let hour = Duration::from_secs(3600);
    let mut setup = Setup::default();
    setup.config.keep_alive = KeepAlive { idle: hour, busy: hour };
    let mut two = setup.connected(|_, sending| sending.retries = u8::MAX);
    let station = two.fabric.station(two.b.node);
    two.fabric.network.partition(&[station]);
    two.a.post(short(1));
    // Four seconds each, when the doubling has come to its end.
    two.run_for(Duration::from_secs(1020));
    assert_unanswered(&two.a.poll(), u8::MAX);
}

#[test]
fn a_node_that_was_restarted_knows_nothing_of_old_connections_and_makes_new_ones() {
    let setup = Setup::default();
    let mut two = setup.connected(|_, sending| sending.retries = 2);
    two.b.receives(10, 100);
    two.a.post(short(0));
    two.run(1, 1);

    two.fabric.restart(two.b.node);
    let mut reborn = End::new(&mut two.fabric, two.b.node, setup.depth, setup.capacity);
    reborn.receives(0, 100);
    (1..4).for_each(|id| two.a.post(short(id)));
    let (at_a, _) = two.run(3, 0);
    assert_unanswered(&at_a, 3);
    let counters = *two.fabric.nic(reborn.node).counters();
    assert!(counters.no_such_queue_pair >= 3, "{counters:?}");
    assert_eq!(counters.received, counters.no_such_queue_pair, "and nothing else came");
    assert_eq!((counters.completed, counters.sent), (0, 0));

    let mut fresh = End::new(&mut two.fabric, two.a.node, setup.depth, setup.capacity);
    let ends = ((fresh.node, fresh.qpn), (reborn.node, reborn.qpn));
    two.fabric.connect(ends.0, ends.1, setup.mtu, |_, _| {});
    reborn.receives(2, 100);
    (0..2).for_each(|id| fresh.post(short(id)));
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    assert!(two.fabric.run_until(Duration::from_secs(1), |_| {
        sent.extend(fresh.poll());
        received.extend(reborn.poll());
        sent.len() == 2 && received.len() == 2
    }));
    assert_eq!(outcomes(&sent), [(0, Ok(Done::Sent)), (1, Ok(Done::Sent))]);
    assert_eq!(outcomes(&received), [(0, Ok(Done::Received)), (1, Ok(Done::Received))]);
}

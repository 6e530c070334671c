//! Acknowledgements: how many, how soon, and how long they are waited for.

use std::time::Duration;

use doorbell_core::memory::Buf;
use doorbell_core::nic::*;
use doorbell_core::wire::{Aeth, Bth, Extensions, Headers, Msn, Opcode, Packet, Psn, Syndrome};
use doorbell_simulation::{Bandwidth, Faults, LinkConfig};

use crate::reliable::common::{Setup, at, inline, outcomes, short};

fn setup(latency: Duration) -> Setup {
    let cable = LinkConfig { latency, mtu: 9000, ..LinkConfig::default() };
    Setup { cable, ..Setup::default() }
}

#[test]
fn a_stream_that_nobody_waits_for_is_acknowledged_every_so_many_packets() {
    for every in [1, 4, 16] {
        const MESSAGES: u64 = 640;
        let setup = Setup { depth: MESSAGES as usize, capacity: 1024, ..Setup::default() };
        // The window is so large that it asks for nothing by itself.
        let mut two = setup.connected(|connection, sending| {
            connection.ack_every = every;
            sending.window = 1 << 14;
        });
        two.b.receives(MESSAGES, 8);
        (0..MESSAGES).for_each(|id| two.a.post(short(id)));
        two.run(MESSAGES as usize, MESSAGES as usize);
        let (sender, receiver) = two.counters();
        let expected = MESSAGES / u64::from(every);
        let range = expected..=expected + expected / 8 + 2;
        assert!(range.contains(&receiver.acks_sent), "{every}: {receiver:?}");
        assert_eq!((sender.sent, sender.retransmitted), (MESSAGES, 0));
    }
}

#[test]
fn the_last_of_a_stream_is_acknowledged_after_a_while_unasked() {
    let mut two = setup(Duration::from_micros(1)).connected(|_, _| {});
    two.b.receives(3, 8);
    (0..3).for_each(|id| two.a.post(short(id)));
    two.run(0, 3);
    assert!(two.a.queue.is_empty());
    two.run(3, 0);
    let took = two.fabric.now().as_nanos();
    // There, two looks 25 µs apart, each a tick of the timer late at most, and back.
    assert!((52_000..61_000).contains(&took), "{took} ns");
    assert_eq!(two.counters().1.acks_sent, 1);
}

#[test]
fn an_awaited_message_is_acknowledged_in_the_turn_that_received_it() {
    let mut two = setup(Duration::from_micros(10)).connected(|_, _| {});
    two.b.receives(10, 8);
    for id in 0..10 {
        let before = two.fabric.now();
        two.a.post(short(id).awaited());
        let (at_a, _) = two.run(1, 1);
        assert_eq!(outcomes(&at_a), [(id, Ok(Done::Sent))]);
        assert_eq!(two.fabric.now().since(before), Duration::from_micros(20), "there and back");
    }
    assert_eq!(two.counters().1.acks_sent, 10);
}

/// Learns a path by awaited messages, then has one lost. Gives how long that took.
fn recovery(latency: Duration, learn: u64) -> Duration {
    let setup = setup(latency);
    let mut two = setup.connected(|_, sending| sending.timeout = Duration::from_millis(50));
    two.b.receives(40, 8);
    for id in 0..learn {
        two.a.post(short(id).awaited());
        two.run(1, 1);
    }
    let station = two.fabric.station(two.b.node);
    two.fabric.network.partition(&[station]);
    let before = two.fabric.now();
    two.a.post(short(99).awaited());
    two.run_for(latency);
    two.fabric.network.heal_partitions();
    two.run(1, 1);
    assert_eq!(two.counters().0.timeouts, 1);
    two.fabric.now().since(before)
}

#[test]
fn a_loss_is_noticed_the_sooner_the_shorter_the_path_was_found_to_be() {
    let unknown = recovery(Duration::from_micros(5), 0);
    let (short, long) =
        (recovery(Duration::from_micros(5), 20), recovery(Duration::from_millis(2), 20));
    assert!(unknown >= Duration::from_millis(50), "{unknown:?}");
    assert!(short < Duration::from_millis(2), "{short:?}");
    assert!((Duration::from_millis(8)..Duration::from_millis(20)).contains(&long), "{long:?}");
}

/// The time-out once came to be the round trip alone, when that was steady. A message that nobody
/// waits for is acknowledged later than that, and was sent twice.
#[test]
fn an_acknowledgement_that_takes_its_time_is_not_taken_for_lost() {
    for micros in [1, 30, 60, 74, 90, 99, 120, 500] {
        let mut two = setup(Duration::from_micros(micros)).connected(|_, _| {});
        two.b.receives(60, 8);
        for id in 0..50 {
            two.a.post(short(id).awaited());
            two.run(1, 1);
        }
        for id in 50..60 {
            two.a.post(short(id));
            two.run(1, 1);
        }
        let counters = two.counters().0;
        assert_eq!((counters.timeouts, counters.retransmitted), (0, 0), "{micros} µs");
    }
}

#[test]
fn nothing_is_sent_in_vain_on_a_path_that_loses_nothing() {
    let mut two = setup(Duration::from_micros(20)).connected(|_, _| {});
    two.b.receives(60, 20_000);
    for id in 0..60 {
        two.a.post(WorkRequest::send(id, Memory::Buf(Buf::from(vec![1; 20_000]))));
    }
    two.run(60, 60);
    let (sender, receiver) = two.counters();
    assert_eq!((sender.retransmitted, sender.timeouts), (0, 0));
    assert_eq!((receiver.duplicates, receiver.out_of_sequence), (0, 0));
    assert_eq!(sender.sent, 60 * 20);
}

/// A window was once sent again for nothing whenever a peer had no processor for a while.
#[test]
fn what_a_peer_was_slow_to_acknowledge_is_not_sent_again() {
    const MESSAGES: u64 = 2000;
    let setup =
        Setup { depth: MESSAGES as usize, capacity: 4096, ..setup(Duration::from_micros(5)) };
    let mut two = setup.connected(|_, _| {});
    two.b.receives(MESSAGES, 8);
    (0..MESSAGES / 2).for_each(|id| two.a.post(short(id)));
    two.run(0, 100);
    let slow = LinkConfig { latency: Duration::from_millis(4), ..setup.cable };
    two.fabric.network.reconfigure(two.cable, slow);
    (MESSAGES / 2..MESSAGES).for_each(|id| two.a.post(short(id)));
    two.run(1500, 1500);
    let (sender, receiver) = two.counters();
    assert!((1..10).contains(&sender.timeouts), "{sender:#?}");
    // Each time, one packet asked what the peer has.
    assert_eq!(sender.retransmitted, sender.timeouts);
    assert_eq!((receiver.duplicates, receiver.out_of_sequence), (sender.timeouts, 0));
}

/// Of a window the end is lost, and what the peer said of its beginning. What it says again shows
/// that more had arrived than what was sent again; what is sent then is refused, and so the rest is
/// sent again without waiting for more time to run out.
#[test]
fn what_is_lost_behind_what_has_arrived_costs_no_more_than_one_time_out() {
    const MESSAGES: u64 = 600;
    let bandwidth = Bandwidth::gigabits_per_second(1);
    let cable = LinkConfig { bandwidth, ..setup(Duration::from_micros(10)).cable };
    for micros in (20..200).step_by(7) {
        let setup = Setup { cable, depth: 1024, capacity: 2048, ..Setup::default() };
        let mut two = setup.connected(|_, _| {});
        two.b.receives(MESSAGES, 8);
        (0..MESSAGES).for_each(|id| two.a.post(short(id)));
        two.run_for(Duration::from_micros(micros));
        two.fabric.network.cut(two.cable);
        two.run_for(Duration::from_micros(500));
        two.fabric.network.heal(two.cable);
        two.run(MESSAGES as usize, MESSAGES as usize);
        let (sender, receiver) = two.counters();
        assert_eq!(sender.timeouts, 1, "{micros} µs: {sender:#?}");
        assert!(receiver.duplicates <= 2, "{micros} µs: {receiver:#?}");
    }
}

/// Copies of refusals were once each a refusal: two that were doubled on the way were four tries.
#[test]
fn a_refusal_that_comes_twice_is_one() {
    let mut setup = setup(Duration::from_micros(1));
    let faults = Faults { duplication: 1.0, ..Faults::NONE };
    setup.cable = LinkConfig { back: faults, ..setup.cable };
    let mut two = setup.connected(|_, sending| sending.rnr_retries = 3);
    two.a.post(short(1));
    two.run_for(Duration::from_micros(250));
    two.b.receives(1, 8);
    let (at_a, _) = two.run(1, 1);
    assert_eq!(outcomes(&at_a), [(1, Ok(Done::Sent))]);
}

/// Answers to reads carry an acknowledgement, too, and were once taken for one.
#[test]
fn an_answer_to_what_was_not_asked_acknowledges_nothing() {
    let first = Psn::new(7);
    let mut two = Setup::default().connected(|connection, sending| {
        (connection.expected, sending.first) = (first, first);
    });
    two.a.post(short(1));
    two.fabric.turn(two.a.node);
    let (path, own) = (two.fabric.path(two.a.node, two.b.node), two.a.qpn);
    let nic = two.fabric.nic(two.a.node);
    for opcode in [
        Opcode::RcReadResponseFirst,
        Opcode::RcReadResponseLast,
        Opcode::RcReadResponseOnly,
        Opcode::RcAcknowledge,
    ] {
        assert!(two.a.queue.is_empty(), "before {opcode:?}");
        let aeth = Aeth { syndrome: Syndrome::ACK, msn: Msn::new(1) };
        let headers =
            Headers { bth: Bth::new(opcode, own, first), extensions: Extensions::Aeth(aeth) };
        nic.packet(Flow::Link(path.id()), &Packet { headers, payload: &[][..] });
    }
    assert_eq!(outcomes(&two.a.poll()), [(1, Ok(Done::Sent))]);
    assert_eq!(nic.counters().stray_answers, 3);
}

/// A hundred messages through a queue with room for eight, each of which the other end's program
/// says that it has.
#[test]
fn what_the_peers_program_says_to_have_is_acknowledged_by_that() {
    let setup = Setup { depth: 8, ..setup(Duration::from_micros(1)) };
    let mut two = setup.connected(|connection, _| connection.credits = false);
    for number in 0..100 {
        two.b.receives(1, 5000);
        // Long ones are several packets.
        let memory = Memory::Buf(Buf::from(vec![1; if number % 5 == 0 { 5000 } else { 8 }]));
        two.a.post(WorkRequest::send(number, memory));
        two.run(0, 1);
        two.fabric.nic(two.a.node).acknowledged_by_program(&two.a.send, number as u32 + 1);
        assert_eq!(outcomes(&two.a.poll()), [(number, Ok(Done::Sent))]);
    }
    let (sender, receiver) = two.counters();
    // The peer's NIC says so, too, but only when there was much, or nothing for a while.
    assert!(receiver.acks_sent < 10, "{receiver:?}");
    assert_eq!((sender.retransmitted, sender.timeouts), (0, 0));
    two.run_for(Duration::from_millis(10));
    assert_eq!((two.counters().0.timeouts, two.counters().1.duplicates), (0, 0));
}

/// Whoever says what is not so can only harm itself.
#[test]
fn only_what_was_sent_can_be_said_to_have_come() {
    let mut two = setup(Duration::from_micros(1)).connected(|_, sending| sending.window = 2);
    let (_, registration) = two.b.open(&mut two.fabric, 64);
    two.b.receives(8, 8);
    let own = Buf::with_capacity(8);
    two.a.post(short(0));
    two.a.post(WorkRequest::read(1, at(&registration, 0), registration.rkey, own));
    (2..5).for_each(|id| two.a.post(short(id)));
    two.fabric.turn(two.a.node);
    let nic = two.fabric.nic(two.a.node);
    // Two packets were sent; and a read is complete when it is answered.
    for count in [0, 2, 3, 5, 6, 1 << 23, 0xFF_FFFF, u32::MAX] {
        nic.acknowledged_by_program(&two.a.send, count);
        assert!(two.a.queue.is_empty(), "{count}");
    }
    nic.acknowledged_by_program(&two.a.send, 1);
    assert_eq!(outcomes(&two.a.poll()), [(0, Ok(Done::Sent))]);
    nic.acknowledged_by_program(&two.a.send, 1);
    assert!(two.a.queue.is_empty());
    let (at_a, _) = two.run(4, 4);
    assert_eq!(at_a.len(), 4);
    assert!(at_a.iter().all(|completion| completion.outcome.is_ok()), "{at_a:?}");
}

/// A packet that was lost in the middle is sent again, whatever is said meanwhile of those before
/// it.
#[test]
fn what_is_said_of_some_does_not_keep_others_from_being_sent_again() {
    let mut two = setup(Duration::from_micros(5)).connected(|_, _| {});
    two.b.receives(3, 8);
    two.a.post(short(0));
    two.run(0, 1);
    two.fabric.network.cut(two.cable);
    two.a.post(short(1));
    two.run_for(Duration::from_micros(20));
    two.fabric.network.heal(two.cable);
    two.fabric.nic(two.a.node).acknowledged_by_program(&two.a.send, 1);
    assert_eq!(outcomes(&two.a.poll()), [(0, Ok(Done::Sent))]);
    two.a.post(short(2));
    let (at_a, at_b) = two.run(2, 2);
    assert_eq!((at_a.len(), at_b.len()), (2, 2));
    assert!(two.counters().0.retransmitted > 0);
}

/// Each write once asked for an acknowledgement where the peer had few receives, though it takes
/// none.
#[test]
fn writes_do_not_ask_how_many_receives_there_are() {
    const WRITES: u64 = 60;
    let mut two = Setup { depth: 256, ..setup(Duration::from_micros(1)) }.connected(|_, _| {});
    let (_, registration) = two.b.open(&mut two.fabric, 64);
    two.b.receives(2, 8);
    // The answer says that one is left.
    two.a.post(short(0).awaited());
    two.run(1, 1);
    for id in 0..WRITES {
        let write =
            WorkRequest::write(id, at(&registration, 0), registration.rkey, inline(&[1; 8]));
        two.a.post(write);
        two.run_for(Duration::from_micros(3));
    }
    // For which there is a receive, however many writes are under way before it.
    two.a.post(short(WRITES));
    two.run_for(Duration::from_micros(3));
    assert_eq!(two.b.poll().len(), 1);
    let (_, receiver) = two.counters();
    assert!(receiver.acks_sent <= 3, "{receiver:?}");
    assert_eq!(receiver.rnr_naks_sent, 0);
    two.run(WRITES as usize + 1, 0);
}

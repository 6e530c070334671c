//! Unreliable connections: a message arrives whole or not at all, and nobody says which.

use std::time::Duration;

use doorbell_core::memory::Buf;
use doorbell_core::nic::*;
use doorbell_core::wire::Imm;
use doorbell_simulation::{Faults, LinkConfig};

use crate::reliable::common::{Setup, Two, at, bytes, content, lossless, outcomes, pattern, short};

fn two(faults: Faults, seed: u64) -> Two {
    let cable = LinkConfig { mtu: 9000, ..LinkConfig::default() }.with_faults(faults);
    let setup = Setup { transport: Transport::Unreliable, cable, seed, ..Setup::default() };
    setup.connected(|_, _| {})
}

#[test]
fn sends_and_writes_of_every_length_arrive_and_are_complete_when_they_are_sent() {
    let mut two = two(Faults::NONE, 1);
    let (region, place) = two.b.open(&mut two.fabric, 6000);
    for len in [0, 1, 1023, 1024, 1025, 5000] {
        two.b.receive(1, Buf::with_capacity(5000));
        two.b.receive(2, Buf::with_capacity(0));
        let data = || Memory::Buf(Buf::from(pattern(len)));
        two.a.post(WorkRequest::send(1, data()));
        let write = WorkRequest::write(2, at(&place, 100), place.rkey, data());
        two.a.post(write.with_imm(Imm(7)));
        two.fabric.turn(two.a.node);
        let done = two.a.poll();
        assert_eq!(outcomes(&done), [(1, Ok(Done::Sent)), (2, Ok(Done::Written))]);
        let (_, received) = two.run(0, 2);
        assert_eq!(bytes(&received[0]), pattern(len));
        assert_eq!((received[1].attached.imm(), received[1].len), (Some(Imm(7)), len as u32));
        assert_eq!(content(&region)[100..][..len], pattern(len));
    }
    let (a, b) = two.counters();
    assert_eq!((b.sent, a.received), (0, 0), "nobody answers");
}

#[test]
fn what_arrives_under_trouble_is_whole_and_in_order() {
    let faults = Faults { loss: 0.05, duplication: 0.05, reordering: 0.05, ..Faults::NONE };
    for seed in 0..30 {
        let mut two = two(faults, seed);
        two.b.receives(60, 5000);
        for id in 0..60u64 {
            let len = 8 + (id as usize * 613 + seed as usize) % 4900;
            let mut data = pattern(len);
            data[..8].copy_from_slice(&id.to_ne_bytes());
            two.a.post(WorkRequest::send(id, Memory::Buf(Buf::from(data))));
        }
        two.run_for(Duration::from_millis(10));
        assert_eq!(two.a.poll().len(), 60);
        let received = two.b.poll();
        assert!((10..60).contains(&received.len()), "{} arrived", received.len());
        let mut next = 0;
        for (index, completion) in received.iter().enumerate() {
            assert_eq!((completion.id, completion.outcome), (index as u64, Ok(Done::Received)));
            let (number, rest) = bytes(completion).split_first_chunk().expect("a number");
            let number = u64::from_ne_bytes(*number);
            assert!(number >= next, "{number} after {next}");
            next = number + 1;
            let len = 8 + (number as usize * 613 + seed as usize) % 4900;
            assert_eq!(rest, &pattern(len)[8..]);
        }
        let state = two.fabric.nic(two.b.node).state(two.b.qpn);
        assert_eq!(state, Some(State::ReadyToSend));
    }
}

#[test]
fn what_cannot_be_taken_is_passed_over() {
    let mut two = two(Faults::NONE, 1);
    let (region, place) = two.b.open(&mut two.fabric, 8);
    // No receive; too small a receive; outside the memory; and one that is taken.
    two.a.post(short(1));
    two.run_for(Duration::from_micros(100));
    two.b.receive(9, Buf::with_capacity(3000));
    two.a.post(WorkRequest::send(2, Memory::Buf(Buf::from(pattern(3001)))));
    two.a.post(WorkRequest::write(
        3,
        at(&place, 1),
        place.rkey,
        crate::reliable::common::inline(&[1; 8]),
    ));
    two.a.post(WorkRequest::send(4, Memory::Buf(Buf::from(pattern(3000)))));
    let (done, received) = two.run(4, 1);
    assert!(done.iter().all(|completion| completion.outcome.is_ok()));
    assert_eq!((received[0].id, bytes(&received[0])), (9, &pattern(3000)[..]));
    assert_eq!(content(&region), [0; 8]);
    assert!(two.counters().1.passed_over >= 3);
    assert_eq!(two.fabric.nic(two.b.node).event(), None);
}

/// A receive that was taken for a message which did not come whole is flushed like the others.
#[test]
fn what_was_kept_for_the_next_message_is_flushed() {
    let mut two = two(Faults::NONE, 1);
    two.b.receives(2, 100);
    two.a.post(WorkRequest::send(1, Memory::Buf(Buf::from(pattern(101)))));
    two.run(1, 0);
    two.run_for(Duration::from_micros(100));
    two.fabric.nic(two.b.node).change(two.b.qpn, Change::Error).unwrap();
    let (_, flushed) = two.run(0, 2);
    let why = Err(Failure::Flushed(Cause::Told));
    assert_eq!(outcomes(&flushed), [(0, why), (1, why)]);
}

#[test]
fn what_needs_an_answer_is_not_posted() {
    let mut two = two(Faults::NONE, 1);
    let (_, place) = two.b.open(&mut two.fabric, 8);
    let (address, rkey) = (place.address, place.rkey);
    for request in [
        WorkRequest::read(1, address, rkey, Buf::with_capacity(8)),
        WorkRequest::fetch_add(1, address, rkey, 1),
        short(1).with_invalidate(rkey),
    ] {
        let refused = two.a.send.post(request).expect_err("unfit");
        assert!(matches!(refused.why, PostError::Unfit { .. }), "{}", refused.why);
    }
}

/// Whoever is not heard for long may have sent more than there are numbers to tell behind from
/// ahead.
#[test]
fn a_connection_goes_on_after_a_long_silence() {
    let setup = Setup { transport: Transport::Unreliable, ..Setup::default() };
    let silent = (1 << 23) + 10;
    let mut two = setup.connected(|_, sending| sending.first = sending.first.add(silent));
    two.b.receives(3, 8);
    (0..3).for_each(|id| two.a.post(short(id)));
    let (_, received) = two.run(3, 3);
    assert!(received.iter().all(|completion| completion.outcome == Ok(Done::Received)));
}

/// Over a device that can't lose, a broken queue pair refused what came as if the connection were a
/// reliable one; nobody had asked.
#[test]
fn a_broken_connection_does_not_answer_over_a_device_that_cannot_lose_either() {
    let setup = Setup { transport: Transport::Unreliable, ..lossless() };
    let mut two = setup.connected(|_, _| {});
    two.fabric.nic(two.b.node).change(two.b.qpn, Change::Error).unwrap();
    (0..3).for_each(|id| two.a.post(short(id)));
    let (sent, _) = two.run(3, 0);
    assert_eq!(outcomes(&sent), [0, 1, 2].map(|id| (id, Ok(Done::Sent))));
    two.run_for(Duration::from_millis(1));
    let (a, b) = two.counters();
    assert_eq!((b.received, b.wrong_state, b.sent, a.received), (3, 3, 0, 0));
}

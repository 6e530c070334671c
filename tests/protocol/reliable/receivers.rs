//! Receivers that are slow: refusals, waiting as they ask, and knowing how much they have room for.

use std::time::Duration;

use doorbell_core::memory::Buf;
use doorbell_core::nic::*;
use doorbell_core::wire::{Imm, RnrTimer};
use doorbell_simulation::Faults;

use crate::reliable::common::{End, Setup, Two, inline, outcomes, short};

const PATIENCE: Duration = Duration::from_micros(640);

fn two(rnr_retries: u8, credits: bool) -> Two {
    Setup::default().connected(|connection, sending| {
        connection.not_ready = RnrTimer::at_least(PATIENCE);
        connection.credits = credits;
        sending.rnr_retries = rnr_retries;
    })
}

#[test]
fn a_receiver_that_never_has_room_is_given_up_on_after_as_many_tries_as_were_asked_for() {
    for retries in [0, 1, 3, 6] {
        let mut two = two(retries, true);
        two.a.post(short(1));
        two.a.post(short(2));
        let (at_a, _) = two.run(2, 0);
        let cause =
            Cause::ReceiverNotReady { tries: retries + 1, wait: RnrTimer::at_least(PATIENCE) };
        let expected = [(1, Err(Failure::Broke(cause))), (2, Err(Failure::Flushed(cause)))];
        assert_eq!(outcomes(&at_a), expected);
        assert_eq!(two.counters().1.rnr_naks_sent, u64::from(retries) + 1);
        // It waited as it was told to, each time, and not for longer than it must.
        let took = two.fabric.now().as_nanos() as u32;
        let least = PATIENCE * u32::from(retries);
        let range = least..least + Duration::from_micros(10) * (u32::from(retries) + 1);
        assert!(range.contains(&Duration::from_nanos(took.into())), "{took} ns");
    }
}

#[test]
fn a_receiver_is_waited_for_as_long_as_it_takes() {
    for credits in [false, true] {
        let mut two = two(7, credits);
        two.a.post(short(1));
        two.run_for(Duration::from_secs(1));
        assert!(two.a.queue.is_empty());
        assert!(two.counters().1.rnr_naks_sent > 1500);
        two.b.receives(1, 10);
        let (at_a, at_b) = two.run(1, 1);
        assert_eq!(outcomes(&at_a), [(1, Ok(Done::Sent))]);
        assert_eq!(outcomes(&at_b), [(0, Ok(Done::Received))]);
    }
}

/// Refusals were no answers once: each time-out on the way counted for good, and a peer that said
/// again and again that it is there was given up on.
#[test]
fn a_receiver_that_says_that_it_is_not_ready_has_answered() {
    let mut setup = Setup::default();
    setup.cable = setup.cable.with_faults(Faults { loss: 0.1, ..Faults::NONE });
    let mut two = setup.connected(|_, _| {});
    two.a.post(short(1));
    two.run_for(Duration::from_secs(2));
    assert!(two.counters().0.timeouts > 50);
    two.b.receives(1, 10);
    let (at_a, _) = two.run(1, 1);
    assert_eq!(outcomes(&at_a), [(1, Ok(Done::Sent))]);
}

#[test]
fn a_receive_that_comes_in_time_is_all_that_is_waited_for() {
    let mut two = two(3, true);
    for id in 0..10 {
        two.a.post(short(id));
        two.run_for(PATIENCE * 3 / 2);
        two.b.receives(1, 10);
        let (at_a, at_b) = two.run(1, 1);
        assert_eq!(outcomes(&at_a), [(id, Ok(Done::Sent))]);
        assert_eq!(at_b.len(), 1);
    }
    // Each message had all its tries anew.
    assert_eq!(two.counters().1.rnr_naks_sent, 20);
}

#[test]
fn the_last_packet_of_a_write_waits_for_its_receive_and_the_others_need_none() {
    let mut two = two(7, true);
    let (region, place) = two.b.open(&mut two.fabric, 5000);
    let data = Memory::Buf(Buf::from(vec![7; 5000]));
    two.a.post(WorkRequest::write(1, place.address, place.rkey, data).with_imm(Imm(5)));
    two.run_for(Duration::from_millis(5));
    let mut written = [0; 5000];
    region.read_at(0, &mut written).unwrap();
    assert_eq!(written.iter().filter(|&&byte| byte == 7).count(), 4096);
    two.b.receives(1, 0);
    let (_, at_b) = two.run(1, 1);
    assert_eq!((at_b[0].outcome, at_b[0].len), (Ok(Done::ReceivedWrite), 5000));
    region.read_at(0, &mut written).unwrap();
    assert_eq!(written, [7; 5000]);
}

/// Sends messages to a receiver that has posted `ahead` receives, and posts another after each
/// message that it has seen. Counts at the receiver.
fn slowly(credits: bool, ahead: u64) -> Counters {
    const MESSAGES: u64 = 60;
    let mut two = two(7, credits);
    two.b.receives(1 + ahead, 10);
    // From the answer to the first on, the sender knows what there is.
    two.a.post(short(100).awaited());
    two.run(1, 1);
    (0..MESSAGES).for_each(|id| two.a.post(short(id)));
    for received in 0..MESSAGES {
        let (limit, Two { fabric, b, .. }) = (Duration::from_secs(1), &mut two);
        let done = fabric.run_until(limit, |_| !b.queue.is_empty());
        assert!(done, "stuck at {received}");
        assert_eq!(two.b.queue.poll().unwrap().outcome, Ok(Done::Received));
        two.run_for(Duration::from_micros(100));
        two.b.receives(1, 10);
    }
    two.run(MESSAGES as usize, 0);
    two.counters().1
}

/// What is sent behind a message that is refused is sent in vain. A sender that knows how many
/// receives there are sends no more than one beyond: to ask.
#[test]
fn with_credits_nothing_is_sent_behind_a_message_that_may_be_refused() {
    for ahead in [1, 4, 10] {
        let (blind, seeing) = (slowly(false, ahead), slowly(true, ahead));
        assert!(blind.out_of_sequence > 100, "{ahead}: {blind:?}");
        assert_eq!(seeing.out_of_sequence, 0, "{ahead}: {seeing:?}");
        // So many are refused as are asked for in vain, and nothing else is sent twice.
        assert!(seeing.rnr_naks_sent <= blind.rnr_naks_sent, "{ahead}: {seeing:?} {blind:?}");
        assert_eq!(seeing.received, 61 + seeing.rnr_naks_sent, "{ahead}: {seeing:?}");
    }
}

/// What was begun before the first answer came was once sent again and again, all of it each time,
/// whatever the receiver said since.
#[test]
fn credits_hold_for_what_is_sent_again_too() {
    const MESSAGES: u64 = 60;
    let mut two = two(7, true);
    two.b.receives(4, 10);
    (0..MESSAGES).for_each(|id| two.a.post(short(id)));
    for _ in 0..MESSAGES {
        two.run_for(PATIENCE);
        assert!(two.b.queue.poll().is_some());
        two.b.receives(1, 10);
    }
    two.run(MESSAGES as usize, 0);
    // Once when nothing was known, and once more, since a refusal does not say how many there are.
    assert!(two.counters().1.out_of_sequence < 2 * MESSAGES, "{:?}", two.counters().1);
}

#[test]
fn with_credits_a_receiver_that_has_answered_once_is_not_overrun() {
    let mut two = two(7, true);
    two.b.receives(1, 10);
    two.a.post(short(0).awaited());
    two.run(1, 1);
    // It has said that nothing is posted: each message asks first, alone.
    for id in 1..30 {
        two.b.receives(3, 10);
        (0..3).for_each(|part| two.a.post(short(3 * id + part)));
        let (at_a, at_b) = two.run(3, 3);
        assert_eq!((at_a.len(), at_b.len()), (3, 3));
    }
    let counters = two.counters().1;
    assert_eq!((counters.rnr_naks_sent, counters.out_of_sequence), (0, 0), "{counters:?}");
}

/// Several queue pairs of each node share a completion queue of a single entry there.
#[test]
fn a_completion_queue_with_no_entry_to_spare_loses_nothing() {
    const PAIRS: usize = 4;
    const MESSAGES: u64 = 10;
    // One for each receive queue, that of the two's own pair included, and one for what is sent.
    let setup = Setup { capacity: PAIRS + 2, ..Setup::default() };
    let mut two = setup.unconnected();
    let Two { fabric, a, b, .. } = &mut two;
    let mut sends = Vec::new();
    for _ in 0..PAIRS {
        let pair = |fabric: &mut doorbell_simulation::Fabric, end: &End| {
            let config = QueuePairConfig {
                send_depth: MESSAGES as usize,
                receive_depth: MESSAGES as usize,
                ..QueuePairConfig::new(end.domain, end.queue_id)
            };
            fabric.nic(end.node).queue_pair(&config).unwrap()
        };
        let (mut from, mut to) = (pair(fabric, a), pair(fabric, b));
        fabric.connect((a.node, from.qpn), (b.node, to.qpn), setup.mtu, |_, _| {});
        for id in 0..MESSAGES {
            let memory = Buf::with_capacity(8).into();
            to.receive.post(ReceiveRequest { id, memory }).unwrap();
            from.send.post(WorkRequest::send(id, inline(&id.to_ne_bytes()))).unwrap();
        }
        from.send.ring();
        sends.push((from, to));
    }
    let mut seen = std::collections::HashMap::new();
    let mut count = 0;
    let all = 2 * PAIRS * MESSAGES as usize;
    let limit = fabric.now() + Duration::from_secs(10);
    while count < all {
        fabric.turn(a.node);
        let step = fabric.now() + Duration::from_micros(50);
        while fabric.step(step).is_some() {}
        assert!(fabric.now() < limit, "{count} of {all}");
        for end in [&mut *a, &mut *b] {
            assert!(end.queue.len() <= setup.capacity);
            while let Some(completion) = end.queue.poll() {
                let next = seen.entry((end.node, completion.qpn)).or_insert(0);
                assert_eq!(completion.id, *next, "each once and in order");
                assert!(completion.outcome.is_ok());
                (*next, count) = (*next + 1, count + 1);
            }
        }
    }
}

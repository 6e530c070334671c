//! Frames that no honest peer sends: random bytes, and frames of a run whose bytes were changed.

use super::host::{Faults, Random, World};
use super::{MILLI, policies};
use crate::frames::policy::Rmpp;
use crate::frames::wire::{Clear, Flags, Frame, Head, Kind, MessageHeader};

#[test]
fn frames_that_nobody_has_sent_change_no_bytes_outside_of_a_place_and_panic_nowhere() {
    for policy in policies() {
        for seed in 0..30 {
            let mut random = Random(seed);
            let mut world = World::new(seed, policy, Faults::NONE);
            world.is_checked = false;
            (0..8).for_each(|tag| world.post(1, tag));
            for tag in 0..16 {
                world.send(0, tag, random.below(20_000) as usize);
            }
            world.pass(MILLI / 20);
            for _ in 0..2000 {
                let mut bytes = match random.below(3) {
                    0 => (0..random.below(80)).map(|_| random.next() as u8).collect(),
                    _ => world.some_frame(&mut random),
                };
                for _ in 0..random.below(4) {
                    let at = random.below(bytes.len().max(1) as u64) as usize;
                    let byte = if random.below(2) == 0 { 0xff } else { random.next() as u8 };
                    bytes.get_mut(at).into_iter().for_each(|it| *it = byte);
                }
                let to = random.below(2) as usize;
                if let Some(frame) = Frame::parse(&bytes) {
                    world.handle(to, &frame);
                }
            }
            world.pass(100 * MILLI);
        }
    }
}

// All that was cleared waited to be sent, and each clear to send was compared with all of it.
#[test]
fn a_receiver_that_clears_frames_without_end_has_few_of_them_wait() {
    let mut world = World::new(1, Rmpp::default().into(), Faults::NONE);
    world.send(0, 7, 4_000_000);
    let sender = &mut world.hosts[0].pair;
    assert!(sender.poll_transmit(world.now).is_some(), "the request to send leaves");
    for turn in 1..=40 {
        let clear = Clear { turn, base: 64 * u32::from(turn), wanted: u64::MAX, memory: None };
        let head = Head { epoch: 0, number: 0, kind: Kind::Clear(clear) };
        world.handle(0, &Frame { sender: 1, name: None, head, data: &[] });
    }
    let sender = &mut world.hosts[0].pair;
    assert_eq!(sender.statistics().malformed, 0);
    let waited = std::iter::from_fn(|| sender.poll_transmit(world.now).map(drop)).count();
    assert!((64..=320).contains(&waited), "{waited} frames have waited");
}

#[test]
fn frames_without_data_that_a_peer_calls_for_are_bounded_while_they_wait() {
    let mut world = World::new(1, Rmpp::default().into(), Faults::NONE);
    world.send(0, 7, 10);
    world.post(1, 7);
    world.pass(10 * MILLI);
    assert_eq!(world.hosts[0].sent, [0], "the message has arrived");
    for _ in 0..5000 {
        // The sender answers each time that it has seen the acknowledgement.
        let head = Head { epoch: 0, number: 0, kind: Kind::Received };
        world.handle(0, &Frame { sender: 1, name: None, head, data: &[] });
    }
    let sender = &mut world.hosts[0].pair;
    let waited = std::iter::from_fn(|| sender.poll_transmit(world.now).map(drop)).count();
    assert_eq!(waited, 1024);
}

#[test]
fn messages_whose_senders_clean_up_nothing_are_forgotten_beyond_a_bound() {
    let mut world = World::new(1, Rmpp::default().into(), Faults::NONE);
    world.is_checked = false;
    let header = MessageHeader::new(10, 7, 1400, 1).expect("one frame");
    let flags = Flags { windows: true, end: true, ..Flags::default() };
    for number in 0..2000 {
        world.post(1, 7);
        let head = Head { epoch: 0, number, kind: Kind::First(header, flags) };
        world.handle(1, &Frame { sender: 0, name: None, head, data: &[1; 10] });
    }
    assert_eq!(world.hosts[1].received.len(), 2000);
    assert_eq!(world.hosts[1].pair.statistics().reclaimed, 2000 - 1024);
}

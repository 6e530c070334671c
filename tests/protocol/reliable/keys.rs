//! What peers and programs may touch: keys, rights, bounds, domains, and taking them back.

use std::collections::HashSet;
use std::time::Duration;

use doorbell_core::memory::{Buf, Region};
use doorbell_core::nic::*;
use doorbell_core::wire::{Imm, Rkey};

use crate::reliable::common::{Setup, Two, at, content, inline, outcomes, pattern};

#[test]
fn keys_and_addresses_differ_from_seed_to_seed_and_from_each_other() {
    let mut seen = HashSet::new();
    for number in 0..50 {
        let mut nic = Nic::new(Config::default(), Seed::from_number(number)).unwrap();
        let domain = nic.domain();
        for _ in 0..10 {
            let got = nic.register(domain, Region::new(100), Rights::NONE).unwrap();
            assert_ne!(got.lkey.0, got.rkey.0);
            // 20 of the 32 bits are random: a few of the thousand may coincide.
            seen.extend([u64::from(got.lkey.0), u64::from(got.rkey.0)]);
            assert!(seen.insert(got.address.0), "addresses have 35 random bits");
            assert!(got.address.0.is_multiple_of(4096) && got.address.0 >> 47 == 0);
        }
    }
    assert!(seen.len() > 1490, "{} different numbers", seen.len());
    let first = |number| {
        let mut nic = Nic::new(Config::default(), Seed::from_number(number)).unwrap();
        let domain = nic.domain();
        nic.register(domain, Region::new(1), Rights::NONE).unwrap()
    };
    assert_eq!(first(3), first(3), "and the same seed gives the same");
}

/// Attempts one write, which must be refused, and says why the other side refused it.
fn refused_write(
    rights: Rights,
    len: usize,
    change: impl Fn(&Registration) -> (u64, u32, usize),
) -> Cause {
    let mut two = Two::new();
    let region = Region::from_bytes(&pattern(len));
    let nic = two.fabric.nic(two.b.node);
    let place = nic.register(two.b.domain, region.clone(), rights).unwrap();
    let (offset, rkey, written) = change(&place);
    let data = Memory::Buf(Buf::from(vec![0xEE; written]));
    let address = doorbell_core::wire::RemoteAddr(place.address.0.wrapping_add(offset));
    two.a.post(WorkRequest::write(1, address, Rkey(rkey), data));
    let (at_a, _) = two.run(1, 0);
    assert_eq!(outcomes(&at_a), [(1, Err(Failure::Broke(Cause::PeerAccess)))]);
    assert_eq!(content(&region), pattern(len), "nothing was written");
    match two.fabric.nic(two.b.node).event() {
        Some(Event::Broken(_, cause)) => cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_write_without_the_right_key_place_or_right_is_refused_whole() {
    let (write, local) = (Rights::REMOTE_WRITE, Rights::LOCAL_WRITE);
    let key = |place: &Registration| place.rkey.0;
    for bit in 0..32 {
        let cause = refused_write(write, 100, |place| (0, key(place) ^ 1 << bit, 10));
        assert!(matches!(cause, Cause::Access(KeyError::Unknown(_))), "bit {bit}: {cause}");
    }
    let cause = refused_write(write, 100, |place| (0, place.lkey.0, 10));
    assert!(matches!(cause, Cause::Access(KeyError::Unknown(_))), "a program's own key: {cause}");
    let others = local | Rights::REMOTE_READ | Rights::REMOTE_ATOMIC;
    let cause = refused_write(others, 100, |place| (0, key(place), 10));
    assert!(matches!(cause, Cause::Access(KeyError::Rights(_))), "{cause}");
    for (offset, len) in [(100, 1), (0, 101), (99, 2), (u64::MAX, 1), (u64::MAX, 2), (1 << 47, 1)] {
        let cause = refused_write(write, 100, |place| (offset, key(place), len));
        assert!(matches!(cause, Cause::Access(KeyError::Bounds(_))), "{offset} {len}: {cause}");
    }
    // The last of several packets would be one byte too far.
    let cause = refused_write(write, 3000, |place| (0, key(place), 3001));
    assert!(matches!(cause, Cause::Access(KeyError::Bounds(_))), "{cause}");
}

#[test]
fn a_key_of_another_domain_is_none() {
    let mut two = Two::new();
    let nic = two.fabric.nic(two.b.node);
    let other = nic.domain();
    let region = Region::new(100);
    let place = nic.register(other, region.clone(), Rights::REMOTE_WRITE).unwrap();
    two.a.post(WorkRequest::write(1, place.address, place.rkey, inline(b"no")));
    two.run(1, 0);
    let cause = Cause::Access(KeyError::Domain(place.rkey.0));
    assert_eq!(two.fabric.nic(two.b.node).event(), Some(Event::Broken(two.b.qpn, cause)));
    assert_eq!(content(&region), [0; 100]);
}

#[test]
fn a_write_of_nothing_needs_no_key() {
    let mut two = Two::new();
    let nowhere = doorbell_core::wire::RemoteAddr(u64::MAX);
    two.b.receives(1, 0);
    two.a.post(WorkRequest::write(1, nowhere, Rkey(7), Memory::None));
    two.a.post(WorkRequest::write(2, nowhere, Rkey(7), Memory::None).with_imm(Imm(9)));
    let (at_a, at_b) = two.run(2, 1);
    assert_eq!(outcomes(&at_a), [(1, Ok(Done::Written)), (2, Ok(Done::Written))]);
    assert_eq!((at_b[0].outcome, at_b[0].len), (Ok(Done::ReceivedWrite), 0));
    assert_eq!(at_b[0].attached.imm(), Some(Imm(9)));
}

/// Revokes a key when the first packets of a long write are there. Gives what completed where.
fn revoked_midway(imm: bool) -> (Vec<Completion>, Vec<Completion>) {
    let mut two = Setup::default().connected(|_, sending| sending.window = 4);
    two.b.receives(2, 10);
    let (region, place) = two.b.open(&mut two.fabric, 40_000);
    let data = Memory::Buf(Buf::from(vec![0xEE; 40_000]));
    let request = WorkRequest::write(1, place.address, place.rkey, data);
    two.a.post(if imm { request.with_imm(Imm(1)) } else { request });
    let there = |region: &Region| content(region).iter().filter(|&&byte| byte == 0xEE).count();
    let limit = Duration::from_millis(1);
    // All but the last few packets, so that it may be the last that finds the key gone.
    let until = if imm { 39 * 1024 } else { 9 * 1024 };
    assert!(two.fabric.run_until(limit, |_| there(&region) >= until));
    two.fabric.nic(two.b.node).deregister(place.lkey).unwrap();
    let before = there(&region);
    let (at_a, mut at_b) = two.run(1, 2);
    at_b.extend(two.b.poll());
    assert_eq!(there(&region), before, "nothing is written any more");
    let cause = Cause::Access(KeyError::Unknown(place.rkey.0));
    assert_eq!(two.fabric.nic(two.b.node).event(), Some(Event::Broken(two.b.qpn, cause)));
    assert!(at_b.iter().all(|c| c.outcome == Err(Failure::Flushed(cause))));
    (at_a, at_b)
}

#[test]
fn a_key_taken_back_in_the_middle_of_a_message_ends_that() {
    let (at_a, at_b) = revoked_midway(false);
    assert_eq!(outcomes(&at_a), [(1, Err(Failure::Broke(Cause::PeerAccess)))]);
    assert_eq!(at_b.len(), 2);
}

/// The receive that the last packet was to complete was once taken, and then forgotten.
#[test]
fn a_receive_survives_the_refusal_of_the_packet_that_was_to_complete_it() {
    let (at_a, at_b) = revoked_midway(true);
    assert_eq!(outcomes(&at_a), [(1, Err(Failure::Broke(Cause::PeerAccess)))]);
    assert_eq!(at_b.iter().map(|completion| completion.id).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn a_send_from_memory_that_it_may_not_use_fails_alone_and_names_the_segment() {
    let mut two = Two::new();
    two.b.receives(3, 100);
    let (_, good) = two.a.open(&mut two.fabric, 64);
    let (_, gone) = two.a.open(&mut two.fabric, 64);
    two.fabric.nic(two.a.node).deregister(gone.lkey).unwrap();
    two.a.post(WorkRequest::send(1, good.segment(0, 64)));
    let list: Box<[Segment]> = [good.segment(0, 8), gone.segment(0, 8)].into();
    two.a.post(WorkRequest::send(2, list));
    two.a.post(WorkRequest::send(3, good.segment(0, 64)));
    let (at_a, at_b) = two.run(3, 1);
    let why = KeyError::Unknown(gone.lkey.0);
    let cause = Cause::LocalProtection { segment: 1, why };
    let (broke, flushed) = (Err(Failure::Broke(cause)), Err(Failure::Flushed(cause)));
    assert_eq!(outcomes(&at_a), [(1, Ok(Done::Sent)), (2, broke), (3, flushed)]);
    assert_eq!(outcomes(&at_b), [(0, Ok(Done::Received))]);
}

#[test]
fn a_receive_into_memory_that_it_may_not_use_is_to_blame_itself() {
    let mut two = Two::new();
    let region = Region::from_bytes(&pattern(100));
    let nic = two.fabric.nic(two.b.node);
    let place = nic.register(two.b.domain, region.clone(), Rights::REMOTE_WRITE).unwrap();
    two.b.receive(5, place.segment(0, 100));
    two.b.receive(6, Buf::with_capacity(100));
    two.a.post(WorkRequest::send(1, inline(b"hello")));
    let (at_a, at_b) = two.run(1, 2);
    assert_eq!(outcomes(&at_a), [(1, Err(Failure::Broke(Cause::PeerOperation)))]);
    let why = KeyError::Rights(place.lkey.0);
    let cause = Cause::LocalProtection { segment: 0, why };
    let (broke, flushed) = (Err(Failure::Broke(cause)), Err(Failure::Flushed(cause)));
    assert_eq!(outcomes(&at_b), [(5, broke), (6, flushed)]);
    assert_eq!(content(&region), pattern(100));
}

#[test]
fn a_message_longer_than_its_receive_is_refused_on_both_sides() {
    for (room, len) in [(0, 1), (9, 10), (1024, 1025), (2000, 5000)] {
        let mut two = Two::new();
        two.b.receives(2, room);
        two.a.post(WorkRequest::send(1, Memory::Buf(Buf::from(pattern(len)))));
        let (at_a, at_b) = two.run(1, 2);
        assert_eq!(outcomes(&at_a), [(1, Err(Failure::Broke(Cause::PeerInvalidRequest)))]);
        let cause = Cause::TooLong { room: room as u32 };
        let expected = [(0, Err(Failure::Broke(cause))), (1, Err(Failure::Flushed(cause)))];
        assert_eq!(outcomes(&at_b), expected);
    }
}

#[test]
fn a_segment_beyond_its_registration_is_out_of_bounds_wherever_it_ends() {
    for (offset, len) in [(0, 65), (64, 1), (u64::MAX, 1), (u64::MAX, 0), (65, 0)] {
        let mut two = Two::new();
        let (_, place) = at_a(&mut two);
        assert_eq!(at(&place, 0), place.address);
        two.a.post(WorkRequest::send(1, place.segment(offset, len)));
        let (found, _) = two.run(1, 0);
        let cause = Cause::LocalProtection { segment: 0, why: KeyError::Bounds(place.lkey.0) };
        assert_eq!(outcomes(&found), [(1, Err(Failure::Broke(cause)))], "{offset} {len}");
    }
}

fn at_a(two: &mut Two) -> (Region, Registration) {
    two.a.open(&mut two.fabric, 64)
}

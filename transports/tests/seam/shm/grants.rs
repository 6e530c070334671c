//! Memory that a peer maps.

use doorbell_core::encap::PathId;
use doorbell_transports::shm::Shm;
use doorbell_transports::{Device, Grant, GrantError, SharedMemory};

use crate::shm::common::*;
use crate::shm::processes::{finish, start};

fn take(device: &mut Shm) -> Grant {
    let mut grant = None;
    until(|| {
        grant = device.granted();
        grant.is_some()
    });
    grant.expect("a grant")
}

#[test]
fn granted_memory_is_written_by_either_side_and_seen_by_the_other() {
    let [(mut a, to_b), (mut b, to_a)] = two();
    for turned in [false, true] {
        let (granter, link, taker, from) = match turned {
            false => (&mut a, to_b, &mut b, to_a),
            true => (&mut b, to_a, &mut a, to_b),
        };
        let memory = SharedMemory::new(10_001).expect("memory");
        granter.grant(link, 42, &memory).expect("granted");
        let grant = take(taker);
        assert_eq!((grant.from, grant.tag, grant.memory.len()), (from, 42, 10_001));
        let (here, there) = (memory.region(), &grant.memory);
        here.write_at(9_990, b"to the end.").expect("in bounds");
        let mut read = [0; 11];
        there.read_at(9_990, &mut read).expect("in bounds");
        assert_eq!(&read, b"to the end.");
        there.store(8, 5).expect("a word");
        assert_eq!(here.fetch_add(8, 1), Ok(5));
        assert_eq!(there.compare_swap(8, 6, 7), Ok(6));
        assert_eq!(here.load(8), Ok(7));
        assert!(there.write_at(10_000, b"ab").is_err());
        assert!(grant.memory.try_private().is_err());
    }
}

#[test]
fn a_grant_wakes_who_sleeps_and_outlives_its_granter() {
    let [(mut a, to_b), (mut b, _)] = two();
    let mut heard = Heard::default();
    b.arm(None).expect("armed");
    assert_eq!(turn(&mut b, &mut heard), 0);
    let memory = SharedMemory::new(4096).expect("memory");
    memory.region().store(0, 99).expect("a word");
    a.grant(to_b, 1, &memory).expect("granted");
    sleep(&b);
    b.disarm();
    let grant = b.granted().expect("it woke us");
    drop((a, memory));
    until(|| {
        turn(&mut b, &mut heard);
        !heard.gone.is_empty()
    });
    assert_eq!(grant.memory.load(0), Ok(99));
}

#[test]
fn pieces_of_memory_take_one_descriptor_and_are_not_granted_alone() {
    let [(mut a, to_b), _] = two();
    let pieces = SharedMemory::reserve_pieces(8192, 3).expect("memory");
    for (number, piece) in (0..).zip(&pieces) {
        assert_eq!(piece.len(), 8192);
        piece.provide(4096..8192).expect("the machine has it");
        assert_eq!(piece.region().load(8184), Ok(0), "it is nobody else's");
        piece.region().store(8184, number + 1).expect("a word");
        assert!(piece.provide(0..8193).is_err(), "it is the next one's");
        let refused = a.grant(to_b, 1, piece).expect_err("the peer would get all of them");
        assert!(matches!(refused, GrantError::Piece), "{refused}");
    }
    let found: Vec<_> = pieces.iter().map(|piece| piece.region().load(8184)).collect();
    assert_eq!(found, [Ok(1), Ok(2), Ok(3)]);
    assert!(SharedMemory::reserve_pieces(100, 3).is_err(), "two would share a page");
}

#[test]
fn memory_of_no_bytes_is_granted_like_any_other() {
    let [(mut a, to_b), (mut b, _)] = two();
    let memory = SharedMemory::new(0).expect("no memory");
    a.grant(to_b, 3, &memory).expect("granted");
    assert!(take(&mut b).memory.is_empty());
}

#[test]
fn no_more_than_64_grants_wait_and_taking_one_makes_room() {
    let [(mut a, to_b), (mut b, _)] = two();
    let memory = SharedMemory::new(64).expect("memory");
    for tag in 0..64 {
        a.grant(to_b, tag, &memory).expect("room");
        // Taken in, by the device and not by its program.
        b.reach(a.address()).expect("a way");
    }
    assert!(matches!(a.grant(to_b, 64, &memory), Err(GrantError::Waiting { most: 64 })));
    for tag in 0..64 {
        assert_eq!(take(&mut b).tag, tag);
    }
    assert!(b.granted().is_none());
    a.grant(to_b, 65, &memory).expect("room again");
    assert_eq!(take(&mut b).tag, 65);
}

#[test]
fn who_is_gone_is_granted_nothing() {
    let [(mut a, to_b), (b, _)] = two();
    drop(b);
    let memory = SharedMemory::new(64).expect("memory");
    for link in [to_b, PathId(1 << 20)] {
        let refused = a.grant(link, 1, &memory);
        assert!(matches!(refused, Err(GrantError::NoLink(_))), "{refused:?}");
    }
}

#[test]
fn more_memory_than_there_is_is_refused() {
    assert!(SharedMemory::new(1 << 50).is_err());
}

#[test]
fn a_process_that_links_and_maps_and_leaves_is_as_it_was_before() {
    let mut device = Shm::join(&name("beside")).expect("a name");
    let child = start("count", device.address());
    let mut heard = Heard::default();
    until(|| {
        turn(&mut device, &mut heard);
        !heard.gone.is_empty()
    });
    finish(child);
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("proc").count()
}

fn mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("proc");
    maps.lines().filter(|line| line.contains("memfd:doorbell")).count()
}

/// Counts what this process has open and mapped, before and after all that a device does.
pub fn count(device: &mut Shm, link: PathId) {
    let used = |device: &mut Shm| {
        let [(mut a, to_b), (mut b, _)] = two();
        let memory = SharedMemory::new(1 << 20).expect("memory");
        a.grant(to_b, 1, &memory).expect("granted");
        let grant = take(&mut b);
        // One left waiting, one call unanswered, one link to oneself.
        a.grant(to_b, 2, &memory).expect("granted");
        send(&mut a, to_b, 1, b"something");
        let mut heard = Heard::default();
        until(|| turn(&mut b, &mut heard) > 0);
        let own = b.address().clone();
        reach_with(&mut b, &own, || {}).expect("a link");
        let stranger = Shm::join(&name("stranger")).expect("a name");
        assert!(matches!(b.reach(stranger.address()), Ok(None)));
        assert!(descriptors() > 10 && mappings() > 4);
        drop(grant);
        turn(device, &mut heard);
    };
    let before = (descriptors(), mappings());
    for _ in 0..3 {
        used(device);
        assert_eq!((descriptors(), mappings()), before);
    }
    send(device, link, 1, b"done");
}

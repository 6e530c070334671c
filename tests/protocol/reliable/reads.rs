//! Reads, atomic operations, keys taken back by peers, and metadata, between two NICs or many.

use std::time::Duration;

use doorbell_core::encap::Version;
use doorbell_core::memory::{Buf, Region};
use doorbell_core::nic::*;
use doorbell_core::pcap::Reader;
use doorbell_core::wire::{Metadata, PathMtu, RemoteAddr, Rkey};
use doorbell_simulation::{Bandwidth, Fabric, Faults, LinkConfig};

use crate::reliable::common::{
    End, Setup, Two, at, bytes, content, inline, outcomes, pattern, short,
};

fn troubled(seed: u64) -> Setup {
    let faults = Faults {
        loss: 0.05,
        duplication: 0.05,
        reordering: 0.05,
        corruption: 0.02,
        ..Faults::NONE
    };
    let cable = LinkConfig { mtu: 9000, ..LinkConfig::default() }.with_faults(faults);
    Setup { seed, cable, ..Setup::default() }
}

fn lossless() -> Setup {
    let config = Config { lossless: true, queue_pairs: 16, registrations: 16, ..Config::default() };
    Setup { config, ..Setup::default() }
}

/// A registration of `bytes` that peers may do everything with.
fn hold(two: &mut Two, bytes: &[u8]) -> (Region, Registration) {
    let (region, place) = two.b.open(&mut two.fabric, bytes.len());
    region.write_at(0, bytes).unwrap();
    (region, place)
}

#[test]
fn reads_of_every_length_bring_what_is_there_into_every_kind_of_memory() {
    for setup in [Setup::default(), troubled(7), lossless()] {
        for mtu in PathMtu::ALL {
            let mut two = Setup { mtu, ..setup }.connected(|_, _| {});
            let held = pattern(5 * mtu.bytes() + 9);
            let (_, place) = hold(&mut two, &held);
            let (own, mine) = two.a.open(&mut two.fabric, held.len() + 3);
            let m = mtu.bytes();
            for (id, len) in [0, 1, 3, 8, m - 1, m, m + 1, 3 * m, 5 * m + 3].into_iter().enumerate()
            {
                let (id, offset) = (id as u64, len % 5);
                let range = offset..offset + len;
                let from = at(&place, offset as u64);
                let parts = [len / 3, 0, len - len / 3].map(|len| len as u32);
                let list = Box::new([
                    mine.segment(0, parts[0]),
                    mine.segment(1, parts[1]),
                    mine.segment(parts[0].into(), parts[2]),
                ]) as Box<[Segment]>;
                let segment = mine.segment(3, len as u32);
                for into in [Buf::with_capacity(len).into(), Memory::Segment(segment), list.into()]
                {
                    own.write_at(0, &vec![0xEE; held.len() + 3]).unwrap();
                    let at_own = if let Memory::Segment(_) = into { 3 } else { 0 };
                    let in_buf = matches!(into, Memory::Buf(_));
                    two.a.post(WorkRequest::read(id, from, place.rkey, into));
                    let (done, _) = two.run(1, 0);
                    assert_eq!(outcomes(&done), [(id, Ok(Done::Read))]);
                    assert_eq!(done[0].len as usize, len);
                    if in_buf {
                        assert_eq!(bytes(&done[0]), &held[range.clone()]);
                    } else {
                        let now = content(&own);
                        assert_eq!(now[at_own..][..len], held[range.clone()]);
                        assert!(now[at_own + len..].iter().all(|&byte| byte == 0xEE));
                    }
                }
            }
        }
    }
}

#[test]
fn a_read_sees_the_writes_before_it() {
    for setup in [Setup::default(), troubled(3), lossless()] {
        let mut two = setup.connected(|_, _| {});
        let (_, place) = hold(&mut two, &[0; 3000]);
        for id in 0..50u8 {
            let data = Memory::Buf(Buf::from(vec![id; 3000]));
            let write = WorkRequest::write(0, place.address, place.rkey, data).unsignalled();
            two.a.send.post(write).unwrap();
            let into = Buf::with_capacity(3000);
            // The next write must not be seen, and so waits for the read.
            two.a.post(WorkRequest::read(id.into(), place.address, place.rkey, into));
            let (done, _) = two.run(1, 0);
            assert_eq!(bytes(&done[0]), vec![id; 3000]);
        }
    }
}

/// A read of several packets takes as many numbers: what came behind one was once taken for a
/// packet of a forgotten connection, and the connection broken for it.
#[test]
fn long_reads_behind_a_send_that_waits_for_a_receive_wait_with_it() {
    for setup in [Setup::default(), lossless()] {
        let mut two = setup.connected(|_, _| {});
        let held = pattern(4 * setup.mtu.bytes());
        let (_, place) = hold(&mut two, &held);
        two.a.post(short(0));
        for id in 1..4 {
            let into = Buf::with_capacity(held.len());
            two.a.post(WorkRequest::read(id, place.address, place.rkey, into));
        }
        two.a.post(short(4));
        two.run_for(Duration::from_micros(50));
        let counters = *two.fabric.nic(two.b.node).counters();
        assert!(counters.out_of_sequence >= 3, "{counters:?}");
        two.b.receives(2, 8);
        let (done, received) = two.run(5, 2);
        let expected = [Done::Sent, Done::Read, Done::Read, Done::Read, Done::Sent];
        assert_eq!(done.iter().map(|c| c.outcome).collect::<Vec<_>>(), expected.map(Ok));
        assert!(done[1..4].iter().all(|read| bytes(read) == held));
        assert_eq!(received.len(), 2);
    }
}

#[test]
fn everything_is_done_once_and_in_order_whatever_the_network_does() {
    for seed in 0..40 {
        let mut two = troubled(seed).connected(|connection, sending| {
            sending.reads = 1 + (seed % 5) as u8;
            connection.reads = sending.reads;
        });
        let held = pattern(10_000);
        let (_, library) = hold(&mut two, &held);
        let (words, counter) = hold(&mut two, &[0; 16]);
        two.b.receives(12, 100);
        for id in 0..12u64 {
            let len = 1 + (id as usize * 977 + seed as usize * 131) % 5000;
            let from = at(&library, id * 7);
            let into = Buf::with_capacity(len);
            two.a.post(WorkRequest::read(4 * id, from, library.rkey, into));
            two.a.post(WorkRequest::fetch_add(4 * id + 1, counter.address, counter.rkey, id + 1));
            let (second, expected) = (at(&counter, 8), id * 10);
            let swap = WorkRequest::compare_swap(
                4 * id + 2,
                second,
                counter.rkey,
                expected,
                expected + 10,
            );
            two.a.post(swap);
            two.a.post(short(4 * id + 3));
        }
        let (done, received) = two.run(48, 12);
        assert_eq!(received.len(), 12);
        let mut sum = 0;
        for (index, completion) in done.iter().enumerate() {
            let (id, round) = (index as u64, index as u64 / 4);
            assert_eq!(completion.id, id);
            match index % 4 {
                0 => {
                    let len = completion.len as usize;
                    assert_eq!(bytes(completion), &held[round as usize * 7..][..len]);
                }
                1 => {
                    assert_eq!(completion.outcome, Ok(Done::Atomic { before: sum }));
                    sum += round + 1;
                }
                2 => assert_eq!(completion.outcome, Ok(Done::Atomic { before: round * 10 })),
                _ => assert_eq!(completion.outcome, Ok(Done::Sent)),
            }
        }
        assert_eq!((words.load(0), words.load(8)), (Ok(78), Ok(120)));
    }
}

const ADDERS: usize = 16;

/// Sixteen clients of one node, each with a queue pair there and a key to the node's memory.
fn clients(fabric: &mut Fabric, region: &Region) -> Vec<(End, Registration)> {
    let switch = fabric.network.switch(doorbell_simulation::SwitchConfig::default());
    let faults = Faults { loss: 0.05, duplication: 0.05, reordering: 0.05, ..Faults::NONE };
    let cable = LinkConfig::default().with_faults(faults);
    let nodes: Vec<usize> = (0..=ADDERS).map(|_| fabric.node()).collect();
    for &node in &nodes {
        let station = fabric.station(node);
        fabric.network.link(station, switch, cable);
    }
    let connected = nodes[1..].iter().map(|&node| {
        let (client, server) = (End::new(fabric, node, 64, 64), End::new(fabric, nodes[0], 4, 16));
        let (ours, theirs) = ((node, client.qpn), (nodes[0], server.qpn));
        fabric.connect(ours, theirs, PathMtu::Mtu1024, |_, _| {});
        let nic = fabric.nic(nodes[0]);
        let place = nic.register(server.domain, region.clone(), Rights::REMOTE).unwrap();
        (client, place)
    });
    connected.collect()
}

#[test]
fn additions_of_sixteen_nics_to_one_word_sum_exactly_under_loss() {
    const EACH: u64 = 60;
    for seed in 0..4 {
        let config = Config { queue_pairs: 32, registrations: 32, ..Config::default() };
        let mut fabric = Fabric::new(seed, Version::V1, config);
        let region = Region::new(8);
        let mut clients = clients(&mut fabric, &region);
        for (index, (client, place)) in clients.iter_mut().enumerate() {
            for id in 0..EACH {
                let value = 1 + index as u64 * 1000;
                client.post(WorkRequest::fetch_add(id, place.address, place.rkey, value));
            }
        }
        let mut seen = Vec::new();
        let done = fabric.run_until(Duration::from_secs(20), |_| {
            for completion in clients.iter_mut().flat_map(|(client, _)| client.poll()) {
                match completion.outcome {
                    Ok(Done::Atomic { before }) => seen.push(before),
                    other => panic!("{other:?}"),
                }
            }
            seen.len() == ADDERS * EACH as usize
        });
        assert!(done, "{} of {}", seen.len(), ADDERS * EACH as usize);
        let sum: u64 = (0..ADDERS as u64).map(|index| EACH * (1 + index * 1000)).sum();
        assert_eq!(region.load(0), Ok(sum));
        // Each found the word as some other left it: no value twice.
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), ADDERS * EACH as usize);
    }
}

/// A counter kept by whoever swaps first, as programs without additions keep one.
#[test]
fn swaps_of_sixteen_nics_take_place_one_at_a_time_under_loss() {
    const EACH: u64 = 8;
    let config = Config { queue_pairs: 32, registrations: 32, ..Config::default() };
    let mut fabric = Fabric::new(9, Version::V2Ipv6, config);
    let region = Region::new(8);
    let mut clients = clients(&mut fabric, &region);
    let try_it = |client: &mut End, place: &Registration, expected: u64| {
        let (address, rkey) = (place.address, place.rkey);
        client.post(WorkRequest::compare_swap(expected, address, rkey, expected, expected + 1));
    };
    clients.iter_mut().for_each(|(client, place)| try_it(client, place, 0));
    let mut left = vec![EACH; ADDERS];
    let done = fabric.run_until(Duration::from_secs(60), |_| {
        for ((client, place), left) in clients.iter_mut().zip(&mut left) {
            for completion in client.poll() {
                let Ok(Done::Atomic { before }) = completion.outcome else {
                    panic!("{completion:?}")
                };
                let swapped = before == completion.id;
                *left -= u64::from(swapped);
                if *left > 0 {
                    try_it(client, place, before + u64::from(swapped));
                }
            }
        }
        left.iter().all(|&left| left == 0)
    });
    assert!(done, "left: {left:?}");
    assert_eq!(region.load(0), Ok(ADDERS as u64 * EACH));
}

/// No more are under way than was agreed on, and all are done in the end.
#[test]
fn reads_and_atomics_wait_for_their_turn() {
    for most in [1, 2, 5] {
        let mut two = Setup::default().connected(|connection, sending| {
            (connection.reads, sending.reads) = (most, most);
        });
        let (_, place) = hold(&mut two, &[0; 64]);
        for id in 0..20 {
            let (address, rkey) = (place.address, place.rkey);
            two.a.post(match id % 2 {
                0 => WorkRequest::read(id, address, rkey, Buf::with_capacity(64)),
                _ => WorkRequest::fetch_add(id, address, rkey, 1),
            });
        }
        two.fabric.turn(two.a.node);
        assert_eq!(two.counters().0.sent, most.into());
        let (done, _) = two.run(20, 0);
        assert!(done.iter().all(|completion| completion.outcome.is_ok()), "{done:?}");
    }
}

#[test]
fn a_read_of_a_peer_that_takes_none_is_an_invalid_request() {
    let mut two = Setup::default().connected(|connection, _| connection.reads = 0);
    let (_, place) = hold(&mut two, &[0; 64]);
    two.a.post(WorkRequest::read(1, place.address, place.rkey, Buf::with_capacity(64)));
    let (done, _) = two.run(1, 0);
    assert_eq!(outcomes(&done), [(1, Err(Failure::Broke(Cause::PeerInvalidRequest)))]);
}

#[test]
fn a_connection_without_reads_breaks_at_the_first() {
    let mut two = Setup::default().connected(|_, sending| sending.reads = 0);
    let (_, place) = hold(&mut two, &[0; 64]);
    two.b.receives(1, 10);
    two.a.post(short(1));
    two.a.post(WorkRequest::fetch_add(2, place.address, place.rkey, 1));
    let (done, _) = two.run(2, 1);
    let broke = Err(Failure::Broke(Cause::NoReads));
    assert_eq!(outcomes(&done), [(1, Ok(Done::Sent)), (2, broke)]);
}

/// Attempts one request, which must be refused, and says why the other side refused it.
fn refused(rights: Rights, request: impl Fn(&Registration) -> WorkRequest) -> (Failure, Cause) {
    let mut two = Two::new();
    let region = Region::from_bytes(&[1; 100]);
    let place = two.fabric.nic(two.b.node).register(two.b.domain, region.clone(), rights).unwrap();
    two.a.post(request(&place));
    let (done, _) = two.run(1, 0);
    assert_eq!(content(&region), [1; 100], "nothing was changed");
    let told = done[0].outcome.expect_err("a refusal");
    match two.fabric.nic(two.b.node).event() {
        Some(Event::Broken(_, cause)) => (told, cause),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_read_or_an_atomic_without_the_right_key_place_or_right_is_refused() {
    let read = |place: &Registration, offset, len| {
        let address = RemoteAddr(place.address.0.wrapping_add(offset));
        WorkRequest::read(1, address, place.rkey, Buf::with_capacity(len))
    };
    let add = |place: &Registration, offset| {
        let address = RemoteAddr(place.address.0.wrapping_add(offset));
        WorkRequest::fetch_add(1, address, place.rkey, 5)
    };
    let told = Failure::Broke(Cause::PeerAccess);
    let (may_read, may_add) = (Rights::REMOTE_READ, Rights::REMOTE_ATOMIC);
    let others = Rights::LOCAL_WRITE | Rights::REMOTE_WRITE;
    for cause in [
        refused(others | may_add, |place| read(place, 0, 10)),
        refused(others | may_read, |place| add(place, 0)),
    ] {
        assert!(matches!(cause, (why, Cause::Access(KeyError::Rights(_))) if why == told));
    }
    for cause in [
        refused(may_read, |place| read(place, 91, 10)),
        refused(may_read, |place| read(place, u64::MAX, 2)),
        refused(may_read, |place| read(place, 1 << 47, 1)),
        refused(may_add, |place| add(place, 96)),
        refused(may_add, |place| add(place, u64::MAX - 7)),
    ] {
        assert!(matches!(cause, (why, Cause::Access(KeyError::Bounds(_))) if why == told));
    }
    for offset in [1, 4, 7] {
        let cause = refused(may_add, |place| add(place, offset));
        assert_eq!(cause, (Failure::Broke(Cause::PeerInvalidRequest), Cause::InvalidRequest));
    }
    let unknown = refused(may_read, |place| {
        WorkRequest::read(1, place.address, Rkey(place.lkey.0), Buf::with_capacity(1))
    });
    assert!(matches!(unknown, (why, Cause::Access(KeyError::Unknown(_))) if why == told));
}

#[test]
fn a_key_taken_back_while_a_read_is_answered_ends_that() {
    for setup in [Setup::default(), lossless()] {
        let mut two = setup.connected(|_, _| {});
        // One packet a turn, so that there is a middle.
        two.fabric.room = 1;
        let (_, place) = hold(&mut two, &pattern(60_000));
        let (own, mine) = two.a.open(&mut two.fabric, 60_000);
        let into = Memory::Segment(mine.segment(0, 60_000));
        two.a.post(WorkRequest::read(1, place.address, place.rkey, into));
        two.a.post(WorkRequest::read(2, place.address, place.rkey, Buf::with_capacity(9)));
        let there = |own: &Region| own.load(20_000).unwrap() != 0;
        assert!(two.fabric.run_until(Duration::from_millis(5), |_| there(&own)));
        two.fabric.nic(two.b.node).deregister(place.lkey).unwrap();
        let (done, _) = two.run(2, 0);
        let broke = Err(Failure::Broke(Cause::PeerAccess));
        assert_eq!(outcomes(&done), [(1, broke), (2, Err(Failure::Flushed(Cause::PeerAccess)))]);
        assert_eq!(own.load(59_992), Ok(0), "not all of it came");
        let why = Cause::Access(KeyError::Unknown(place.rkey.0));
        assert_eq!(two.fabric.nic(two.b.node).event(), Some(Event::Broken(two.b.qpn, why)));
    }
}

#[test]
fn a_read_into_memory_that_may_not_be_written_breaks_its_own_side() {
    let mut two = Two::new();
    let (_, place) = hold(&mut two, &[7; 64]);
    let own = Region::new(64);
    let nic = two.fabric.nic(two.a.node);
    let mine = nic.register(two.a.domain, own.clone(), Rights::NONE).unwrap();
    let into = Memory::Segment(mine.segment(0, 64));
    two.a.post(WorkRequest::read(1, place.address, place.rkey, into));
    let (done, _) = two.run(1, 0);
    let why = KeyError::Rights(mine.lkey.0);
    let cause = Cause::LocalProtection { segment: 0, why };
    assert_eq!(outcomes(&done), [(1, Err(Failure::Broke(cause)))]);
    assert_eq!(content(&own), [0; 64]);
}

#[test]
fn a_send_takes_a_key_back_and_a_new_one_may_be_given() {
    for setup in [Setup::default(), troubled(5), lossless()] {
        let mut two = setup.connected(|_, _| {});
        two.b.receives(2, 5000);
        let (region, place) = two.b.open(&mut two.fabric, 8);
        let write = |id, key, byte| WorkRequest::write(id, place.address, key, inline(&[byte; 8]));
        two.a.post(write(1, place.rkey, 1));
        let long = Memory::Buf(Buf::from(pattern(4000)));
        two.a.post(WorkRequest::send(2, long).with_invalidate(place.rkey));
        let (_, received) = two.run(2, 1);
        assert_eq!(received[0].attached, Attachment::Invalidate(place.rkey));
        let key = two.fabric.nic(two.b.node).renew(place.lkey).unwrap();
        assert_ne!(key, place.rkey);
        two.a.post(write(3, key, 3));
        two.a.post(WorkRequest::send(4, Memory::None).with_invalidate(key));
        two.a.post(write(5, key, 5));
        let (done, _) = two.run(3, 1);
        let broke = Err(Failure::Broke(Cause::PeerAccess));
        let expected = [(3, Ok(Done::Written)), (4, Ok(Done::Sent)), (5, broke)];
        assert_eq!(outcomes(&done), expected);
        assert_eq!(content(&region), [3; 8]);
    }
}

#[test]
fn a_send_can_take_no_key_back_that_is_none() {
    let mut two = Two::new();
    two.b.receives(1, 100);
    let (_, place) = two.b.open(&mut two.fabric, 8);
    let other = Rkey(place.rkey.0 ^ 1 << 30);
    two.a.post(WorkRequest::send(1, Memory::None).with_invalidate(other));
    let (done, received) = two.run(1, 1);
    assert_eq!(outcomes(&done), [(1, Err(Failure::Broke(Cause::PeerAccess)))]);
    let why = Cause::Access(KeyError::Unknown(other.0));
    assert_eq!(outcomes(&received), [(0, Err(Failure::Flushed(why)))]);
}

#[test]
fn metadata_goes_with_a_write_into_its_completion() {
    for setup in [Setup::default(), troubled(6), lossless()] {
        let mut two = setup.connected(|_, _| {});
        two.b.receives(17, 0);
        let (region, place) = two.b.open(&mut two.fabric, 3000);
        for len in 0..=16 {
            let metadata = Metadata::new(&pattern(16)[..len]).unwrap();
            // Long ones and short ones.
            let data = Memory::Buf(Buf::from(vec![len as u8; len * 180]));
            let write = WorkRequest::write(len as u64, place.address, place.rkey, data);
            two.a.post(write.with_metadata(metadata));
            let (_, received) = two.run(1, 1);
            assert_eq!(received[0].outcome, Ok(Done::ReceivedWrite));
            assert_eq!(received[0].attached.metadata().unwrap().bytes(), &pattern(16)[..len]);
            assert_eq!(received[0].len as usize, len * 180);
            assert_eq!(content(&region)[..len * 180], vec![len as u8; len * 180]);
        }
        assert_eq!(Metadata::new(&[0; 17]), None);
    }
}

#[test]
fn a_standard_peer_is_sent_no_metadata() {
    let standard = |_: &mut Connection, sending: &mut Sending| {
        *sending = Sending::to_standard_peer(sending.first);
    };
    let mut two = Setup::default().connected(standard);
    two.b.receives(1, 0);
    let (region, place) = two.b.open(&mut two.fabric, 8);
    let write = WorkRequest::write(1, place.address, place.rkey, inline(&[1; 8]));
    two.a.post(write.with_metadata(Metadata::new(b"more").unwrap()));
    let (done, _) = two.run(1, 0);
    assert_eq!(outcomes(&done), [(1, Err(Failure::Broke(Cause::NoMetadata)))]);
    assert_eq!(content(&region), [0; 8]);
}

/// Whoever sent it was believed to have been offered it.
#[test]
fn metadata_that_was_not_offered_is_refused() {
    for (setup, len) in [(Setup::default(), 8), (Setup::default(), 3000), (lossless(), 8)] {
        let mut two = setup.connected(|connection, _| connection.metadata = false);
        two.b.receives(1, 0);
        let (region, place) = two.b.open(&mut two.fabric, len);
        let data = Memory::Buf(Buf::from(vec![1; len]));
        let write = WorkRequest::write(1, place.address, place.rkey, data);
        two.a.post(write.with_metadata(Metadata::new(b"more").unwrap()));
        let (done, received) = two.run(1, 1);
        assert_eq!(outcomes(&done), [(1, Err(Failure::Broke(Cause::PeerInvalidRequest)))]);
        let cause = Cause::MetadataNotOffered;
        assert_eq!(outcomes(&received), [(0, Err(Failure::Flushed(cause)))]);
        let told = two.fabric.nic(two.b.node).event();
        assert_eq!(told, Some(Event::Broken(two.b.qpn, cause)));
        // It stands in the last packet, which is not written.
        let before = len / 1024 * 1024;
        assert_eq!(content(&region)[before..], vec![0; len - before]);
    }
}

#[test]
fn what_is_no_request_is_not_posted() {
    let mut two = Two::new();
    let (_, place) = two.b.open(&mut two.fabric, 8);
    let (address, rkey) = (place.address, place.rkey);
    let read = || WorkRequest::read(1, address, rkey, Buf::with_capacity(8));
    let metadata = Metadata::new(b"m").unwrap();
    let unfit = [
        WorkRequest { data: inline(b"into itself").into(), ..read() },
        read().with_imm(doorbell_core::wire::Imm(1)),
        read().with_invalidate(rkey),
        WorkRequest { data: inline(b"data").into(), ..WorkRequest::fetch_add(1, address, rkey, 1) },
        WorkRequest::compare_swap(1, address, rkey, 0, 1).with_metadata(metadata),
        short(1).with_metadata(metadata),
        WorkRequest::write(1, address, rkey, inline(b"w")).with_invalidate(rkey),
    ];
    for request in unfit {
        let refused = two.a.send.post(request).expect_err("unfit");
        assert!(matches!(refused.why, PostError::Unfit { .. }), "{}", refused.why);
    }
    assert_eq!(two.a.send.room(), 64);
}

/// Reads were once asked for whole, however long: behind one loss, all that was under way came in
/// vain, and the connection was given up while answers streamed in.
#[test]
fn a_long_read_gets_through_what_a_long_write_does() {
    let faults = Faults { loss: 0.001, ..Faults::NONE };
    let cable = LinkConfig {
        latency: Duration::from_micros(20),
        bandwidth: Bandwidth::gigabits_per_second(10),
        mtu: 9000,
        ..LinkConfig::default()
    };
    let (cable, mtu) = (cable.with_faults(faults), PathMtu::Mtu4096);
    let len = 32 << 20;
    let took = [false, true].map(|read| {
        let mut two = Setup { cable, mtu, ..Setup::default() }.connected(|_, _| {});
        let (_, place) = two.b.open(&mut two.fabric, len);
        two.a.post(match read {
            true => WorkRequest::read(1, place.address, place.rkey, Buf::with_capacity(len)),
            false => {
                WorkRequest::write(1, place.address, place.rkey, Memory::Buf(vec![7; len].into()))
            }
        });
        let (done, _) = two.run(1, 0);
        assert!(done[0].outcome.is_ok(), "read {read}: {done:?}");
        two.fabric.now().as_nanos()
    });
    assert!(took[1] < 2 * took[0], "written in {} ns, read in {} ns", took[0], took[1]);
}

#[test]
fn a_late_copy_of_a_read_costs_the_next_nothing() {
    let mut two = Two::new();
    let (_, place) = hold(&mut two, &pattern(60_000));
    two.fabric.network.start_recording(1 << 20);
    two.a.post(WorkRequest::read(1, place.address, place.rkey, Buf::with_capacity(2000)));
    two.run(1, 0);
    let file = two.fabric.network.pcap();
    let asked = Reader::new(&file).unwrap().next().unwrap().unwrap().data.to_vec();
    two.a.post(WorkRequest::read(2, place.address, place.rkey, Buf::with_capacity(60_000)));
    two.fabric.room = 4;
    two.fabric.turn(two.a.node);
    two.fabric.run_until(Duration::from_nanos(2100), |_| false);
    two.fabric.arrive(two.b.node, &asked);
    let (done, _) = two.run(1, 0);
    assert_eq!(bytes(&done[0]), pattern(60_000));
    let counters = two.counters().0;
    assert_eq!((counters.timeouts, counters.answers_missed), (0, 0));
}

#[test]
fn a_peer_takes_no_key_back_that_was_not_given_for_that() {
    let mut two = Two::new();
    two.b.receives(1, 10);
    let (nic, all) = (two.fabric.nic(two.b.node), Rights::LOCAL_WRITE | Rights::REMOTE);
    let place = nic.register(two.b.domain, Region::new(8), all).unwrap();
    two.a.post(short(1).with_invalidate(place.rkey));
    let (done, received) = two.run(1, 1);
    assert_eq!(outcomes(&done), [(1, Err(Failure::Broke(Cause::PeerAccess)))]);
    let why = Cause::Access(KeyError::Rights(place.rkey.0));
    assert_eq!(outcomes(&received), [(0, Err(Failure::Flushed(why)))]);
}

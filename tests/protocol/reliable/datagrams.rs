//! Datagrams, and those of the connection managers.

use std::time::Duration;

use doorbell_core::encap::Version;
use doorbell_core::memory::Buf;
use doorbell_core::nic::*;
use doorbell_core::wire::cm::Mad;
use doorbell_core::wire::{Imm, PathMtu, Pkey, Psn, Qkey};
use doorbell_simulation::Fabric;

use crate::reliable::common::{End, Setup, Two, bytes, inline, outcomes, pattern};

const KEY: Qkey = Qkey(0x1234_5678);

fn ready(fabric: &mut Fabric, end: &End) {
    ready_for(fabric, end, PathMtu::Mtu1024);
}

fn ready_for(fabric: &mut Fabric, end: &End, mtu: PathMtu) {
    let init = Change::Init { rights: Rights::NONE, pkey: Pkey::DEFAULT };
    let datagrams = Change::ReadyForDatagrams { qkey: KEY, mtu };
    for change in [init, datagrams, Change::ReadyToSend(Sending::new(Psn::new(9)))] {
        fabric.nic(end.node).change(end.qpn, change).unwrap();
    }
}

/// Two nodes ready for datagrams, and the address of the second as the first keeps it.
fn two(setup: &Setup) -> (Two, AddressId) {
    let mut two = Setup { transport: Transport::Datagram, ..*setup }.unconnected();
    ready(&mut two.fabric, &two.a);
    ready(&mut two.fabric, &two.b);
    let path = two.fabric.path(two.a.node, two.b.node);
    let there = two.fabric.nic(two.a.node).address(path).unwrap();
    (two, there)
}

#[test]
fn a_datagram_arrives_behind_its_header_and_says_whom_it_is_from() {
    for version in [Version::V1, Version::V2Ipv4, Version::V2Ipv6] {
        let (mut two, there) = two(&Setup { version, ..Setup::default() });
        for len in [0, 1, 64, 1024] {
            two.b.receive(5, Buf::with_capacity(DATAGRAM_HEADER + 1024));
            let data = Memory::Buf(Buf::from(pattern(len)));
            let request = WorkRequest::datagram(1, (there, two.b.qpn, KEY), data);
            two.a.post(request.with_imm(Imm(len as u32)));
            let (done, received) = two.run(1, 1);
            assert_eq!(outcomes(&done), [(1, Ok(Done::Sent))]);
            let got = &received[0];
            assert_eq!(got.outcome, Ok(Done::ReceivedDatagram { source: two.a.qpn }));
            assert_eq!((got.id, got.attached.imm()), (5, Some(Imm(len as u32))));
            let (header, payload) = bytes(got).split_at(DATAGRAM_HEADER);
            assert_eq!(payload, pattern(len));
            let outer = *two.fabric.path(two.a.node, two.b.node).outer();
            let (source, _) = outer.gids();
            match version {
                Version::V2Ipv4 => {
                    assert_eq!((&header[..20], header[20]), (&[0; 20][..], 0x45));
                    assert_eq!(header[32..36], source.0[12..]);
                }
                _ => assert_eq!(header[8..24], source.0),
            }
        }
    }
}

#[test]
fn a_datagram_with_another_key_or_without_room_is_dropped() {
    let (mut two, there) = two(&Setup::default());
    let to = (there, two.b.qpn, KEY);
    two.a.post(WorkRequest::datagram(1, (there, two.b.qpn, Qkey(1)), inline(b"key")));
    two.a.post(WorkRequest::datagram(2, to, inline(b"nobody waits")));
    let (done, _) = two.run(2, 0);
    assert!(done.iter().all(|completion| completion.outcome == Ok(Done::Sent)));
    two.run_for(Duration::from_micros(100));
    two.b.receive(7, Buf::with_capacity(DATAGRAM_HEADER + 5));
    two.a.post(WorkRequest::datagram(3, to, inline(b"too long")));
    two.a.post(WorkRequest::datagram(4, to, inline(b"fits")));
    let (_, received) = two.run(2, 1);
    assert_eq!((received[0].id, &bytes(&received[0])[DATAGRAM_HEADER..]), (7, &b"fits"[..]));
    let counters = two.counters().1;
    assert_eq!((counters.wrong_qkey, counters.passed_over), (1, 2));
}

#[test]
fn a_datagram_of_more_than_a_packet_here_is_dropped() {
    let mut two = Setup { transport: Transport::Datagram, ..Setup::default() }.unconnected();
    ready_for(&mut two.fabric, &two.a, PathMtu::Mtu2048);
    ready_for(&mut two.fabric, &two.b, PathMtu::Mtu1024);
    let path = two.fabric.path(two.a.node, two.b.node);
    let there = two.fabric.nic(two.a.node).address(path).unwrap();
    two.b.receives(2, DATAGRAM_HEADER + 2048);
    for len in [1025, 1024] {
        let data = Memory::Buf(Buf::from(pattern(len)));
        two.a.post(WorkRequest::datagram(1, (there, two.b.qpn, KEY), data));
    }
    let (_, received) = two.run(2, 1);
    assert_eq!((received[0].id, &bytes(&received[0])[DATAGRAM_HEADER..]), (0, &pattern(1024)[..]));
    assert_eq!(two.counters().1.passed_over, 1);
}

#[test]
fn a_datagram_that_can_not_be_sent_breaks_its_queue_pair() {
    let (mut own, there) = two(&Setup::default());
    let to = (there, own.b.qpn, KEY);
    own.a.post(WorkRequest::datagram(1, to, Memory::Buf(Buf::from(vec![0; 1025]))));
    own.a.post(WorkRequest::datagram(2, to, inline(b"behind")));
    let (done, _) = own.run(2, 0);
    let cause = Cause::LongDatagram { len: 1025, most: 1024 };
    let expected = [(1, Err(Failure::Broke(cause))), (2, Err(Failure::Flushed(cause)))];
    assert_eq!(outcomes(&done), expected);
    let (mut own, there) = two(&Setup::default());
    own.fabric.nic(own.a.node).drop_address(there).unwrap();
    own.a.post(WorkRequest::datagram(1, (there, own.b.qpn, KEY), inline(b"where?")));
    let (done, _) = own.run(1, 0);
    assert_eq!(outcomes(&done), [(1, Err(Failure::Broke(Cause::NoAddress)))]);
    let gone = own.fabric.nic(own.a.node).drop_address(there);
    assert_eq!(gone, Err(ResourceError::NoSuchAddress(there)));
}

#[test]
fn connections_and_datagrams_are_for_queue_pairs_of_their_own() {
    let (mut two, there) = two(&Setup::default());
    let refused = two.a.send.post(WorkRequest::send(1, Memory::None)).expect_err("no connection");
    assert!(matches!(refused.why, PostError::Unfit { .. }), "{}", refused.why);
    let mut reliable = Two::new();
    let to = (there, reliable.b.qpn, KEY);
    let refused =
        reliable.a.send.post(WorkRequest::datagram(1, to, Memory::None)).expect_err("one");
    assert!(matches!(refused.why, PostError::Unfit { .. }), "{}", refused.why);
    let fresh = Setup { transport: Transport::Datagram, ..Setup::default() }.unconnected();
    let Two { mut fabric, a, b, .. } = fresh;
    let path = fabric.path(a.node, b.node);
    let connection = Connection::new(b.qpn, path, PathMtu::Mtu256, Psn::new(0));
    let init = Change::Init { rights: Rights::NONE, pkey: Pkey::DEFAULT };
    fabric.nic(a.node).change(a.qpn, init).unwrap();
    let change = Change::ReadyToReceive(Box::new(connection));
    let refused = fabric.nic(a.node).change(a.qpn, change);
    assert_eq!(refused, Err(ChangeError::Transport { qpn: a.qpn }));
}

#[test]
fn management_datagrams_find_the_other_manager_and_their_way_back() {
    for version in [Version::V1, Version::V2Ipv4, Version::V2Ipv6] {
        let mut two = Setup { version, ..Setup::default() }.unconnected();
        let path = two.fabric.path(two.a.node, two.b.node);
        let there = [7; Mad::LEN];
        two.fabric.nic(two.a.node).manage(path, there).unwrap();
        two.run_for(Duration::from_micros(100));
        let arrived = two.fabric.nic(two.b.node).management().expect("a datagram");
        assert_eq!((arrived.bytes, arrived.source.get()), (there, 1));
        let back = arrived.way.back().path(doorbell_core::encap::PathId(0));
        let own = two.fabric.path(two.b.node, two.a.node);
        assert_eq!(back.outer().gids(), own.outer().gids());
        two.fabric.nic(two.b.node).manage(back, [8; Mad::LEN]).unwrap();
        two.run_for(Duration::from_micros(100));
        let answer = two.fabric.nic(two.a.node).management().expect("an answer");
        assert_eq!(answer.bytes, [8; Mad::LEN]);
    }
}

#[test]
fn of_management_datagrams_so_many_wait_and_no_more() {
    let mut two = Setup::default().unconnected();
    let path = two.fabric.path(two.a.node, two.b.node);
    let nic = two.fabric.nic(two.a.node);
    let queued =
        (0..1000).take_while(|_| nic.manage(path.in_the_clear(), [0; Mad::LEN]).is_ok()).count();
    assert_eq!(queued, 256);
    two.run_for(Duration::from_millis(1));
    two.fabric.nic(two.a.node).manage(path, [0; Mad::LEN]).unwrap();
    two.run_for(Duration::from_millis(1));
    let nic = two.fabric.nic(two.b.node);
    assert_eq!((nic.counters().management, nic.counters().management_dropped), (256, 1));
    assert_eq!(std::iter::from_fn(|| nic.management()).count(), 256);
}

#[test]
fn an_address_that_was_dropped_is_not_the_next_one() {
    let (mut own, there) = two(&Setup::default());
    let path = own.fabric.path(own.a.node, own.b.node);
    own.a.post(WorkRequest::datagram(1, (there, own.b.qpn, KEY), inline(b"for the first")));
    let nic = own.fabric.nic(own.a.node);
    nic.drop_address(there).unwrap();
    assert_ne!(nic.address(path).unwrap(), there);
    let (done, _) = own.run(1, 0);
    assert_eq!(outcomes(&done), [(1, Err(Failure::Broke(Cause::NoAddress)))]);
}

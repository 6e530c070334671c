//! What was wrong once: each the smallest run that showed it, as random programs and readers found
//! them.

use std::time::Duration;

use doorbell_core::memory::Buf;
use doorbell_core::nic::*;
use doorbell_core::time::Time;

use doorbell_core::wire::{PathMtu, Psn};

use crate::reliable::common::{End, Setup, at, inline, lossless, outcomes, pattern, short};
use crate::reliable::selective::report;

/// A device that can't lose told only of whole messages. One that was longer than the window waited
/// for its own end.
#[test]
fn a_message_longer_than_the_window_arrives_over_a_device_that_cannot_lose() {
    for window in [1, 2, 7] {
        let mut two = lossless().connected(|_, sending| sending.window = window);
        let (region, place) = two.b.open(&mut two.fabric, 20_000);
        for id in 0..3 {
            let data = Memory::Buf(Buf::from(pattern(20_000)));
            two.a.post(WorkRequest::write(id, at(&place, 0), place.rkey, data));
        }
        let (sent, _) = two.run(3, 0);
        assert!(sent.iter().all(|completion| completion.outcome == Ok(Done::Written)));
        let mut bytes = vec![0; 20_000];
        region.read_at(0, &mut bytes).unwrap();
        assert_eq!(bytes, pattern(20_000));
    }
}

/// A broken queue pair dropped what came and said nothing. A device that can't lose had delivered
/// it, and so it was told as received.
#[test]
fn what_comes_to_a_broken_queue_pair_is_not_done_although_it_was_delivered() {
    let mut two = lossless().connected(|_, _| {});
    two.b.receives(3, 8);
    two.fabric.nic(two.b.node).change(two.b.qpn, Change::Error).unwrap();
    (0..3).for_each(|id| two.a.post(short(id)));
    let (sent, _) = two.run(3, 3);
    assert_eq!(sent[0].outcome, Err(Failure::Broke(Cause::PeerOperation)));
    for completion in &sent[1..] {
        assert_eq!(completion.outcome, Err(Failure::Flushed(Cause::PeerOperation)));
    }
}

/// An unsignalled request gave its slot of the completion queue back when it was done, and nobody
/// told those that waited for one. Over a device that acknowledges nothing, that was for ever.
#[test]
fn a_slot_that_an_unsignalled_request_gives_back_goes_to_who_waits_for_it() {
    let mut setup = lossless();
    // One for what is sent: the other is kept for what is received.
    setup.capacity = 2;
    let mut two = setup.connected(|_, _| {});
    let (_, place) = two.b.open(&mut two.fabric, 8);
    for id in 0..5 {
        let data = Memory::Buf(Buf::from(pattern(8)));
        let request = WorkRequest::write(id, at(&place, 0), place.rkey, data);
        two.a.post(if id < 4 { request.unsignalled() } else { request });
    }
    let done = two.fabric.run_until(Duration::from_secs(1), |_| !two.a.queue.is_empty());
    assert!(done, "the requests behind the first wait");
    assert_eq!(two.a.queue.poll().map(|completion| completion.id), Some(4));
}

/// Nobody has to turn the NIC after polling: with the queue empty again, it once waited for ever.
#[test]
fn what_waits_for_room_among_the_completions_goes_on_by_itself() {
    let mut two = Setup { capacity: 2, ..Setup::default() }.connected(|_, _| {});
    for id in 0..5 {
        two.a.send.post(WorkRequest::send(id, inline(b"flushed"))).unwrap();
    }
    let (node, qpn) = (two.a.node, two.a.send.qpn());
    two.fabric.nic(node).change(qpn, Change::Error).unwrap();
    let mut flushed = 0;
    let all = two.fabric.run_until(Duration::from_secs(1), |_| {
        while two.a.queue.poll().is_some() {
            flushed += 1;
        }
        flushed == 5
    });
    assert!(all, "{flushed} of 5");
}

/// A read's answer waited for room in the device when its queue pair was told to stop. What was
/// owed was dropped, and a peer that keeps no timers waited for ever.
#[test]
fn a_read_that_a_broken_queue_pair_leaves_unanswered_fails_over_a_device_that_cannot_lose() {
    let mut two = lossless().connected(|_, _| {});
    let (_, place) = two.b.open(&mut two.fabric, 5000);
    two.fabric.room = 1;
    let into = Buf::with_capacity(5000);
    two.a.post(WorkRequest::read(1, place.address, place.rkey, into));
    two.fabric.turn(two.a.node);
    let (node, qpn) = (two.b.node, two.b.qpn);
    while two.fabric.nic(node).counters().answers_sent == 0 {
        two.fabric.step(Time::from_nanos(1_000_000)).expect("the read is under way");
    }
    two.fabric.nic(node).change(qpn, Change::Error).unwrap();
    let (sent, _) = two.run(1, 0);
    assert_eq!(outcomes(&sent), [(1, Err(Failure::Broke(Cause::PeerOperation)))]);
}

/// What an old connection left behind nobody had heard of was told of the new one, and hid what
/// became of that.
#[test]
fn what_nobody_heard_of_an_old_connection_is_not_told_of_the_new_one() {
    let mut two = Setup::default().connected(|_, _| {});
    let ends = [(two.a.node, two.a.qpn), (two.b.node, two.b.qpn)];
    for (node, qpn) in ends {
        two.fabric.nic(node).change(qpn, Change::Error).unwrap();
    }
    two.run_for(Duration::from_millis(5));
    two.a.reset(&mut two.fabric).unwrap();
    two.b.reset(&mut two.fabric).unwrap();
    two.fabric.connect(ends[0], ends[1], PathMtu::Mtu1024, |_, _| {});
    assert_eq!(two.fabric.nic(two.a.node).event(), None);
    let (_, place) = two.b.open(&mut two.fabric, 8);
    let outside = at(&place, 1);
    two.a.post(WorkRequest::write(1, outside, place.rkey, inline(&[1; 8])));
    two.run(1, 0);
    let broken = Event::Broken(two.a.qpn, Cause::PeerAccess);
    let nic = two.fabric.nic(two.a.node);
    assert_eq!((nic.event(), nic.event()), (Some(broken), None));
}

/// A device that loses nothing delivers a packet to a queue pair of another kind, which drops it.
#[test]
fn what_another_kind_of_queue_pair_drops_does_not_pass_for_done() {
    for transport in [Transport::Unreliable, Transport::Datagram] {
        let mut two = lossless().unconnected();
        let other = End::of(&mut two.fabric, two.b.node, transport, 16, 64);
        let (path, psn) = (two.fabric.path(two.a.node, two.b.node), Psn::new(1));
        let connection = Connection::new(other.qpn, path, PathMtu::Mtu1024, psn);
        two.fabric.ready(two.a.node, two.a.qpn, connection, Sending::new(psn));
        two.a.post(short(1));
        let (done, _) = two.run(1, 0);
        let why = Cause::NoAnswer { tries: 1 };
        assert_eq!(outcomes(&done), [(1, Err(Failure::Broke(why)))]);
    }
}

/// A time-out broke a queue pair at the moment at which missing packets were to be looked for, and
/// the timer for those was set once more, to a moment that had passed.
#[test]
fn a_queue_pair_that_a_time_out_breaks_asks_for_no_moment_that_has_passed() {
    let mut two = Setup::default().unconnected();
    let (node, path) = (two.a.node, two.fabric.path(two.a.node, two.b.node));
    let (qpn, psn) = (two.a.qpn, Psn::new(1));
    let connection = Connection::new(two.b.qpn, path, PathMtu::Mtu1024, psn);
    let sending = Sending { retries: 0, selective: true, ..Sending::new(psn) };
    two.fabric.ready(node, qpn, connection, sending);
    let station = two.fabric.station(two.b.node);
    two.fabric.network.partition(&[station]);
    (0..2).for_each(|id| two.a.post(short(id)));
    two.fabric.turn(node);
    while two.fabric.nic(node).state(qpn) != Some(State::Error) {
        // The peer keeps the second packet, and the first one is missing.
        report(&mut two, qpn, psn.before(), psn.add(1), &[1]);
        let nic = two.fabric.nic(node);
        // Both timers have expired when the time is told.
        let now =
            nic.next_timeout().expect("two packets are under way") + Duration::from_millis(50);
        nic.advance(now);
        assert!(nic.next_timeout().is_none_or(|next| next > now));
        two.fabric.turn(node);
    }
}

//! A device that cannot lose: no timers, no acknowledgements, and everything else the same.

use std::time::Duration;

use doorbell_core::encap::PathId;
use doorbell_core::memory::Buf;
use doorbell_core::nic::*;
use doorbell_core::wire::Imm;

use crate::reliable::common::{Two, at, bytes, lossless, outcomes, pattern, short};

#[test]
fn messages_arrive_and_complete_without_acknowledgements_and_without_timers() {
    let mut two = lossless().connected(|_, _| {});
    let (region, place) = two.b.open(&mut two.fabric, 9000);
    two.b.receives(20, 9000);
    for id in 0..20 {
        let data = Memory::Buf(Buf::from(pattern(4000 + id as usize)));
        let request = match id % 2 {
            0 => WorkRequest::send(id, data),
            _ => WorkRequest::write(id, at(&place, id), place.rkey, data).with_imm(Imm(3)),
        };
        two.a.post(if id % 3 == 0 { request.awaited() } else { request });
    }
    let Two { fabric, a, b, .. } = &mut two;
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    assert!(fabric.run_until(Duration::from_millis(1), |fabric| {
        for node in [a.node, b.node] {
            assert_eq!(fabric.nic(node).next_timeout(), None);
        }
        sent.extend(a.poll());
        received.extend(b.poll());
        sent.len() == 20 && received.len() == 20
    }));
    for (index, (one, other)) in sent.iter().zip(&received).enumerate() {
        let wrote = index % 2 == 1;
        let done =
            if wrote { [Done::Written, Done::ReceivedWrite] } else { [Done::Sent, Done::Received] };
        assert_eq!((one.id, one.outcome), (index as u64, Ok(done[0])));
        assert_eq!((other.id, other.outcome), (index as u64, Ok(done[1])));
        assert!(wrote || bytes(other) == pattern(4000 + index));
    }
    let mut last = vec![0; 4019];
    region.read_at(19, &mut last).unwrap();
    assert_eq!(last, pattern(4019));
    let (sender, receiver) = two.counters();
    assert_eq!((receiver.sent, receiver.acks_sent, sender.received), (0, 0, 0));
    assert_eq!((sender.retransmitted, sender.timeouts), (0, 0));
}

#[test]
fn a_receiver_that_is_not_ready_is_waited_for_and_only_then_is_there_a_timer() {
    let mut two = lossless().connected(|_, _| {});
    (0..10).for_each(|id| two.a.post(short(id)));
    two.run_for(Duration::from_micros(50));
    assert!(two.a.queue.is_empty());
    assert!(two.fabric.nic(two.a.node).next_timeout().is_some());
    assert_eq!(two.fabric.nic(two.b.node).next_timeout(), None);
    two.b.receives(10, 8);
    let (at_a, at_b) = two.run(10, 10);
    assert_eq!(at_a.iter().map(|c| (c.id, c.outcome)).collect::<Vec<_>>(), outcomes(&at_a));
    assert!(at_a.iter().all(|c| c.outcome == Ok(Done::Sent)));
    assert_eq!(at_b.iter().map(|c| c.id).collect::<Vec<_>>(), Vec::from_iter(0..10));
    two.run_for(Duration::from_millis(1));
    assert_eq!(two.fabric.nic(two.a.node).next_timeout(), None);
}

/// What the device delivered was once taken for done although its refusal had come.
#[test]
fn what_was_refused_is_not_complete_although_it_was_delivered() {
    for requests in [1, 5] {
        let mut two = lossless().connected(|_, _| {});
        let (_, place) = two.b.open(&mut two.fabric, 64);
        two.b.receives(8, 8);
        two.a.post(short(0));
        let data = Memory::Buf(Buf::from(vec![1; 65]));
        two.a.post(WorkRequest::write(1, place.address, place.rkey, data));
        (2..requests).for_each(|id| two.a.post(short(id)));
        let count = requests.max(2) as usize;
        let (at_a, _) = two.run(count, 1);
        let cause = Cause::PeerAccess;
        let mut expected = vec![(0, Ok(Done::Sent)), (1, Err(Failure::Broke(cause)))];
        expected.extend((2..requests).map(|id| (id, Err(Failure::Flushed(cause)))));
        assert_eq!(outcomes(&at_a), expected);
    }
}

/// A queue pair that was reset with requests under way was once never looked at again.
#[test]
fn a_queue_pair_works_again_after_a_reset_in_the_middle() {
    let setup = lossless();
    let mut two = setup.connected(|_, _| {});
    for _ in 0..3 {
        two.b.receives(3, 8);
        (0..3).for_each(|id| two.a.post(short(id)));
        two.run(3, 3);
        (0..3).for_each(|id| two.a.post(short(id)));
        two.fabric.turn(two.a.node);
        for (node, qpn) in [(two.a.node, two.a.qpn), (two.b.node, two.b.qpn)] {
            two.fabric.nic(node).change(qpn, Change::Error).unwrap();
        }
        two.run(3, 0);
        for end in [&mut two.a, &mut two.b] {
            end.reset(&mut two.fabric).unwrap();
        }
        two.run_for(Duration::from_micros(10));
        let ends = ((two.a.node, two.a.qpn), (two.b.node, two.b.qpn));
        two.fabric.connect(ends.0, ends.1, setup.mtu, |_, _| {});
    }
}

#[test]
fn a_link_that_is_gone_breaks_what_goes_by_it_and_nothing_else() {
    let mut two = lossless().connected(|_, _| {});
    (0..3).for_each(|id| two.a.post(short(id)));
    two.run_for(Duration::from_micros(50));
    let (a, b) = (two.a.node, two.b.node);
    let [to_a, to_b] = [a, b].map(|node| PathId(node as u32));
    two.fabric.nic(a).gone(to_a);
    two.fabric.turn(a);
    assert_eq!(two.fabric.nic(a).event(), None, "no connection goes by that link");
    two.fabric.nic(a).gone(to_b);
    assert_eq!(two.fabric.nic(a).event(), None, "what it has delivered is asked for before");
    two.fabric.turn(a);
    assert_eq!(two.fabric.nic(a).event(), Some(Event::Broken(two.a.qpn, Cause::LinkGone)));
    let (at_a, _) = two.run(3, 0);
    let found: Vec<_> = at_a.iter().map(|c| (c.id, c.outcome)).collect();
    let flushed = Err(Failure::Flushed(Cause::LinkGone));
    let broke = Err(Failure::Broke(Cause::LinkGone));
    assert_eq!(found, [(0, broke), (1, flushed), (2, flushed)]);
}

//! Peers that began anew, and messages from the past.

use doorbell_core::cm::{State, Why};
use doorbell_core::wire::Qpn;
use doorbell_core::wire::cm::RejectReason;

use crate::common::Kind::*;
use crate::common::*;

#[test]
fn a_peer_that_began_anew_with_the_same_queue_pair_ends_what_it_had() {
    let mut world = World::pair();
    let (_, old) = world.connect((5, 6));
    world.managers[0] = manager(config(0), 99);
    world.said();
    world.managers[0].connect(1, &request(5), b"").unwrap();
    world.carry();
    assert_eq!(world.said(), [(0, Req), (1, Rej)]);
    let Why::Refused { reason, .. } = world.failed(0).1 else { panic!() };
    assert_eq!(reason, RejectReason::STALE_CONNECTION);
    assert_eq!(world.ended(1), (old, Why::Stale));
    // Its numbers rest before the peer may have another connection with them.
    world.managers[0] = manager(config(0), 999);
    world.managers[0].connect(1, &request(5), b"").unwrap();
    world.carry();
    world.failed(0);
    world.no_event();
    world.pass(millis(31));
    world.released(0);
    assert_eq!(world.released(1), (old, Some(Qpn::new(6))));
    world.connect((5, 6));
}

#[test]
fn a_peer_that_began_anew_with_the_same_name_ends_what_it_had() {
    let mut world = World::pair();
    let (first, old) = world.connect((5, 6));
    // The same seed: it gives its first connection the same name, with another queue pair.
    world.managers[0] = manager(config(0), 1);
    let again = world.managers[0].connect(1, &request(8), b"").unwrap();
    assert_eq!(again, first);
    world.carry();
    world.failed(0);
    assert_eq!(world.ended(1), (old, Why::Stale));
    assert_eq!(world.managers[1].counters().stale, 1);
}

#[test]
fn a_peer_that_began_anew_before_it_was_answered_may_ask_again_soon() {
    let mut world = World::pair();
    world.managers[0].connect(1, &request(5), b"").unwrap();
    world.carry();
    let old = world.asked(1);
    world.managers[0] = manager(config(0), 99);
    world.managers[0].connect(1, &request(5), b"").unwrap();
    world.carry();
    world.failed(0);
    assert_eq!(world.failed(1), (old, Why::Stale));
    // As soon as it knows of another queue pair, or began anew once more.
    world.managers[0] = manager(config(0), 999);
    world.connect((5, 6));
}

#[test]
fn a_responder_that_began_anew_ends_what_it_had() {
    let mut world = World::pair();
    let (old, _) = world.connect((5, 6));
    world.managers[1] = manager(config(1), 99);
    world.managers[1].listen(SERVICE, 1).unwrap();
    let asking = world.managers[0].connect(1, &request(7), b"").unwrap();
    world.carry();
    let asked = world.asked(1);
    // The queue pair that the old connection still names.
    world.managers[1].accept(asked, &reply(6), b"").unwrap();
    world.carry();
    assert_eq!(world.ended(0), (old, Why::Stale));
    assert_eq!(world.failed(0), (asking, Why::Stale));
    let (id, Why::Refused { reason, .. }) = world.failed(1) else { panic!() };
    assert_eq!((id, reason), (asked, RejectReason::STALE_CONNECTION));
    world.pass(LONG);
}

#[test]
fn a_peer_that_forgot_a_connection_agrees_that_it_is_ended() {
    let mut world = World::pair();
    let (id, _) = world.connect((5, 6));
    world.managers[1] = manager(config(1), 99);
    world.managers[0].disconnect(id, b"").unwrap();
    world.carry();
    assert!(matches!(world.ended(0), (ended, Why::Agreed { .. }) if ended == id));
}

#[test]
fn a_reply_to_who_forgot_that_it_asked_is_refused() {
    let mut world = World::pair();
    world.managers[0].connect(1, &request(5), b"").unwrap();
    world.carry();
    let asked = world.asked(1);
    world.managers[0] = manager(config(0), 99);
    world.managers[1].accept(asked, &reply(6), b"").unwrap();
    world.carry();
    let (id, Why::Refused { reason, .. }) = world.failed(1) else { panic!() };
    assert_eq!((id, reason), (asked, RejectReason::INVALID_COMM_ID));
}

#[test]
fn a_stranger_cannot_touch_a_connection_by_its_names() {
    let mut world = World::new(3);
    world.managers[1].listen(SERVICE, 4).unwrap();
    // Everything that the two say is heard by a third, who says it, too.
    let asking = world.managers[0].connect(1, &request(5), b"").unwrap();
    let mut heard = Vec::new();
    let mut exchange = |world: &mut World| {
        for (from, to) in [(0, 1), (1, 0)] {
            while let Some(datagram) = world.managers[from].transmit() {
                world.managers[to].receive(&from, &datagram.bytes);
                heard.push((to, datagram.bytes));
            }
        }
    };
    exchange(&mut world);
    let asked = world.asked(1);
    world.managers[1].accept(asked, &reply(6), b"").unwrap();
    exchange(&mut world);
    world.replied(0);
    world.managers[0].ready(asking, b"").unwrap();
    exchange(&mut world);
    world.established(1);
    world.managers[0].disconnect(asking, b"").unwrap();
    // Which is heard, and lost.
    let dreq = world.managers[0].transmit().unwrap();
    heard.push((1, dreq.bytes));
    for (to, bytes) in heard {
        world.managers[to].receive(&2, &bytes);
    }
    assert_eq!(world.managers[0].state(asking), Some(State::EndSent));
    assert_eq!(world.managers[1].state(asked), Some(State::Established));
    // The request is as good as anybody's.
    world.asked(1);
    world.no_event();
}

#[test]
fn old_requests_do_not_bring_back_what_was_refused_or_ended() {
    let mut world = World::pair();
    world.managers[0].connect(1, &request(5), b"").unwrap();
    let old = world.managers[0].transmit().unwrap();
    world.managers[1].receive(&0, &old.bytes);
    let asked = world.asked(1);
    world.managers[1].reject(asked, RejectReason::CONSUMER, b"no").unwrap();
    world.said();
    world.managers[1].receive(&0, &old.bytes);
    world.carry();
    // The same refusal again; the program is not asked again.
    assert_eq!(world.said(), [(1, Rej), (1, Rej)]);
    world.failed(0);

    world.managers[0].connect(1, &request(7), b"").unwrap();
    let old = world.managers[0].transmit().unwrap();
    world.managers[1].receive(&0, &old.bytes);
    let asked = world.asked(1);
    world.managers[1].accept(asked, &reply(6), b"").unwrap();
    world.carry();
    let asking = world.replied(0);
    world.managers[0].ready(asking, b"").unwrap();
    world.carry();
    world.established(1);
    let again = |world: &mut World| {
        world.said();
        world.managers[1].receive(&0, &old.bytes);
        world.carry();
        assert_eq!(world.said(), []);
        world.no_event();
    };
    again(&mut world);
    world.managers[0].disconnect(asking, b"").unwrap();
    world.carry();
    world.ended(0);
    world.ended(1);
    again(&mut world);
}

#[test]
fn a_responder_that_began_anew_and_uses_an_old_name_ends_what_it_had() {
    let mut world = World::pair();
    let (old, _) = world.connect((5, 6));
    // The same seed: it gives its first connection the same name, with another queue pair.
    world.managers[1] = manager(config(1), 2);
    world.managers[1].listen(SERVICE, 1).unwrap();
    let asking = world.managers[0].connect(1, &request(7), b"").unwrap();
    world.carry();
    let asked = world.asked(1);
    world.managers[1].accept(asked, &reply(8), b"").unwrap();
    world.carry();
    assert_eq!(world.ended(0), (old, Why::Stale));
    assert_eq!(world.failed(0), (asking, Why::Stale));
}

#[test]
fn a_name_is_not_used_again_soon() {
    let mut small = config(0);
    (small.connections, small.time_waits) = (1, 0);
    let mut world = World::with(vec![small, config(1)]);
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..1000 {
        let id = world.managers[0].connect(1, &request(5), b"").unwrap();
        assert!(names.insert(id), "{id} again");
        world.pass(millis(31));
        world.failed(0);
        world.released(0);
    }
}

/// A message with one of its fields changed.
fn changed(datagram: &[u8; 256], at: usize) -> [u8; 256] {
    let mut datagram = *datagram;
    datagram[at] ^= 1;
    datagram
}

#[test]
fn an_end_that_names_another_peer_or_queue_pair_ends_nothing() {
    let mut world = World::pair();
    let (id, other) = world.connect((5, 6));
    world.managers[0].disconnect(id, b"").unwrap();
    let dreq = world.managers[0].transmit().unwrap();
    // The least bits of the peer's name, and of the queue pair's number.
    for (at, answers) in [(24 + 3, 1), (24 + 10, 0)] {
        world.managers[1].receive(&0, &changed(&dreq.bytes, at));
        let answers: Vec<_> = (0..answers).map(|_| world.managers[1].transmit()).collect();
        assert!(answers.iter().all(|answer| kind(&answer.as_ref().unwrap().bytes) == Drep));
        assert_eq!(world.managers[1].transmit(), None);
        assert_eq!(world.managers[1].state(other), Some(State::Established));
    }
    world.managers[1].receive(&0, &dreq.bytes);
    assert!(matches!(world.ended(1), (_, Why::PeerLeft { .. })));
}

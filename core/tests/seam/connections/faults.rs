//! What is lost, comes twice, or comes late, one message at a time.

use doorbell_core::cm::{Event, Silent, Why};
use doorbell_core::wire::cm::{CmTimeout, Mad, QuotedRequest, RejectReason};
use doorbell_core::wire::{CommId, TransactionId};

use crate::connections::common::Kind::*;
use crate::connections::common::*;

/// Loses the first `count` of a kind.
fn first(count: usize, what: Kind) -> impl FnMut(usize, Kind) -> bool {
    let mut left = count;
    move |_, kind| {
        let lost = kind == what && left > 0;
        left -= usize::from(lost);
        lost
    }
}

fn count(world: &World, what: Kind) -> usize {
    world.sent.iter().filter(|(_, kind)| *kind == what).count()
}

#[test]
fn every_message_may_be_lost_as_often_as_it_is_repeated() {
    let most = usize::from(RETRIES);
    for lost in [Req, Rep, Rtu, Dreq, Drep] {
        let mut world = World::pair();
        let mut lose = first(most, lost);
        // Three repetitions take 12.6 ms.
        let delay = |kinds: &[Kind]| millis(13 * u64::from(kinds.contains(&lost)));
        let asking = world.managers[0].connect(1, &request(5), b"").unwrap();
        world.pass_but(delay(&[Req]), &mut lose);
        let asked = world.asked(1);
        world.managers[1].accept(asked, &reply(6), b"").unwrap();
        world.pass_but(delay(&[Rep]), &mut lose);
        assert_eq!(world.replied(0), asking);
        world.managers[0].ready(asking, b"").unwrap();
        world.pass_but(delay(&[Rtu]), &mut lose);
        assert_eq!(world.established(1), asked);
        world.managers[1].disconnect(asked, b"").unwrap();
        world.pass_but(delay(&[Dreq, Drep]), &mut lose);
        assert!(matches!(world.ended(0).1, Why::PeerLeft { .. }));
        assert!(matches!(world.ended(1).1, Why::Agreed { .. }), "{lost:?} lost");
        // A request that is repeated asks for the reply once more.
        assert!(count(&world, lost) > most, "{lost:?}: {:?}", world.sent);
        world.pass(LONG);
        assert_eq!((world.released(0).0, world.released(1).0), (asking, asked));
        world.no_event();
        world.nothing_left();
    }
}

#[test]
fn a_request_that_is_never_answered_is_given_up() {
    let mut world = World::pair();
    let asking = world.managers[0].connect(1, &request(5), b"").unwrap();
    world.pass_but(millis(16), |_, _| true);
    world.no_event();
    world.pass_but(millis(1), |_, _| true);
    let (id, why) = world.failed(0);
    assert!(id == asking && timed_out(&why, Silent::Peer), "{why:?}");
    assert_eq!(count(&world, Req), usize::from(RETRIES) + 1);
    world.pass(LONG);
    world.released(0);
    world.nothing_left();
}

/// Has a station hear that the port which a datagram went to is closed.
fn hears_of_closed_port(world: &mut World, station: usize, datagram: &[u8]) {
    let quoted = Mad::quoted_request(datagram).expect("a request");
    world.managers[station].port_closed(quoted);
}

/// The system said so at once, and the program heard only after all repetitions: seconds.
#[test]
fn a_request_that_finds_a_closed_port_fails_at_once() {
    let mut world = World::pair();
    let asking = world.managers[0].connect(1, &request(5), b"").unwrap();
    let lost = world.managers[0].transmit().expect("it asks").bytes;
    hears_of_closed_port(&mut world, 0, &lost);
    assert_eq!(world.failed(0), (asking, Why::PortClosed));
    assert_eq!(world.managers[0].counters().closed_ports, 1);
    // Once more, as of a repetition.
    hears_of_closed_port(&mut world, 0, &lost);
    world.no_event();
    // The queue pair may ask again when its number has rested, and then somebody is there.
    world.pass(LONG);
    assert_eq!(world.released(0).0, asking);
    world.connect((5, 6));
}

/// A repetition that had found the peer there after all is answered, and the answer is refused.
#[test]
fn a_peer_that_answers_a_request_which_a_closed_port_has_ended_is_told_so() {
    let mut world = World::pair();
    world.managers[0].connect(1, &request(5), b"").unwrap();
    let sent = world.managers[0].transmit().expect("it asks").bytes;
    world.managers[1].receive(&0, &sent);
    hears_of_closed_port(&mut world, 0, &sent);
    assert_eq!(world.failed(0).1, Why::PortClosed);
    let asked = world.asked(1);
    world.managers[1].accept(asked, &reply(6), b"").unwrap();
    world.carry();
    assert!(matches!(world.failed(1), (id, Why::Refused { .. }) if id == asked));
}

#[test]
fn a_stranger_who_forges_messages_of_closed_ports_ends_neither_requests_nor_connections() {
    let mut world = World::pair();
    let (asking, _) = world.connect((5, 6));
    world.managers[0].connect(1, &request(7), b"").unwrap();
    let sent = world.managers[0].transmit().expect("it asks").bytes;
    let request = Mad::quoted_request(&sent).expect("a request");
    for bit in 0..64 {
        let transaction = TransactionId(request.transaction.0 ^ 1 << bit);
        world.managers[0].port_closed(QuotedRequest { transaction, ..request });
    }
    for bit in 0..32 {
        let id = CommId(request.id.0 ^ 1 << bit);
        world.managers[0].port_closed(QuotedRequest { id, ..request });
    }
    // Of a connection that stands, or that is answered, whoever sees the packets knows both.
    world.managers[1].receive(&0, &sent);
    let asked = world.asked(1);
    world.managers[1].accept(asked, &reply(8), b"").unwrap();
    world.carry();
    let answered = world.replied(0);
    for id in [asking, answered] {
        let id = id.comm_id();
        world.managers[0].port_closed(QuotedRequest { id, ..request });
    }
    world.no_event();
    assert_eq!(world.managers[0].counters().closed_ports, 0);
    world.managers[0].ready(answered, b"").unwrap();
    world.carry();
    assert_eq!(world.established(1), asked);
}

#[test]
fn a_reply_that_is_never_answered_is_given_up_and_the_peer_is_told() {
    let mut world = World::pair();
    let asking = world.managers[0].connect(1, &request(5), b"").unwrap();
    world.carry();
    let asked = world.asked(1);
    world.managers[1].accept(asked, &reply(6), b"").unwrap();
    world.carry();
    world.replied(0);
    world.managers[0].ready(asking, b"").unwrap();
    world.pass_but(millis(17), |_, kind| kind == Rtu);
    let (id, why) = world.failed(1);
    assert!(id == asked && timed_out(&why, Silent::Confirmation), "{why:?}");
    // Which believed that the connection stood.
    let (id, Why::Refused { reason, .. }) = world.ended(0) else { panic!() };
    assert_eq!((id, reason), (asking, RejectReason::TIMEOUT));
    assert_eq!(count(&world, Rtu), usize::from(RETRIES) + 1);
    world.pass(LONG);
    world.released(0);
    world.released(1);
    world.nothing_left();
}

/// The Linux kernel's manager finds a connection that is refused for want of time by the adapter
/// that the refusal names; without that it passed the refusal over, and its end went on waiting.
#[test]
fn who_refuses_for_want_of_time_says_which_adapter_it_is() {
    for late in [0, 1] {
        let mut world = World::pair();
        world.managers[0].connect(1, &request(5), b"").unwrap();
        world.carry();
        let asked = world.asked(1);
        world.managers[1].accept(asked, &reply(6), b"").unwrap();
        world.carry();
        let asking = world.replied(0);
        match late {
            // The program of one never says that it is ready, or all that it says is lost.
            0 => world.managers[0].reject(asking, RejectReason::TIMEOUT, b"").unwrap(),
            _ => world.managers[0].ready(asking, b"").unwrap(),
        }
        world.pass_but(millis(17), |_, kind| kind == Rtu);
        let (Event::Failed { why, .. } | Event::Ended { why, .. }) = world.event(1 - late) else {
            panic!()
        };
        let Why::Refused { reason, info, .. } = why else { panic!("{why:?}") };
        let guid = config(late).guid.0.to_be_bytes();
        assert_eq!((reason, info), (RejectReason::TIMEOUT, guid.to_vec()));
    }
    // Other reasons explain themselves.
    let mut world = World::pair();
    world.managers[0].connect(1, &request(5), b"").unwrap();
    world.carry();
    let asked = world.asked(1);
    world.managers[1].reject(asked, RejectReason::CONSUMER, b"").unwrap();
    world.carry();
    assert!(matches!(world.failed(0), (_, Why::Refused { info, .. }) if info.is_empty()));
}

#[test]
fn an_end_that_is_never_answered_is_given_up() {
    let mut world = World::pair();
    let (id, other) = world.connect((5, 6));
    world.said();
    world.managers[0].disconnect(id, b"").unwrap();
    world.pass_but(millis(17), |_, _| true);
    let (id, why) = world.ended(0);
    assert!(id == id && timed_out(&why, Silent::End), "{why:?}");
    assert_eq!(count(&world, Dreq), usize::from(RETRIES) + 1);
    world.pass(LONG);
    world.released(0);
    // The other side learns when it ends the connection itself.
    world.managers[1].disconnect(other, b"").unwrap();
    world.carry();
    assert!(matches!(world.ended(1), (_, Why::Agreed { .. })));
}

#[test]
fn a_program_that_never_decides_is_not_waited_for_for_ever() {
    let mut world = World::pair();
    let asking = world.managers[0].connect(1, &request(5), b"").unwrap();
    world.pass(LONG);
    let asked = world.asked(1);
    // The requester gives up first, and tells.
    let (id, why) = world.failed(0);
    assert!(id == asking && timed_out(&why, Silent::PeersProgram), "{why:?}");
    assert!(matches!(world.failed(1), (id, Why::Refused { .. }) if id == asked));
    world.released(0);
    world.released(1);
    world.nothing_left();

    let asking = world.managers[0].connect(1, &request(5), b"").unwrap();
    world.carry();
    let asked = world.asked(1);
    world.managers[1].accept(asked, &reply(6), b"").unwrap();
    world.pass(LONG);
    world.replied(0);
    assert!(matches!(world.failed(0), (id, Why::Refused { .. }) if id == asking));
    let (id, why) = world.failed(1);
    assert!(id == asked && timed_out(&why, Silent::Confirmation), "{why:?}");
    world.released(0);
    world.released(1);
    world.nothing_left();
}

#[test]
fn a_requester_that_vanished_is_not_waited_for_for_ever() {
    let mut world = World::pair();
    world.managers[0].connect(1, &request(5), b"").unwrap();
    world.carry();
    let asked = world.asked(1);
    world.managers[0] = manager(config(0), 99);
    world.pass(LONG);
    let (id, why) = world.failed(1);
    assert!(id == asked && timed_out(&why, Silent::OwnProgram), "{why:?}");
    world.released(1);
    world.nothing_left();
}

#[test]
fn what_comes_twice_is_answered_as_the_first_time_and_told_once() {
    let mut world = World::pair();
    let twice = |world: &mut World, from: usize, to: usize, answer: &[Kind]| {
        let datagram = world.managers[from].transmit().unwrap();
        world.managers[to].receive(&from, &datagram.bytes);
        let event = world.managers[to].event().expect("told the first time");
        while world.managers[to].transmit().is_some() {}
        world.managers[to].receive(&from, &datagram.bytes);
        assert_eq!(world.managers[to].event(), None);
        let again = std::iter::from_fn(|| world.managers[to].transmit());
        assert_eq!(again.map(|datagram| kind(&datagram.bytes)).collect::<Vec<_>>(), answer);
        event
    };
    let asking = world.managers[0].connect(1, &request(5), b"").unwrap();
    let Event::Asked { id: asked, .. } = twice(&mut world, 0, 1, &[Mra]) else { panic!() };
    world.managers[1].accept(asked, &reply(6), b"").unwrap();
    twice(&mut world, 1, 0, &[Mra]);
    world.managers[0].ready(asking, b"").unwrap();
    twice(&mut world, 0, 1, &[]);
    world.managers[0].disconnect(asking, b"").unwrap();
    twice(&mut world, 0, 1, &[Drep]);
}

#[test]
fn a_peer_that_pleads_for_patience_again_and_again_is_granted_it_once_a_message() {
    let mut world = World::pair();
    let asking = world.managers[0].connect(1, &request(5), b"").unwrap();
    world.carry();
    let asked = world.asked(1);
    // 67 ms each time, pleaded for every 30.
    for _ in 0..20 {
        let _ = world.managers[1].delay(asked, CmTimeout::new(14));
        world.pass_but(millis(30), |_, kind| kind == Rep);
    }
    // Four requests, and 71 ms for each.
    let (id, why) = world.failed(0);
    assert!(id == asking && timed_out(&why, Silent::PeersProgram), "{why:?}");
    assert_eq!(count(&world, Req), usize::from(RETRIES) + 1);
}

#[test]
fn no_wait_is_longer_or_shorter_than_configured() {
    let extreme = |timeout| {
        let mut configs = [config(0), config(1)];
        configs.iter_mut().for_each(|config| config.waits = millis(2)..=millis(8));
        let mut world = World::with(configs.to_vec());
        let mut asked = request(5);
        (asked.remote_timeout, asked.local_timeout) = (timeout, timeout);
        world.managers[0].connect(1, &asked, b"").unwrap();
        let mut waited = 0;
        while world.managers[0].event().is_none() {
            world.pass_but(millis(1), |_, _| true);
            waited += 1;
        }
        waited
    };
    assert_eq!(extreme(CmTimeout::new(0)), 9);
    assert_eq!(extreme(CmTimeout::MAX), 33);
}

#[test]
fn a_connection_ended_before_the_peer_heard_that_it_stood_is_ended_there() {
    let mut world = World::pair();
    let asking = world.managers[0].connect(1, &request(5), b"").unwrap();
    world.carry();
    let asked = world.asked(1);
    world.managers[1].accept(asked, &reply(6), b"").unwrap();
    world.carry();
    world.replied(0);
    world.managers[0].ready(asking, b"").unwrap();
    world.managers[0].disconnect(asking, b"").unwrap();
    world.carry_but(first(1, Rtu));
    assert!(matches!(world.failed(1), (id, Why::PeerLeft { .. }) if id == asked));
    assert!(matches!(world.ended(0), (id, Why::Agreed { .. }) if id == asking));
}

#[test]
fn garbage_is_counted_and_nothing_else() {
    let mut world = World::pair();
    let mut luck = Luck(1);
    for length in [0, 1, 24, 255, 256, 300] {
        let bytes: Vec<u8> = (0..length).map(|_| luck.draw() as u8).collect();
        world.managers[1].receive(&0, &bytes);
    }
    assert_eq!(world.managers[1].counters().malformed, 6);
    world.carry();
    assert_eq!(world.said(), []);
}

#[test]
fn a_request_that_comes_again_is_answered_as_it_was() {
    let mut world = World::pair();
    let asking = world.managers[0].connect(1, &request(5), b"").unwrap();
    let req = world.managers[0].transmit().unwrap().bytes;
    world.managers[1].receive(&0, &req);
    let asked = world.asked(1);
    world.managers[1].accept(asked, &reply(6), b"").unwrap();
    let rep = world.managers[1].transmit().unwrap().bytes;
    world.managers[1].receive(&0, &req);
    assert_eq!(world.managers[1].transmit().unwrap().bytes, rep);

    // A reply means nothing to who accepted.
    let mut mirrored = rep;
    mirrored[24..28].copy_from_slice(&asking.comm_id().0.to_be_bytes());
    mirrored[28..32].copy_from_slice(&asked.comm_id().0.to_be_bytes());
    world.managers[1].receive(&0, &mirrored);
    assert_eq!(world.managers[1].transmit(), None);
    world.managers[0].receive(&1, &rep);
    world.replied(0);
    world.managers[0].ready(asking, b"").unwrap();
    world.carry();
    world.established(1);
    world.managers[1].disconnect(asked, b"").unwrap();
    world.carry();
    world.said();
    // Nor does the request, now that the connection is over.
    world.managers[1].receive(&0, &req);
    world.carry();
    assert_eq!(world.said(), []);
}

#[test]
fn a_refusal_that_is_lost_is_repeated_as_it_was() {
    let refused = |(rejecting, reason): (usize, RejectReason)| {
        let mut world = World::pair();
        let mut lose = first(1, Rej);
        world.managers[0].connect(1, &request(5), b"").unwrap();
        world.carry();
        let asked = world.asked(1);
        let mut id = asked;
        if rejecting == 0 {
            world.managers[1].accept(asked, &reply(6), b"").unwrap();
            world.carry();
            id = world.replied(0);
        }
        world.managers[rejecting].reject(id, reason, b"why").unwrap();
        world.pass_but(millis(5), &mut lose);
        assert_eq!(count(&world, Rej), 2);
        let (_, Why::Refused { reason, private, .. }) = world.failed(1 - rejecting) else {
            panic!()
        };
        assert!(private.starts_with(b"why\0"));
        reason
    };
    for reason in [RejectReason::CONSUMER, RejectReason::INVALID_MTU] {
        assert_eq!(refused((0, reason)), reason);
        assert_eq!(refused((1, reason)), reason);
    }
}

#[test]
fn what_is_over_answers_to_repetitions_what_is_true_by_then() {
    // Ended by the peer before it heard that the connection stood: the reply is not repeated.
    let mut world = World::pair();
    world.managers[0].connect(1, &request(5), b"").unwrap();
    let req = world.managers[0].transmit().unwrap().bytes;
    world.managers[1].receive(&0, &req);
    let asked = world.asked(1);
    world.managers[1].accept(asked, &reply(6), b"").unwrap();
    world.carry();
    let asking = world.replied(0);
    world.managers[0].ready(asking, b"").unwrap();
    world.managers[0].disconnect(asking, b"").unwrap();
    world.carry_but(first(1, Rtu));
    world.failed(1);
    world.said();
    world.managers[1].receive(&0, &req);
    world.carry();
    assert_eq!(world.said(), []);

    // Withdrawn by the peer: it is not asked for patience.
    let mut world = World::pair();
    let asking = world.managers[0].connect(1, &request(5), b"").unwrap();
    let req = world.managers[0].transmit().unwrap().bytes;
    world.managers[1].receive(&0, &req);
    world.asked(1);
    world.managers[0].cancel(asking).unwrap();
    world.carry();
    world.failed(1);
    world.said();
    world.managers[1].receive(&0, &req);
    world.carry();
    assert_eq!(world.said(), []);
}

//! Making, refusing and ending a connection, with nothing lost.

use doorbell_core::cm::{ConnectionError, ConnectionState, Event, Why};
use doorbell_core::wire::cm::{Answered, CmTimeout, Failover, Mad, Message, RejectReason, TooLong};
use doorbell_core::wire::{Psn, Qpn};

use crate::connections::common::Kind::*;
use crate::connections::common::*;

#[test]
fn both_sides_learn_of_the_other_what_they_need() {
    let mut world = World::pair();
    let proposed = request(5);
    let asking = world.managers[0].connect(1, &proposed, b"who").unwrap();
    world.carry();
    let Event::Asked { id, way, request, extensions, private } = world.event(1) else { panic!() };
    assert_eq!((way, *request, extensions.is_empty()), (0, proposed, true));
    assert_eq!((private.len(), private.starts_with(b"who\0")), (92, true));
    assert_eq!(world.managers[1].state(id), Some(ConnectionState::ReqReceived));

    world.managers[1].accept(id, &reply(6), b"me").unwrap();
    world.carry();
    let Event::Replied { id: replied, reply: taken, private, .. } = world.event(0) else {
        panic!()
    };
    assert_eq!((replied, *taken), (asking, reply(6)));
    assert_eq!((taken.qpn, taken.psn), (Qpn::new(6), Psn::new(54)));
    assert_eq!((private.len(), private.starts_with(b"me\0")), (196, true));

    world.managers[0].ready(asking, b"go").unwrap();
    world.carry();
    let Event::Established { private, .. } = world.event(1) else { panic!() };
    assert!(private.starts_with(b"go\0"));
    assert_eq!(world.said(), [(0, Req), (1, Rep), (0, Rtu)]);
    world.no_event();
}

#[test]
fn either_side_ends_a_connection_and_its_queue_pairs_come_back_after_the_time_wait() {
    for leaver in [0, 1] {
        let mut world = World::pair();
        let ids = world.connect((5, 6));
        let ids = [ids.0, ids.1];
        world.said();
        world.managers[leaver].disconnect(ids[leaver], b"bye").unwrap();
        world.carry();
        assert_eq!(world.said(), [(leaver, Dreq), (1 - leaver, Drep)]);
        let (id, why) = world.ended(1 - leaver);
        assert_eq!(id, ids[1 - leaver]);
        assert!(matches!(why, Why::PeerLeft { private } if private.starts_with(b"bye\0")));
        assert!(matches!(world.ended(leaver), (id, Why::Agreed { .. }) if id == ids[leaver]));
        world.no_event();

        let taken = world.managers[0].connect(1, &request(5), b"").unwrap_err();
        assert_eq!(taken, ConnectionError::QueuePairTaken { qpn: Qpn::new(5), by: ids[0] });
        world.pass(millis(31));
        assert_eq!(world.released(0), (ids[0], Some(Qpn::new(5))));
        assert_eq!(world.released(1), (ids[1], Some(Qpn::new(6))));
        assert_eq!(world.managers[0].state(ids[0]), None);
        world.nothing_left();
        world.connect((5, 6));
    }
}

#[test]
fn both_sides_end_a_connection_at_once() {
    let mut world = World::pair();
    let (a, b) = world.connect((5, 6));
    world.managers[0].disconnect(a, b"").unwrap();
    world.managers[1].disconnect(b, b"").unwrap();
    world.carry();
    assert!(matches!(world.ended(0), (_, Why::PeerLeft { .. } | Why::Agreed { .. })));
    assert!(matches!(world.ended(1), (_, Why::PeerLeft { .. } | Why::Agreed { .. })));
    world.pass(LONG);
    assert_eq!((world.released(0).0, world.released(1).0), (a, b));
    world.no_event();
    world.nothing_left();
}

#[test]
fn a_refusal_arrives_with_its_reason_and_what_was_said() {
    let mut world = World::pair();
    let asking = world.managers[0].connect(1, &request(5), b"").unwrap();
    world.carry();
    let asked = world.asked(1);
    world.managers[1].reject(asked, RejectReason::CONSUMER, b"not you").unwrap();
    world.carry();
    let (id, Why::Refused { reason, private, .. }) = world.failed(0) else { panic!() };
    assert_eq!((id, reason), (asking, RejectReason::CONSUMER));
    assert!(private.starts_with(b"not you\0"));
    world.pass(LONG);
    assert_eq!(world.released(0), (asking, Some(Qpn::new(5))));
    assert_eq!(world.released(1), (asked, None));
    world.nothing_left();
}

/// Whoever proposes another path beside the first must hear that it is not kept for bad days.
#[test]
fn a_second_path_is_not_taken_up_and_that_is_said() {
    for proposed in [false, true] {
        let mut world = World::pair();
        world.managers[0].connect(1, &request(5), b"").unwrap();
        let datagram = world.managers[0].transmit().unwrap();
        let mut mad = Mad::parse(&datagram.bytes).unwrap();
        if let Message::Req(req) = &mut mad.message
            && proposed
        {
            req.alternate = req.primary;
        }
        let mut bytes = [0; Mad::LEN];
        mad.emit(&mut bytes);
        world.managers[1].receive(&0, &bytes);
        let asked = world.asked(1);
        world.managers[1].accept(asked, &reply(6), b"").unwrap();
        let datagram = world.managers[1].transmit().unwrap();
        let Message::Rep(rep) = Mad::parse(&datagram.bytes).unwrap().message else { panic!() };
        let expected = if proposed { Failover::UNSUPPORTED } else { Failover::ACCEPTED };
        assert_eq!(rep.failover, expected);
    }
}

#[test]
fn a_refusal_of_a_request_tells_no_name() {
    let mut world = World::pair();
    let asking = world.managers[0].connect(1, &request(5), b"").unwrap();
    world.carry();
    let asked = world.asked(1);
    world.managers[1].reject(asked, RejectReason::CONSUMER, b"").unwrap();
    let datagram = world.managers[1].transmit().unwrap();
    let Message::Rej(rej) = Mad::parse(&datagram.bytes).unwrap().message else { panic!() };
    assert_eq!((rej.local.0, rej.remote, rej.rejected), (0, asking.comm_id(), Answered::REQ));
}

#[test]
fn a_reply_can_be_refused() {
    let mut world = World::pair();
    let asking = world.managers[0].connect(1, &request(5), b"").unwrap();
    world.carry();
    let asked = world.asked(1);
    world.managers[1].accept(asked, &reply(6), b"").unwrap();
    world.carry();
    assert_eq!(world.replied(0), asking);
    world.managers[0].reject(asking, RejectReason::INVALID_MTU, b"").unwrap();
    world.carry();
    let (id, Why::Refused { reason, .. }) = world.failed(1) else { panic!() };
    assert_eq!((id, reason), (asked, RejectReason::INVALID_MTU));
    world.pass(LONG);
    assert_eq!(world.released(0), (asking, Some(Qpn::new(5))));
    assert_eq!(world.released(1), (asked, Some(Qpn::new(6))));
    world.no_event();
    world.nothing_left();
}

#[test]
fn an_acceptance_can_be_taken_back() {
    let mut world = World::pair();
    world.managers[0].connect(1, &request(5), b"").unwrap();
    world.carry();
    let asked = world.asked(1);
    world.managers[1].accept(asked, &reply(6), b"").unwrap();
    world.managers[1].reject(asked, RejectReason::NO_RESOURCES, b"").unwrap();
    world.carry();
    let asking = world.replied(0);
    let Why::Refused { reason, .. } = world.failed(0).1 else { panic!() };
    assert_eq!(reason, RejectReason::NO_RESOURCES);
    let late = world.managers[0].ready(asking, b"").unwrap_err();
    assert!(
        matches!(late, ConnectionError::State { found: ConnectionState::TimeWait, .. }),
        "{late}"
    );
    world.pass(LONG);
    world.released(0);
    world.released(1);
    world.nothing_left();
}

#[test]
fn a_request_that_is_withdrawn_is_withdrawn_at_the_peer_too() {
    let mut world = World::pair();
    let asking = world.managers[0].connect(1, &request(5), b"").unwrap();
    world.carry();
    let asked = world.asked(1);
    world.managers[0].cancel(asking).unwrap();
    world.carry();
    let (id, Why::Refused { reason, info, .. }) = world.failed(1) else { panic!() };
    assert_eq!((id, reason, info), (asked, RejectReason::TIMEOUT, 100_u64.to_be_bytes().to_vec()));
    let late = world.managers[1].accept(asked, &reply(6), b"").unwrap_err();
    assert!(
        matches!(late, ConnectionError::State { found: ConnectionState::TimeWait, .. }),
        "{late}"
    );
    world.pass(LONG);
    assert_eq!(world.released(0), (asking, Some(Qpn::new(5))));
    assert_eq!(world.released(1), (asked, None));
    world.no_event();
    world.nothing_left();
}

#[test]
fn data_that_arrives_before_the_message_establishes_a_connection() {
    let mut world = World::pair();
    let asking = world.managers[0].connect(1, &request(5), b"").unwrap();
    world.carry();
    let asked = world.asked(1);
    world.managers[1].accept(asked, &reply(6), b"").unwrap();
    world.carry();
    world.replied(0);
    world.managers[0].ready(asking, b"late").unwrap();
    world.managers[1].arrived(asked).unwrap();
    let Event::Established { private, .. } = world.event(1) else { panic!() };
    assert_eq!(private, []);
    world.carry();
    world.managers[1].arrived(asked).unwrap();
    world.no_event();
    assert_eq!(world.managers[1].counters().duplicates, 1);
}

#[test]
fn connections_asked_for_in_both_directions_at_once_are_two() {
    let mut world = World::pair();
    world.managers[0].listen(SERVICE, 1).unwrap();
    let asking = [0, 1].map(|me| {
        let qpn = 5 + me as u32;
        world.managers[me].connect(1 - me, &request(qpn), b"").unwrap()
    });
    world.carry();
    let asked = [0, 1].map(|me| world.asked(me));
    for (me, id) in asked.into_iter().enumerate() {
        world.managers[me].accept(id, &reply(15 + me as u32), b"").unwrap();
    }
    world.carry();
    for (me, id) in asking.into_iter().enumerate() {
        assert_eq!(world.replied(me), id);
        world.managers[me].ready(id, b"").unwrap();
    }
    world.carry();
    for (me, id) in asked.into_iter().enumerate() {
        assert_eq!(world.established(me), id);
        assert_eq!(world.managers[me].usage().live, 2);
    }
}

#[test]
fn a_manager_can_connect_to_itself() {
    let mut world = World::new(1);
    world.managers[0].listen(SERVICE, 1).unwrap();
    let asking = world.managers[0].connect(0, &request(5), b"").unwrap();
    world.carry();
    let asked = world.asked(0);
    world.managers[0].accept(asked, &reply(6), b"").unwrap();
    world.carry();
    assert_eq!(world.replied(0), asking);
    world.managers[0].ready(asking, b"").unwrap();
    world.carry();
    assert_eq!(world.established(0), asked);
    world.managers[0].disconnect(asked, b"").unwrap();
    world.carry();
    assert_eq!(world.ended(0).0, asking);
    assert_eq!(world.ended(0).0, asked);
    world.pass(LONG);
    world.released(0);
    world.released(0);
    world.nothing_left();
}

#[test]
fn a_program_that_thinks_is_waited_for_as_long_as_it_asked() {
    let mut world = World::pair();
    world.managers[0].connect(1, &request(5), b"").unwrap();
    world.carry();
    let asked = world.asked(1);
    // 4.3 s, far more than the 17 ms for which the requester repeats itself.
    world.managers[1].delay(asked, CmTimeout::new(20)).unwrap();
    world.said();
    world.pass(millis(4000));
    assert_eq!(world.said(), [(1, Mra)]);
    world.managers[1].accept(asked, &reply(6), b"").unwrap();
    world.carry();
    let asking = world.replied(0);
    // So may the requester.
    world.managers[0].delay(asking, CmTimeout::new(20)).unwrap();
    world.pass(millis(4000));
    world.managers[0].ready(asking, b"").unwrap();
    world.carry();
    assert_eq!(world.established(1), asked);
}

#[test]
fn a_program_that_thinks_and_says_nothing_is_waited_for_too() {
    let mut world = World::pair();
    world.managers[0].connect(1, &request(5), b"").unwrap();
    world.carry();
    let asked = world.asked(1);
    // Each repetition of the request is put off by a second.
    world.pass(millis(2000));
    assert_eq!(world.said(), [(0, Req), (0, Req), (1, Mra), (0, Req), (1, Mra)]);
    world.managers[1].accept(asked, &reply(6), b"").unwrap();
    world.carry();
    let asking = world.replied(0);
    world.pass(millis(2000));
    world.managers[0].ready(asking, b"").unwrap();
    world.carry();
    assert_eq!(world.established(1), asked);
}

#[test]
fn what_a_state_has_no_use_for_is_refused_with_what_would_have() {
    let mut world = World::pair();
    let asking = world.managers[0].connect(1, &request(5), b"").unwrap();
    let errors = [
        world.managers[0].accept(asking, &reply(6), b"").unwrap_err(),
        world.managers[0].ready(asking, b"").unwrap_err(),
        world.managers[0].reject(asking, RejectReason::CONSUMER, b"").unwrap_err(),
        world.managers[0].delay(asking, CmTimeout::new(1)).unwrap_err(),
        world.managers[0].disconnect(asking, b"").unwrap_err(),
        world.managers[0].arrived(asking).unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, ConnectionError::State { .. }));
        let text = error.to_string();
        assert!(text.contains("in state ReqSent: that is for "), "{text}");
    }
    world.carry();
    let asked = world.asked(1);
    let stranger = world.managers[0].ready(asked, b"").unwrap_err();
    assert_eq!(stranger, ConnectionError::NoSuchConnection(asked));
    let error = world.managers[1].cancel(asked).unwrap_err();
    assert!(error.to_string().contains("cancelled in state ReqReceived"), "{error}");
}

#[test]
fn private_data_that_is_too_long_changes_nothing() {
    let too_long = |given, limit| ConnectionError::TooLong(TooLong { given, limit });
    let long = [1; 230];
    let mut world = World::pair();
    let error = world.managers[0].connect(1, &request(5), &long[..93]).unwrap_err();
    let text =
        "93 bytes of private data do not go into a request: it takes 92, of which 76 leave room";
    assert!(error.to_string().starts_with(text), "{error}");
    assert_eq!(world.managers[0].usage().places, 0);
    let asking = world.managers[0].connect(1, &request(5), &long[..92]).unwrap();
    world.carry();
    let asked = world.asked(1);
    let error = world.managers[1].accept(asked, &reply(6), &long[..197]).unwrap_err();
    let text =
        "197 bytes of private data do not go into a reply: it takes 196, of which 180 leave room";
    assert!(error.to_string().starts_with(text), "{error}");
    let error = world.managers[1].reject(asked, RejectReason::CONSUMER, &long[..149]).unwrap_err();
    assert_eq!(error, too_long(149, 148));
    world.managers[1].accept(asked, &reply(6), &long[..196]).unwrap();
    world.carry();
    world.replied(0);
    assert_eq!(world.managers[0].ready(asking, &long[..225]).unwrap_err(), too_long(225, 224));
    world.managers[0].ready(asking, &long[..224]).unwrap();
    world.carry();
    world.established(1);
    let error = world.managers[1].disconnect(asked, &long[..221]).unwrap_err();
    assert_eq!(error, too_long(221, 220));
    world.managers[1].disconnect(asked, &long[..220]).unwrap();
    world.carry();
    let (_, Why::PeerLeft { private }) = world.ended(0) else { panic!() };
    assert_eq!(private, long[..220]);
}

#[test]
fn a_queue_pair_has_one_connection_on_either_side() {
    let mut world = World::pair();
    let (a, b) = world.connect((5, 6));
    let taken = |qpn, by| ConnectionError::QueuePairTaken { qpn: Qpn::new(qpn), by };
    assert_eq!(world.managers[0].connect(1, &request(5), b""), Err(taken(5, a)));
    world.managers[0].connect(1, &request(7), b"").unwrap();
    world.carry();
    let asked = world.asked(1);
    assert_eq!(world.managers[1].accept(asked, &reply(6), b""), Err(taken(6, b)));
    world.managers[1].accept(asked, &reply(8), b"").unwrap();
}

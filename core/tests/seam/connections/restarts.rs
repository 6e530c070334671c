//! Peers that began anew, and messages from the past.

use doorbell_core::cm::{Config, ConnectionState, Event, Reply, Request, Why};
use doorbell_core::wire::cm::{CmRetries, RejectReason};
use doorbell_core::wire::{CaGuid, Psn, Qpn, ServiceId};

use crate::connections::common::Kind::*;
use crate::connections::common::*;

/// A station begins anew as one that has another GUID each time it is opened.
fn begin_anew(world: &mut World, station: usize, seed: u64) {
    let guid = CaGuid(1000 + seed);
    world.managers[station] = manager(Config { guid, ..config(station) }, seed);
    world.managers[station].advance(world.now);
}

/// A request that is repeated for as long as it takes to verify a claim, and for numbers to rest.
fn patient(qpn: u32) -> Request {
    Request { retries: CmRetries::MAX, ..request(qpn) }
}

/// A claim of a stranger closed a connection as stale.
#[test]
fn a_claim_to_a_connection_ends_nothing_while_its_peer_is_there() {
    let mut world = World::pair();
    let (_, id) = world.connect((5, 6));
    world.said();
    // At the peer's address, with its GUID: who was connected once knows it. It guesses the rest.
    world.managers[0] = manager(config(0), 99);
    world.managers[0].connect(1, &patient(5), b"").unwrap();
    world.carry();
    assert_eq!(world.said(), [(0, Req)]);
    assert_eq!(world.claimed(1), id);
    // The peer answers when it is asked on the connection, so the program does nothing.
    world.pass(millis(19));
    assert!(world.said().iter().all(|&(from, kind)| (from, kind) == (0, Req)));
    world.no_event();
    world.pass(millis(5));
    let Why::Refused { reason, .. } = world.failed(0).1 else { panic!() };
    assert_eq!(reason, RejectReason::STALE_CONNECTION);
    assert_eq!(world.managers[1].state(id), Some(ConnectionState::Established));
    assert_eq!(world.managers[1].counters().stale, 1);
    world.no_event();
}

#[test]
fn a_peer_that_began_anew_with_the_same_guid_gets_in_when_its_old_connection_was_found_dead() {
    for same_name in [false, true] {
        let mut world = World::pair();
        let (_, old) = world.connect((5, 6));
        // The same seed: it gives its first connection the same name.
        world.managers[0] = manager(config(0), if same_name { 1 } else { 99 });
        let asking = world.managers[0].connect(1, &patient(if same_name { 8 } else { 5 }), b"");
        world.carry();
        assert_eq!(world.claimed(1), old);
        // The queue pair breaks, for nobody answers there; the program then ends the connection.
        world.managers[1].disconnect(old, b"").unwrap();
        // One that has a request of its own by that name does not answer to the end of another.
        world.pass(millis(if same_name { 17 } else { 0 }));
        assert_eq!(world.ended(1).0, old);
        // Its numbers rest before the peer may have another connection with them.
        world.pass(millis(28));
        world.no_event();
        world.pass(millis(6));
        assert_eq!(world.released(1).0, old);
        let asked = world.asked(1);
        world.managers[1].accept(asked, &reply(6), b"").unwrap();
        world.carry();
        assert_eq!(world.replied(0), asking.unwrap());
    }
}

#[test]
fn a_peer_that_began_anew_before_it_was_answered_is_asked_for_by_another_name() {
    let mut world = World::pair();
    world.managers[0].connect(1, &request(5), b"").unwrap();
    world.carry();
    let old = world.asked(1);
    begin_anew(&mut world, 0, 99);
    world.connect((5, 6));
    assert_eq!(world.managers[1].state(old), Some(ConnectionState::ReqReceived));
    world.pass(LONG);
    assert!(matches!(world.failed(1), (id, Why::TimedOut { .. }) if id == old));
}

#[test]
fn a_responder_that_claims_a_connection_which_works_is_not_believed() {
    let mut world = World::pair();
    let (old, _) = world.connect((5, 6));
    for same_name in [false, true] {
        world.managers[1] = manager(config(1), if same_name { 2 } else { 99 });
        world.managers[1].advance(world.now);
        world.managers[1].listen(SERVICE, 1).unwrap();
        let asking = world.managers[0].connect(1, &patient(7), b"").unwrap();
        world.carry();
        let asked = world.asked(1);
        // The queue pair, or the name, that the old connection has.
        let qpn = if same_name { 8 } else { 6 };
        world.managers[1].accept(asked, &Reply::new(Qpn::new(qpn), Psn::new(1)), b"").unwrap();
        world.carry();
        assert_eq!(world.claimed(0), old);
        world.pass(millis(24));
        assert_eq!(world.failed(0), (asking, Why::Stale));
        let (id, Why::Refused { reason, .. }) = world.failed(1) else { panic!() };
        assert_eq!((id, reason), (asked, RejectReason::STALE_CONNECTION));
        assert_eq!(world.managers[0].state(old), Some(ConnectionState::Established));
        world.pass(LONG);
        world.released(0);
    }
}

#[test]
fn a_newcomer_at_a_peers_address_is_told_of_and_taken_as_any_other() {
    let mut world = World::pair();
    let (_, old) = world.connect((5, 6));
    begin_anew(&mut world, 0, 99);
    // The same numbers mean nothing under another GUID.
    let asking = world.managers[0].connect(1, &request(5), b"").unwrap();
    world.carry();
    assert_eq!(world.event(1), Event::Newcomer { way: 0, qpn: Qpn::new(5) });
    let asked = world.asked(1);
    world.managers[1].accept(asked, &reply(7), b"").unwrap();
    world.carry();
    assert_eq!(world.replied(0), asking);
    world.managers[0].ready(asking, b"").unwrap();
    world.carry();
    assert_eq!(world.established(1), asked);
    assert_eq!(world.managers[1].state(old), Some(ConnectionState::Established));
    let peers = [old, asked].map(|id| world.managers[1].peer(id));
    assert_eq!(peers, [Some(config(0).guid), Some(CaGuid(1099))]);
    // With the old one gone, there is nobody beside the newcomer.
    world.managers[1].disconnect(old, b"").unwrap();
    world.carry();
    world.ended(1);
    world.managers[0].connect(1, &request(9), b"").unwrap();
    world.carry();
    world.asked(1);
    world.no_event();
}

/// A queue pair number of the process with this tag.
fn of_process(tag: u32) -> u32 {
    tag << (24 - config(0).tag_bits) | 5
}

#[test]
fn a_newcomer_of_another_tag_has_replaced_nobody() {
    let mut world = World::pair();
    world.connect((of_process(1), 6));
    for (tag, told) in [(2, false), (1, true)] {
        begin_anew(&mut world, 0, 99 + u64::from(tag));
        world.managers[0].connect(1, &request(of_process(tag)), b"").unwrap();
        world.carry();
        if told {
            let qpn = Qpn::new(of_process(tag));
            assert_eq!(world.event(1), Event::Newcomer { way: 0, qpn });
        }
        world.asked(1);
        world.no_event();
    }
}

#[test]
fn who_asks_for_what_is_not_here_is_no_newcomer() {
    let mut world = World::pair();
    world.connect((5, 6));
    begin_anew(&mut world, 0, 99);
    let elsewhere = Request { service: ServiceId(0x5678), ..request(5) };
    world.managers[0].connect(1, &elsewhere, b"").unwrap();
    world.carry();
    assert!(matches!(world.failed(0), (_, Why::Refused { .. })));
    world.no_event();
}

#[test]
fn newcomers_and_claims_are_told_of_no_more_than_once_a_while() {
    let mut world = World::pair();
    let (_, id) = world.connect((5, 6));
    let mut stranger = manager(config(0), 99);
    let req = |stranger: &mut Manager, qpn| {
        stranger.connect(1, &request(qpn), b"").unwrap();
        stranger.transmit().unwrap().bytes
    };
    // All queue pair numbers with the peer's GUID, and as many GUIDs.
    let claim = req(&mut stranger, 5);
    for number in 0..10_000_u32 {
        let mut forged = claim;
        forged[24 + 33..24 + 35].copy_from_slice(&(number as u16).to_be_bytes());
        forged[24..28].copy_from_slice(&number.to_be_bytes());
        world.managers[1].receive(&0, &forged);
        forged[24 + 16..24 + 24].copy_from_slice(&(u64::from(number) << 32).to_be_bytes());
        world.managers[1].receive(&0, &forged);
        if number % 4 == 0 {
            world.managers[1].transmit();
        }
    }
    let mut told = (0, 0);
    while let Some(event) = world.managers[1].event() {
        match event {
            Event::Claimed { id: claimed } => {
                assert_eq!(claimed, id);
                told.0 += 1;
            }
            Event::Newcomer { .. } => told.1 += 1,
            Event::Asked { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(told, (1, 1));
    assert_eq!(world.managers[1].state(id), Some(ConnectionState::Established));
}

/// A requester withdraws what it has not had an answer to. Such a message needs no name of ours, so
/// it must not end what stands.
#[test]
fn a_withdrawn_request_ends_no_connection_that_stands() {
    let mut world = World::pair();
    let asking = world.managers[0].connect(1, &request(5), b"").unwrap();
    let mut twin = manager(config(0), 1);
    twin.connect(1, &request(5), b"").unwrap();
    world.carry();
    let asked = world.asked(1);
    world.managers[1].accept(asked, &reply(6), b"").unwrap();
    world.carry();
    world.replied(0);
    world.managers[0].ready(asking, b"").unwrap();
    world.carry();
    world.established(1);
    twin.cancel(asking).unwrap();
    while let Some(datagram) = twin.transmit() {
        world.managers[1].receive(&0, &datagram.bytes);
    }
    assert_eq!(world.managers[1].state(asked), Some(ConnectionState::Established));
}

/// Whoever knows both names of a connection, as they are not secret to who sees packets, but has
/// not seen the request.
#[test]
fn a_refusal_that_does_not_name_the_transaction_ends_nothing() {
    let mut world = World::pair();
    let (_, id) = world.connect((5, 6));
    let mut other = World::pair();
    let asking = other.managers[0].connect(1, &request(5), b"").unwrap();
    other.carry();
    let asked = other.asked(1);
    other.managers[1].accept(asked, &reply(6), b"").unwrap();
    other.carry();
    other.replied(0);
    other.managers[0].reject(asking, RejectReason::CONSUMER, b"").unwrap();
    let rej = other.managers[0].transmit().unwrap();
    assert_eq!(kind(&rej.bytes), Rej);
    world.managers[1].receive(&0, &changed(&rej.bytes, 15));
    assert_eq!(world.managers[1].state(id), Some(ConnectionState::Established));
    world.managers[1].receive(&0, &rej.bytes);
    assert!(matches!(world.ended(1), (ended, Why::Refused { .. }) if ended == id));
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
    assert_eq!(world.managers[0].state(asking), Some(ConnectionState::DreqSent));
    assert_eq!(world.managers[1].state(asked), Some(ConnectionState::Established));
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
        assert_eq!(world.managers[1].state(other), Some(ConnectionState::Established));
    }
    world.managers[1].receive(&0, &dreq.bytes);
    assert!(matches!(world.ended(1), (_, Why::PeerLeft { .. })));
}

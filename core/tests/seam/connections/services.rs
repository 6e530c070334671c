//! Who is asked, how much at a time, and what the others are told.

use doorbell_core::cm::{Config, ConfigError, ConnectionError, ListenError, Request, Why};
use doorbell_core::wire::cm::{
    CmPort, CmRetries, IpCm, IpPair, Mad, Message, PathMtuCode, RejectReason, TransportService,
};
use doorbell_core::wire::{CaGuid, Psn, Qpn, ServiceId};

use crate::connections::common::Kind::*;
use crate::connections::common::*;

fn refusal(world: &mut World) -> RejectReason {
    match world.failed(0).1 {
        Why::Refused { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nobody_serves_what_nobody_listens_to() {
    let mut world = World::new(2);
    world.managers[0].connect(1, &request(5), b"").unwrap();
    world.carry();
    assert_eq!(refusal(&mut world), RejectReason::INVALID_SERVICE_ID);
    assert_eq!(world.managers[1].counters().no_such_service, 1);
    world.pass(LONG);
    world.released(0);
    world.nothing_left();
}

#[test]
fn a_request_beyond_the_backlog_finds_room_when_it_is_repeated() {
    let mut world = World::new(2);
    world.managers[1].listen(SERVICE, 2).unwrap();
    let asking = [5, 6, 7].map(|qpn| world.managers[0].connect(1, &request(qpn), b"").unwrap());
    world.carry();
    let first = world.asked(1);
    world.asked(1);
    world.no_event();
    assert_eq!(world.managers[1].counters().backlog_full, 1);
    world.managers[1].accept(first, &reply(15), b"").unwrap();
    world.pass(millis(10));
    assert_eq!(world.replied(0), asking[0]);
    let third = world.asked(1);
    world.managers[1].accept(third, &reply(17), b"").unwrap();
    world.carry();
    assert_eq!(world.replied(0), asking[2]);
}

#[test]
fn a_table_that_is_full_refuses_for_good() {
    let mut small = config(1);
    small.connections = 1;
    let mut world = World::with(vec![config(0), small]);
    world.managers[1].listen(SERVICE, 8).unwrap();
    world.connect((5, 15));
    world.managers[0].connect(1, &request(6), b"").unwrap();
    world.carry();
    assert_eq!(refusal(&mut world), RejectReason::NO_RESOURCES);
    assert_eq!(world.managers[1].counters().table_full, 1);
    let full = world.managers[1].connect(0, &request(9), b"").unwrap_err();
    assert_eq!(full, ConnectionError::Full(1));
}

#[test]
fn what_is_over_takes_its_own_room_first() {
    let mut small = config(0);
    (small.connections, small.time_waits) = (1, 1);
    let mut world = World::with(vec![small, config(1)]);
    world.managers[1].listen(SERVICE, 8).unwrap();
    for qpns in [(5, 15), (6, 16)] {
        let (a, _) = world.connect(qpns);
        world.managers[0].disconnect(a, b"").unwrap();
        world.carry();
        world.ended(0);
        world.ended(1);
    }
    let full = world.managers[0].connect(1, &request(7), b"").unwrap_err();
    assert_eq!(full, ConnectionError::TimeWaits(2));
    world.pass(LONG);
    // A place is free when its last event is taken, and not before.
    assert_eq!(world.managers[0].connect(1, &request(7), b""), Err(full));
    world.released(0);
    world.managers[0].connect(1, &request(7), b"").unwrap();
}

#[test]
fn services_are_listened_to_once_and_are_limited() {
    let mut manager = manager(Config { services: 2, ..config(0) }, 1);
    let [a, b, c] = [1, 2, 3].map(ServiceId);
    assert_eq!(manager.listen(a, 0), Err(ListenError::NoBacklog(a)));
    manager.listen(a, 1).unwrap();
    assert_eq!(manager.listen(a, 1), Err(ListenError::Taken(a)));
    assert_eq!(manager.others_listen(a, true), Err(ListenError::Taken(a)));
    manager.listen(b, 1).unwrap();
    assert_eq!(manager.listen(c, 1), Err(ListenError::Full { service: c, limit: 2 }));
    manager.stop(a).unwrap();
    assert_eq!(manager.stop(a), Err(ListenError::NotListening(a)));
    manager.listen(c, 1).unwrap();
}

#[test]
fn what_was_asked_before_a_listener_stopped_may_be_decided_after() {
    let mut world = World::pair();
    world.managers[0].connect(1, &request(5), b"").unwrap();
    world.carry();
    let asked = world.asked(1);
    world.managers[1].stop(SERVICE).unwrap();
    // Another listener's backlog has nothing to do with it.
    world.managers[1].listen(SERVICE, 1).unwrap();
    world.managers[1].accept(asked, &reply(6), b"").unwrap();
    world.carry();
    world.replied(0);
    world.managers[0].connect(1, &request(7), b"").unwrap();
    world.managers[0].connect(1, &request(8), b"").unwrap();
    world.carry();
    world.asked(1);
    world.no_event();
}

#[test]
fn what_is_not_served_is_refused_with_the_reason() {
    let refused = |change: fn(&mut doorbell_core::wire::cm::Req<'_>)| {
        let mut world = World::pair();
        world.managers[0].connect(1, &request(5), b"").unwrap();
        let datagram = world.managers[0].transmit().unwrap();
        let Mad { transaction, message } = Mad::parse(&datagram.bytes).unwrap();
        let Message::Req(mut req) = message else { panic!() };
        change(&mut req);
        let mut changed = [0; Mad::LEN];
        Mad { transaction, message: req.into() }.emit(&mut changed);
        world.managers[1].receive(&0, &changed);
        world.carry();
        assert_eq!(world.managers[1].counters().unsupported, 1);
        refusal(&mut world)
    };
    assert_eq!(refused(|req| req.path_mtu = PathMtuCode::new(9)), RejectReason::INVALID_MTU);
    let datagrams = |req: &mut doorbell_core::wire::cm::Req<'_>| {
        req.transport = TransportService::RELIABLE_DATAGRAM;
    };
    assert_eq!(refused(datagrams), RejectReason::INVALID_TRANSPORT);
}

#[test]
fn a_port_is_asked_for_with_ip_addressing_and_nothing_else_is() {
    let addresses = IpPair::V4 { source: [10, 0, 0, 1].into(), destination: [10, 0, 0, 2].into() };
    let addressing = IpCm { source_port: CmPort(1), addresses };
    let good = Request::to_port(CmPort(7), Qpn::new(5), Psn::new(1), addressing);
    let mut manager = manager(config(0), 1);
    let bare = Request { addressing: None, ..good };
    let error = manager.connect(1, &bare, b"").unwrap_err();
    assert!(error.to_string().contains("is a port of `rdma_cm`'s, and the request has no IP"));
    let odd = Request { service: SERVICE, ..good };
    let error = manager.connect(1, &odd, b"").unwrap_err();
    assert!(error.to_string().contains("isn't a port of `rdma_cm`'s, and the request has an IP"));
    manager.connect(1, &good, b"").unwrap();
}

#[test]
fn a_manager_that_cannot_be_is_refused_with_the_reason() {
    let new = |config| Manager::new(config, doorbell_core::nic::Seed::from_number(1)).err();
    let plain = Config::new(CaGuid(1));
    assert_eq!(new(Config { connections: 0, ..plain.clone() }), Some(ConfigError::NoConnections));
    let many = new(Config { connections: 1 << 20, tag_bits: 6, ..plain.clone() });
    assert!(matches!(many, Some(ConfigError::Names { needed: 21, .. })));
    assert_eq!(new(plain), None);
}

#[test]
fn datagrams_beyond_the_room_for_them_are_said_again_later() {
    let mut world = World::with(vec![Config { outgoing: 1, ..config(0) }, config(1)]);
    world.managers[1].listen(SERVICE, 8).unwrap();
    for qpn in 5..8 {
        let patient = Request { retries: CmRetries::MAX, ..request(qpn) };
        world.managers[0].connect(1, &patient, b"").unwrap();
    }
    assert_eq!(world.managers[0].counters().crowded_out, 2);
    world.carry();
    assert_eq!(world.said(), [(0, Req)]);
    world.pass(millis(50));
    let asked = (0..3).map(|_| world.asked(1)).collect::<Vec<_>>();
    assert_eq!(asked.len(), 3, "{:?}", world.said());
}

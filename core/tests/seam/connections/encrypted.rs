//! Connections whose packets are to be encrypted: the handshake's messages come first, and nobody but
//! the peer ends what stands.

use doorbell_core::cm::{
    Config, ConnectionId, ConnectionState, Ending, Event, Extensions, Guard, Request, Why,
};
use doorbell_core::wire::cm::{
    CmPort, Dreq, IpCm, IpPair, Mad, Message, PrivateData, Rej, RejectReason,
};
use doorbell_core::wire::{Psn, Qpn, ServiceId};

use crate::connections::common::*;

/// Two stations that encrypt, of which the second listens to a service and to a port.
fn world() -> World {
    let extensions = Extensions::ENCRYPTION | Extensions::SELECTIVE_REPEAT;
    let configs = [0, 1].map(|n| Config { extensions, ..config(n) });
    let mut world = World::with(configs.to_vec());
    world.managers[1].listen(SERVICE, 4).unwrap();
    world.managers[1].listen(ServiceId::from_tcp_port(CmPort(7174)), 4).unwrap();
    world
}

fn to_port() -> Request {
    let addresses = IpPair::V4 { source: [10, 0, 0, 1].into(), destination: [10, 0, 0, 2].into() };
    let addressing = IpCm { source_port: CmPort(999), addresses };
    Request::to_port(CmPort(7174), Qpn::new(5), Psn::new(1), addressing)
}

const BY_KEYS: Extensions = Extensions::ENCRYPTED_BY_KEYS;

/// A guard whose seal is a word for each message.
#[derive(Debug)]
struct Seal;

fn word(message: Ending) -> u8 {
    match message {
        Ending::Request => 0xA5,
        Ending::Confirmation => 0x5A,
    }
}

impl Guard for Seal {
    fn seal(&mut self, message: Ending, private: &[u8]) -> Vec<u8> {
        [&[word(message)], private].concat()
    }

    fn open(&self, message: Ending, sealed: &[u8]) -> Option<Vec<u8>> {
        let (first, rest) = sealed.split_first()?;
        (*first == word(message)).then(|| rest.to_vec())
    }
}

/// Does what the programs at both stations do, as far as events ask for it: the handshake says `1`,
/// `2`, `3`, and then the programs speak. Returns what a station was told last.
fn serve(world: &mut World, station: usize) -> Option<Event<usize>> {
    let mut last = None;
    while let Some(event) = world.managers[station].event() {
        let manager = &mut world.managers[station];
        match &event {
            Event::Asked { id, extensions, private, .. } => {
                let len = extensions.handshake_len();
                assert_eq!(*private, vec![1; len]);
                let agreed = extensions.without(Extensions::AES_128_GCM);
                manager.answer(*id, &[2; 128], agreed).unwrap();
            }
            Event::Shaken { id, extensions, message } => {
                assert!(extensions.encrypt() && !extensions.include(Extensions::AES_128_GCM));
                assert!(message.starts_with(&[2; 128]));
                manager.guard(*id, Box::new(Seal)).unwrap();
                manager.confirm(*id, &[3; 200]).unwrap();
            }
            Event::Identified { id, message } => {
                assert!(message.starts_with(&[3; 200]));
                manager.guard(*id, Box::new(Seal)).unwrap();
                let agreed = manager.accept(*id, &reply(6), b"welcome").unwrap();
                assert!(agreed.include(Extensions::AES_256_GCM));
            }
            Event::Replied { id, reply, extensions, private } => {
                assert_eq!(reply.qpn, Qpn::new(6));
                assert!(extensions.encrypt() && private.starts_with(b"welcome"));
                manager.ready(*id, b"").unwrap();
            }
            _ => {}
        }
        last = Some(event);
    }
    last
}

/// Asks for a connection, and lets both sides go on until nothing more is sent, but for what is lost.
fn go_on(world: &mut World, mut lost: impl FnMut(usize, Kind) -> bool) -> Vec<(usize, Kind)> {
    for _ in 0..80 {
        world.pass_but(millis(2), &mut lost);
        serve(world, 0);
        serve(world, 1);
    }
    world.said()
}

fn ask(world: &mut World, request: &Request, by: Extensions) -> ConnectionId {
    let suites = Extensions::AES_256_GCM | Extensions::AES_128_GCM;
    let first = vec![1; by.handshake_len()];
    world.managers[0].connect_encrypted(1, request, &first, by | suites).unwrap()
}

fn stands(world: &mut World, id: ConnectionId) {
    assert_eq!(world.managers[0].state(id), Some(ConnectionState::Established));
    let usage = world.managers[1].usage();
    assert_eq!((usage.live, usage.half_open, usage.ways), (1, 0, 1));
}

#[test]
fn the_handshake_comes_first_and_then_the_programs_speak() {
    let by = [BY_KEYS, Extensions::ENCRYPTED_BY_KEYS_AND_SECRET, Extensions::ENCRYPTED_BY_SECRET];
    for (request, by) in by.into_iter().flat_map(|by| [(request(5), by), (to_port(), by)]) {
        let mut world = world();
        let id = ask(&mut world, &request, by);
        let said = go_on(&mut world, |_, _| false);
        use Kind::{Rep, Req, Rtu};
        assert_eq!(said, [(0, Req), (1, Rep), (0, Rtu), (1, Rep), (0, Rtu)], "{by:?}");
        stands(&mut world, id);
    }
}

#[test]
fn whatever_message_is_lost_once_the_connection_comes_to_stand() {
    for lost in 0..5 {
        let mut world = world();
        let id = ask(&mut world, &request(5), BY_KEYS);
        let mut sent = 0;
        go_on(&mut world, |_, _| {
            sent += 1;
            sent - 1 == lost
        });
        stands(&mut world, id);
    }
}

#[test]
fn copies_that_come_late_change_nothing() {
    let mut world = world();
    let id = ask(&mut world, &request(5), BY_KEYS);
    let (mut seen, mut sent) = (Vec::new(), 0);
    for _ in 0..12 {
        let mut fresh = Vec::new();
        for from in 0..2 {
            while let Some(datagram) = world.managers[from].transmit() {
                fresh.push((from, datagram.way, datagram.bytes));
            }
        }
        sent += fresh.len();
        for message in fresh {
            if !seen.contains(&message) {
                seen.push(message);
            }
        }
        // All that was ever sent comes again.
        for (from, way, bytes) in &seen {
            world.managers[*way].receive(from, bytes);
        }
        serve(&mut world, 0);
        serve(&mut world, 1);
    }
    stands(&mut world, id);
    assert!(sent < 200, "no storm of answers: {sent}");
}

#[test]
fn who_falls_silent_in_the_middle_is_given_up() {
    for last in 1..5 {
        let mut world = world();
        ask(&mut world, &request(5), BY_KEYS);
        let mut sent = 0;
        go_on(&mut world, |_, _| {
            sent += 1;
            sent > last
        });
        world.pass_but(LONG, |_, _| true);
        for station in 0..2 {
            while world.managers[station].event().is_some() {}
        }
        let half_open: usize = world.managers.iter().map(|manager| manager.usage().half_open).sum();
        let live = world.managers.iter().map(|manager| manager.usage().live).max();
        assert!(half_open == 0 && live <= Some(1), "after {last}: {live:?}");
    }
}

#[test]
fn where_a_program_does_not_answer_the_handshake_both_sides_give_up() {
    let mut world = world();
    world.managers[0].connect_encrypted(1, &request(5), &[1; 32], BY_KEYS).unwrap();
    world.pass(LONG);
    let Event::Asked { .. } = world.event(1) else { panic!() };
    world.failed(0);
    world.failed(1);
}

#[test]
fn nobody_but_the_peer_ends_a_connection_that_stands() {
    let mut world = world();
    let id = ask(&mut world, &request(5), BY_KEYS);
    let mut seen = Vec::new();
    for _ in 0..20 {
        for from in 0..2 {
            while let Some(datagram) = world.managers[from].transmit() {
                seen.push(datagram.bytes);
                world.managers[datagram.way].receive(&from, &datagram.bytes);
            }
        }
        serve(&mut world, 0);
        serve(&mut world, 1);
    }
    stands(&mut world, id);
    // Somebody on the path knows all numbers.
    let Mad { transaction, message: Message::Rep(rep) } = Mad::parse(&seen[3]).unwrap() else {
        panic!("the second REP")
    };
    let (local, remote) = (rep.local, rep.remote);
    let forged: [Message<'_>; 3] = [
        Dreq { local, remote, remote_qpn: Qpn::new(5), private: PrivateData::default() }.into(),
        Rej { local, remote, reason: RejectReason::CONSUMER, ..Rej::default() }.into(),
        rep.into(),
    ];
    for message in forged {
        let mut bytes = [0; Mad::LEN];
        Mad { transaction, message }.emit(&mut bytes);
        world.managers[0].receive(&1, &bytes);
    }
    assert_eq!(world.managers[0].event(), None);
    assert_eq!(world.managers[0].counters().not_authentic, 2);
    assert_eq!(world.managers[0].state(id), Some(ConnectionState::Established));
    // A request for another connection with the same numbers, as if the peer had begun anew.
    for _ in 0..3 {
        world.managers[1].receive(&0, &seen[0]);
        world.pass(millis(25));
    }
    let Mad { message: Message::Req(req), .. } = Mad::parse(&seen[0]).unwrap() else { panic!() };
    let mut bytes = [0; Mad::LEN];
    let other = transaction.0.wrapping_add(1);
    Mad { transaction: doorbell_core::wire::TransactionId(other), message: req.into() }
        .emit(&mut bytes);
    world.managers[1].receive(&0, &bytes);
    assert_eq!(world.managers[1].event(), None, "nobody is asked, nothing ends");

    world.managers[0].disconnect(id, b"bye").unwrap();
    world.carry();
    let (_, Why::PeerLeft { private }) = world.ended(1) else { panic!() };
    assert!(private.starts_with(b"bye"));
    assert!(matches!(world.ended(0), (_, Why::Agreed { .. })));
}

#[test]
fn a_peer_that_does_not_encrypt_answers_in_the_clear_and_the_requester_is_told() {
    let mut world = World::pair();
    world.managers[0].connect_encrypted(1, &request(5), &[1; 32], BY_KEYS).unwrap();
    world.carry();
    let Event::Asked { id, extensions, .. } = world.event(1) else { panic!() };
    assert!(!extensions.encrypt());
    world.managers[1].accept(id, &reply(6), b"").unwrap();
    world.carry();
    let Event::Replied { extensions, .. } = world.event(0) else { panic!() };
    assert!(!extensions.encrypt());
}

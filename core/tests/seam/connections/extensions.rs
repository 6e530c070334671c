//! What is offered beyond the standard, and that standard peers see none of it.

use doorbell_core::cm::{Config, Event, Extensions, Request};
use doorbell_core::wire::cm::{CmPort, IpCm, IpPair, Mad, Message};
use doorbell_core::wire::{Psn, Qpn, ServiceId};

use crate::connections::common::*;

const METADATA: Extensions = Extensions::WRITE_WITH_METADATA;

/// Two stations that speak these, of which the second listens to a service and to a port.
fn speakers(extensions: [Extensions; 2]) -> World {
    let configs = [0, 1].map(|n| Config { extensions: extensions[n], ..config(n) });
    let mut world = World::with(configs.to_vec());
    world.managers[1].listen(SERVICE, 4).unwrap();
    world.managers[1].listen(ServiceId::from_tcp_port(CmPort(7174)), 4).unwrap();
    world
}

/// What the two sides agree upon, and what each is shown of the other's private data.
fn agree(
    world: &mut World,
    request: &Request,
    said: &[u8],
    back: &[u8],
) -> [(Extensions, Vec<u8>); 2] {
    world.managers[0].connect(1, request, said).unwrap();
    world.carry();
    let Event::Asked { id, request: shown, private: first, extensions, .. } = world.event(1) else {
        panic!()
    };
    assert_eq!(shown.addressing, request.addressing);
    let agreed = world.managers[1].accept(id, &reply(6), back).unwrap();
    assert!(extensions.include(agreed));
    world.carry();
    let Event::Replied { extensions, private: second, .. } = world.event(0) else { panic!() };
    assert_eq!(extensions, agreed, "both sides know the same");
    [(agreed, first), (extensions, second)]
}

fn to_port() -> Request {
    let addresses = IpPair::V4 { source: [10, 0, 0, 1].into(), destination: [10, 0, 0, 2].into() };
    let addressing = IpCm { source_port: CmPort(999), addresses };
    Request::to_port(CmPort(7174), Qpn::new(5), Psn::new(1), addressing)
}

fn zeros_behind(said: &[u8], room: usize) -> Vec<u8> {
    let mut private = said.to_vec();
    private.resize(room, 0);
    private
}

#[test]
fn what_both_speak_is_agreed_upon_and_hidden_from_the_applications() {
    for (request, room) in [(request(5), 76), (to_port(), 40)] {
        let said = vec![7; room];
        let back = vec![8; 180];
        let [first, second] = agree(&mut speakers([METADATA; 2]), &request, &said, &back);
        assert_eq!(first, (METADATA, said));
        assert_eq!(second, (METADATA, back));
    }
}

#[test]
fn an_application_that_leaves_no_room_is_not_disturbed() {
    for (request, room) in [(request(5), 92), (to_port(), 56)] {
        let said = vec![7; room - 15];
        let [first, second] = agree(&mut speakers([METADATA; 2]), &request, &said, b"");
        assert_eq!(first, (Extensions::NONE, zeros_behind(&said, room)));
        assert_eq!(second, (Extensions::NONE, vec![0; 196]));
    }
    let back = vec![8; 181];
    let [_, second] = agree(&mut speakers([METADATA; 2]), &request(5), b"", &back);
    assert_eq!(second, (Extensions::NONE, zeros_behind(&back, 196)));
}

#[test]
fn a_standard_peer_is_sent_what_the_standard_says() {
    // Which doesn't offer is answered without an offer.
    let [first, second] = agree(&mut speakers([Extensions::NONE, METADATA]), &request(5), b"", b"");
    assert_eq!(first, (Extensions::NONE, vec![0; 92]));
    assert_eq!(second, (Extensions::NONE, vec![0; 196]));
    // Which doesn't know offers answers without one. This one takes what it knows by the magic
    // number off the private data all the same.
    let [first, second] = agree(&mut speakers([METADATA, Extensions::NONE]), &request(5), b"", b"");
    assert_eq!(first, (Extensions::NONE, vec![0; 76]));
    assert_eq!(second, (Extensions::NONE, vec![0; 196]));
}

#[test]
fn nothing_that_was_not_offered_is_agreed_upon() {
    let mut world = speakers([Extensions::NONE; 2]);
    world.managers[0].connect(1, &request(5), b"").unwrap();
    world.carry();
    let asked = world.asked(1);
    world.managers[1].accept(asked, &reply(6), b"").unwrap();
    let mut datagram = world.managers[1].transmit().unwrap();
    // A peer that answers what it was not asked.
    datagram.bytes[240..].copy_from_slice(&[
        0xD0, 0x0B, 0xE1, 0x1F, 0x8A, 0x6C, 0x3E, 0x95, 0, 1, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF,
    ]);
    world.managers[0].receive(&1, &datagram.bytes);
    let Event::Replied { extensions, private, .. } = world.event(0) else { panic!() };
    assert_eq!((extensions, private), (Extensions::NONE, vec![0; 180]));
}

#[test]
fn the_offer_stands_where_it_is_documented() {
    let mut world = speakers([METADATA; 2]);
    world.managers[0].connect(1, &to_port(), b"app").unwrap();
    let datagram = world.managers[0].transmit().unwrap();
    let Message::Req(req) = Mad::parse(&datagram.bytes).unwrap().message else { panic!() };
    let (addressing, rest) = req.ip_cm().unwrap();
    assert_eq!(Some(addressing), to_port().addressing);
    assert!(rest.starts_with(b"app\0"));
    let offer = [0xD0, 0x0B, 0xE1, 0x1F, 0x8A, 0x6C, 0x3E, 0x95, 0, 1, 0, 0, 0, 0, 0, 1];
    assert_eq!(rest[40..], offer);
}

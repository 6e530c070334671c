//! More peers than are looked at in each turn.

use std::collections::HashSet;

use doorbell_kit::effort;
use doorbell_transports::Device;
use doorbell_transports::shm::Shm;

use crate::shm::common::*;

/// Turns of a device after which its silent links doze.
const LONG: usize = 10_000;

/// A device and so many others, each of which has a link to it.
fn hub(peers: usize) -> (Shm, Vec<(Shm, doorbell_core::encap::PathId)>) {
    let mut hub = Shm::join(&name("hub")).expect("a name");
    let peers = (0..peers).map(|_| {
        let mut peer = Shm::join(&name("peer")).expect("a name");
        let to_hub = reach(&mut peer, &mut hub);
        (peer, to_hub)
    });
    let peers = peers.collect();
    (hub, peers)
}

#[test]
fn each_of_many_peers_is_heard_whenever_it_says_something() {
    let (mut hub, mut peers) = hub(effort(150, 1500));
    let mut heard = Heard::default();
    for round in 0..3 {
        // Nobody says anything for so long that most links doze.
        for _ in 0..LONG {
            turn(&mut hub, &mut heard);
        }
        for (at, (peer, to_hub)) in peers.iter_mut().enumerate() {
            if at % 3 == round {
                send(peer, *to_hub, at as u32, b"here");
            }
        }
        let expected = (0..peers.len() as u32).filter(|at| *at as usize % 3 == round);
        let expected: HashSet<_> = expected.collect();
        until(|| {
            turn(&mut hub, &mut heard);
            heard.packets.len() == expected.len()
        });
        let numbers = heard.packets.drain(..).map(|(_, number, _)| number);
        assert_eq!(numbers.collect::<HashSet<_>>(), expected);
    }
}

#[test]
fn a_device_that_sleeps_is_woken_by_a_peer_whose_link_dozes() {
    let (mut hub, mut peers) = hub(100);
    let mut heard = Heard::default();
    for round in 0..300 {
        for _ in 0..if round % 100 == 0 { LONG } else { 10 } {
            turn(&mut hub, &mut heard);
        }
        hub.arm(None).expect("armed");
        assert_eq!(turn(&mut hub, &mut heard), 0);
        let (peer, to_hub) = &mut peers[round * 7 % 100];
        send(peer, *to_hub, round as u32, b"wake up");
        sleep(&hub);
        hub.disarm();
        until(|| turn(&mut hub, &mut heard) > 0);
        assert_eq!(heard.packets.pop().map(|(_, number, _)| number), Some(round as u32));
    }
}

#[test]
fn a_peer_that_leaves_while_its_link_dozes_is_told_of_and_makes_room() {
    let (mut hub, mut peers) = hub(100);
    let mut heard = Heard::default();
    for _ in 0..LONG {
        turn(&mut hub, &mut heard);
    }
    let (mut last, to_hub) = peers.remove(17);
    push(&mut last, to_hub, 5, b"farewell").expect("room");
    drop(last);
    until(|| {
        turn(&mut hub, &mut heard);
        heard.gone.len() == 1
    });
    assert_eq!(heard.packets.len(), 1, "what it wrote before is read");
    assert_eq!(heard.gone[0], heard.packets[0].0);
}

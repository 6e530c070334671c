//! Joining, reaching, leaving.

use doorbell_core::encap::PathId;
use doorbell_core::nic::Outbox;
use doorbell_kit::child;
use doorbell_transports::shm::{Limits, Shm};
use doorbell_transports::{Address, Device, DeviceError, ReachError};

use crate::shm::common::*;

#[test]
fn who_joined_is_reached_by_its_name_and_answered_by_the_same_link() {
    let [(mut a, to_b), (mut b, to_a)] = two();
    send(&mut a, to_b, 1, b"question");
    let mut heard = Heard::default();
    until(|| turn(&mut b, &mut heard) > 0);
    assert_eq!(heard.packets, [(to_a, 1, b"question".to_vec())]);
    send(&mut b, heard.packets[0].0, 2, b"answer");
    let mut heard = Heard::default();
    until(|| turn(&mut a, &mut heard) > 0);
    assert_eq!(heard.packets, [(to_b, 2, b"answer".to_vec())]);
}

#[test]
fn a_name_is_taken_until_its_device_is_dropped() {
    child::alone(|| {
        let name = name("wanted");
        let first = Shm::join(&name).expect("a free name");
        let Err(taken @ DeviceError::Taken { .. }) = Shm::join(&name) else {
            panic!("taken twice")
        };
        assert!(taken.to_string().contains(&name), "{taken}");
        drop(first);
        Shm::join(&name).expect("free again");
    });
}

#[test]
fn a_name_has_1_to_90_bytes() {
    let longest = format!("{:x<90}", name("longest"));
    Shm::join(&longest).expect("as long as may be");
    for wrong in ["", &format!("{longest}x")] {
        let error = doorbell_kit::chain(&Shm::join(wrong).expect_err("no name"));
        assert!(error.contains("1 to 90"), "{error}");
    }
}

#[test]
fn a_name_with_control_characters_is_refused_and_the_character_is_shown() {
    for (wrong, shown) in [("job\n", r"'\n'"), ("job\0", r"'\0'"), ("\u{9b}2J", r"'\u{9b}'")] {
        let error = Shm::join(wrong).expect_err("no name");
        assert!(matches!(error, DeviceError::Name { .. }), "{error}");
        let said = error.to_string();
        assert!(said.contains(shown) && !said.contains('\n'), "{said}");
        let address = Address::Shm(wrong.into());
        let error = Shm::join_unique().expect("a name").reach(&address).expect_err("no name");
        assert!(matches!(error, ReachError::NoPeers { .. }), "{error}");
    }
}

#[test]
fn devices_without_a_name_of_their_own_each_get_another_by_which_they_are_reached() {
    let [mut a, b, c] = [(); 3].map(|()| Shm::join_unique().expect("a name"));
    assert_ne!(a.address(), b.address());
    assert_ne!(b.address(), c.address());
    for peer in [b, c] {
        let mut peer = peer;
        let address: Address = peer.address().to_string().parse().expect("an address");
        until(|| {
            peer.receive(&mut Heard::default());
            a.reach(&address).expect("it is there").is_some()
        });
    }
}

#[test]
fn limits_that_can_not_be_are_refused() {
    let good = Limits::default();
    for limits in [
        Limits { peers: 0, ..good },
        Limits { peers: 4097, ..good },
        Limits { ring: 8 << 10, ..good },
        Limits { ring: 8 << 20, ..good },
        Limits { ring: 100_000, ..good },
    ] {
        assert!(matches!(Shm::pair_within(limits), Err(DeviceError::System { .. })), "{limits:?}");
    }
}

#[test]
fn nobody_is_reached_where_nobody_joined() {
    let mut device = Shm::join(&name("alone")).expect("a name");
    let nobody = device.reach(&Address::Shm(name("nobody").into()));
    assert!(matches!(nobody, Err(ReachError::Nobody { .. })), "{nobody:?}");
    let other = device.reach(&"udp:127.0.0.1:4791".parse().expect("an address"));
    assert!(matches!(other, Err(ReachError::Kind { .. })), "{other:?}");
    for wrong in ["".to_owned(), "n".repeat(91)] {
        let error = device.reach(&Address::Shm(wrong.into())).expect_err("it is no name");
        assert!(matches!(error, ReachError::NoPeers { .. }), "{error}");
    }
    let [mut a, _b] = Shm::pair().expect("a pair");
    let outside = a.reach(device.address());
    assert!(matches!(outside, Err(ReachError::Nobody { .. })), "{outside:?}");
}

#[test]
fn threads_that_reach_for_each_other_at_any_time_always_share_one_link() {
    for _ in 0..200 {
        let [a, b] = ["a", "b"].map(|what| Shm::join(&name(what)).expect("a name"));
        let addresses = [b.address().clone(), a.address().clone()];
        std::thread::scope(|scope| {
            for (mut device, peer) in [a, b].into_iter().zip(&addresses) {
                scope.spawn(move || {
                    let mut heard = Heard::default();
                    let link = reach_with(&mut device, peer, || {}).expect("a link");
                    send(&mut device, link, 1, b"hello");
                    until(|| turn(&mut device, &mut heard) > 0 || heard.gone.contains(&link));
                    // Who leaves first says goodbye by hanging up, behind what he sent.
                    assert_eq!(heard.packets, [(link, 1, b"hello".to_vec())]);
                });
            }
        });
    }
}

#[test]
fn a_device_reaches_itself() {
    let mut device = Shm::join(&name("self")).expect("a name");
    let own = device.address().clone();
    let link = reach_with(&mut device, &own, || {}).expect("a link");
    let mut heard = Heard::default();
    device.arm(None).expect("armed");
    assert_eq!(turn(&mut device, &mut heard), 0);
    let ticket = send(&mut device, link, 5, b"note to self");
    sleep(&device);
    device.disarm();
    assert_eq!(turn(&mut device, &mut heard), 1);
    assert_eq!(heard.packets, [(link, 5, b"note to self".to_vec())]);
    turn(&mut device, &mut heard);
    assert_eq!(device.delivered(link), ticket);
    assert_eq!(reach_with(&mut device, &own, || {}).expect("the same"), link);
}

#[test]
fn who_leaves_is_read_to_the_end_and_then_gone_and_its_name_leads_to_the_next() {
    child::alone(|| {
        let [(mut a, to_b), (b, _)] = two();
        let name = b.address().to_string();
        let name = name.strip_prefix("shm:").expect("an address");
        let mut b = b;
        let to_a = reach(&mut b, &mut a);
        for number in 0..10 {
            send(&mut b, to_a, number, b"last words");
        }
        drop(b);
        let mut heard = Heard::default();
        until(|| {
            turn(&mut a, &mut heard);
            !heard.gone.is_empty()
        });
        assert!(heard.packets.iter().map(|(_, number, _)| *number).eq(0..10));
        assert_eq!(heard.gone, [to_b]);

        let mut next = Shm::join(name).expect("free again");
        let to_next = reach(&mut a, &mut next);
        assert_ne!(to_next, to_b, "a number does not come back soon");
    });
}

#[test]
fn who_sends_along_a_link_that_is_gone_hears_so_again_even_asleep() {
    let [(mut a, to_b), (b, _)] = pair();
    drop(b);
    let mut heard = Heard::default();
    until(|| {
        turn(&mut a, &mut heard);
        !heard.gone.is_empty()
    });
    let before = heard.gone.len();
    a.arm(None).expect("armed");
    assert_eq!(turn(&mut a, &mut heard), 0);
    send(&mut a, to_b, 1, b"to nobody");
    send(&mut a, PathId(77), 1, b"to nobody at all");
    sleep(&a);
    a.disarm();
    turn(&mut a, &mut heard);
    assert_eq!(heard.gone[before..], [to_b, PathId(77)]);
    assert_eq!(a.delivered(to_b), 0);
}

#[test]
fn a_device_keeps_as_many_peers_as_it_allows_and_turns_others_away() {
    let limits = Limits { peers: 2, ..Limits::default() };
    let mut hub = Shm::join_within(&name("hub"), limits).expect("a name");
    let mut peers: Vec<_> = (0..3).map(|_| Shm::join(&name("peer")).expect("a name")).collect();
    for peer in &mut peers[..2] {
        reach(peer, &mut hub);
    }
    let address = peers[2].address().clone();
    let refused = hub.reach(&address);
    assert!(matches!(refused, Err(ReachError::TooMany { most: 2, .. })), "{refused:?}");
    let hub_address = hub.address().clone();
    let mut heard = Heard::default();
    let refused = reach_with(&mut peers[2], &hub_address, || {
        turn(&mut hub, &mut heard);
    });
    let Err(ReachError::Refused { why, .. }) = refused else { panic!("{refused:?}") };
    assert!(why.contains("as many peers"), "{why}");

    // One leaves, and another has its place.
    let first = peers.remove(0);
    drop(first);
    until(|| {
        turn(&mut hub, &mut heard);
        heard.gone.len() == 1
    });
    reach(&mut peers[1], &mut hub);
}

#[test]
fn rings_are_as_large_as_the_smaller_end_allows() {
    let small = Limits { ring: 16 << 10, ..Limits::default() };
    for (here, there) in [(small, Limits::default()), (Limits::default(), small)] {
        let mut a = Shm::join_within(&name("a"), here).expect("a name");
        let mut b = Shm::join_within(&name("b"), there).expect("a name");
        let to_b = reach(&mut a, &mut b);
        let sent = (0..).take_while(|&n| push(&mut a, to_b, n, &[1; 20]).is_ok()).count();
        assert_eq!(sent, 256);
    }
}

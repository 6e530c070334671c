//! Packets that somebody off the path sends in others' names.

use std::net::{IpAddr, SocketAddr};

use doorbell_core::nic::Outbox;
use doorbell_kit::lab::{self, Lab};
use doorbell_kit::{Bounce, Forger};
use doorbell_transports::Device;
use doorbell_transports::udp::Udp;

use crate::udp::common::{Seen, acquaint_across, headers, path, send, socket, until};

/// Two devices in a lab with sockets for each other, for each family; and who sends in the name of
/// the far one, or of anybody behind it.
fn between(test: impl Fn(&Lab, &mut Udp, &mut Udp, &Forger)) {
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 9000).expect("a cable");
        let forger = lab.far.within(Forger::new).expect("root may");
        let ends: [[IpAddr; 2]; 2] = [
            [cable.near.ipv4.into(), cable.far.ipv4.into()],
            [cable.near.ipv6.into(), cable.far.ipv6.into()],
        ];
        for [near, far] in ends {
            let open = |ip| Udp::open(SocketAddr::new(ip, 5000)).expect("nobody has it");
            let (mut near, mut far) = (open(near), lab.far.within(|| open(far)));
            acquaint_across(lab, &mut near, &mut far);
            test(lab, &mut near, &mut far, &forger);
        }
    });
}

/// The kernel believed that the way takes 552 bytes only: each longer packet failed, and each new
/// connection for ten minutes.
#[test]
fn large_packets_go_on_when_somebody_says_that_they_are_too_long() {
    between(|_, near, far, forger| {
        let (from, to) = (socket(near), socket(far));
        let there = path(near, far);
        let mut seen = Seen::default();
        for round in 0..20 {
            for mtu in [552, 1280, 1500] {
                forger.bounce(to.ip(), (from, to), Bounce::TooLong(mtu));
            }
            for psn in 0..20 {
                near.push(&there, headers(round * 20 + psn), &[1; 4096][..])
                    .expect("there is room");
            }
            near.flush();
            let many = (round as usize + 1) * 20;
            until("large packets", || {
                near.receive(&mut Seen::default());
                far.receive(&mut seen);
                seen.packets.len() == many
            });
            assert!(near.reach(far.address()).expect("the interface takes them").is_some());
        }
        assert_eq!((near.statistics().refused, seen.malformed), (0, 0));
    });
}

#[test]
fn packets_go_on_when_somebody_says_that_nobody_is_there() {
    between(|_, near, far, forger| {
        let (from, to) = (socket(near), socket(far));
        let there = path(near, far);
        let mut seen = Seen::default();
        for psn in 0..200 {
            for bounce in [Bounce::PortUnreachable, Bounce::HostUnreachable] {
                forger.bounce(to.ip(), (from, to), bounce);
            }
            send(near, &there, psn, 64);
            near.receive(&mut Seen::default());
        }
        until("all packets", || {
            near.receive(&mut Seen::default());
            far.receive(&mut seen);
            seen.packets.len() == 200
        });
        assert_eq!((near.statistics().refused, seen.malformed), (0, 0));
    });
}

/// Identifications counted up each way, so fast that every packet of the peer's comes behind
/// another.
#[test]
fn a_peer_is_heard_whatever_identifications_others_send_in_its_name() {
    between(|_, near, far, forger| {
        let (from, to) = (socket(near), socket(far));
        let (there, mut seen) = (path(far, near), Seen::default());
        let (mut ahead, mut behind, mut forged) = (1u16, u16::MAX, 0);
        for psn in 0..300 {
            for _ in 0..3 {
                (ahead, behind) = (ahead.wrapping_add(9000), behind.wrapping_sub(9000));
                for id in [ahead, behind, u16::MAX / 2] {
                    forger.packet((to, from), id.max(1), headers(1_000_000), &[9; 16]);
                    forged += 1;
                }
            }
            send(far, &there, psn, 64);
            until("the peer's packet", || {
                near.receive(&mut seen);
                seen.packets.last().is_some_and(|last| last.0 == psn)
            });
        }
        assert_eq!((seen.malformed, seen.packets.len()), (0, forged + 300));
    });
}

/// An answer to it would go to a port that is none, and could have taken a socket of the device's.
#[test]
fn a_packet_from_port_0_is_from_nobody() {
    between(|_, near, far, forger| {
        let (own, mut seen) = (socket(near), Seen::default());
        let nobody = SocketAddr::new(socket(far).ip(), 0);
        let before = near.statistics().strangers;
        forger.packet((nobody, own), 1, headers(7), &[1; 16]);
        until("a packet from nobody", || {
            near.receive(&mut seen);
            near.statistics().strangers > before
        });
        assert!(seen.packets.is_empty() && seen.malformed == 0);
    });
}

/// A device that hears nobody but its peers, at a port, and those who send to it.
fn without_strangers(port: u16, test: impl Fn(&Lab, &mut Udp, &mut Udp, &Forger)) {
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 9000).expect("a cable");
        let forger = lab.far.within(Forger::new).expect("root may");
        let ends: [[IpAddr; 2]; 2] = [
            [cable.near.ipv4.into(), cable.far.ipv4.into()],
            [cable.near.ipv6.into(), cable.far.ipv6.into()],
        ];
        for [near, far] in ends {
            let open = |ip| Udp::open(SocketAddr::new(ip, port)).expect("nobody has it");
            let mut near = open(near).without_strangers();
            test(lab, &mut near, &mut lab.far.within(|| open(far)), &forger);
        }
    });
}

/// Sends packets from some addresses, of which a device takes none, and counts each.
fn drops(device: &mut Udp, forger: &Forger, from: &[SocketAddr]) {
    let (own, mut seen) = (socket(device), Seen::default());
    let before = device.statistics().strangers;
    for from in from {
        forger.packet((*from, own), 1, headers(7), &[1; 16]);
    }
    until("packets of strangers", || {
        device.receive(&mut seen);
        device.statistics().strangers == before + from.len() as u64
    });
    assert!(seen.packets.is_empty() && seen.malformed == 0, "nothing of them is read");
}

#[test]
fn a_device_without_strangers_takes_packets_of_the_socket_that_it_has_reached_and_of_no_other() {
    without_strangers(5000, |lab, near, far, forger| {
        let peer = socket(far);
        let other_port = SocketAddr::new(peer.ip(), 5001);
        let other_host: SocketAddr = match peer.is_ipv4() {
            true => "10.219.0.77:5000".parse().expect("an address"),
            false => "[fd00:db::77]:5000".parse().expect("an address"),
        };
        // Nobody is its peer yet.
        drops(near, forger, &[peer, other_port, other_host]);
        // And there is room in no table for who comes again and again.
        acquaint_across(lab, near, far);
        drops(near, forger, &[other_port, other_host, other_port, other_host]);
        let mut seen = Seen::default();
        let back = path(far, near);
        send(far, &back, 9, 64);
        until("the peer's packet", || {
            near.receive(&mut seen);
            seen.packets == [(9, 64)]
        });
    });
}

/// Standard peers send from any port to RoCE's own.
#[test]
fn at_roces_own_port_a_device_without_strangers_takes_packets_of_all_ports_of_its_peers_hosts() {
    without_strangers(4791, |_, near, far, forger| {
        let (own, peer) = (socket(near), socket(far));
        let any = SocketAddr::new(peer.ip(), 0xC001);
        drops(near, forger, &[peer, any]);
        path(near, far);
        let mut seen = Seen::default();
        forger.packet((any, own), 1, headers(7), &[1; 16]);
        until("a packet of the peer's host", || {
            near.receive(&mut seen);
            seen.packets == [(7, 16)]
        });
    });
}

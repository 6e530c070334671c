//! Addresses at which no peer can be, and peers that do not answer: neither is of concern to
//! others.

use std::net::{IpAddr, SocketAddr};

use doorbell_core::encap::{Outer, Path, PathId};
use doorbell_core::nic::{Outbox, Way};
use doorbell_core::wire::{Bth, Deth, Extensions, Headers, Mac, Opcode, Psn, Qkey, Qpn};
use doorbell_kit::lab;
use doorbell_transports::udp::{MOST_PEERS, Udp};
use doorbell_transports::{Address, Device, ReachError};

use crate::udp::common::{
    Seen, acquaint, acquaint_across, headers, open, path, send, socket, until,
};

/// A way to port 0 was found once, and a socket was connected to it, which then took whatever came
/// from that host for other ports.
#[test]
fn addresses_that_can_be_no_peers_are_refused_at_once() {
    let mut v4 = open("127.71.1.1:0");
    let mut v6 = open("[::1]:0");
    for (address, says) in [
        ("udp:127.0.0.1:0", "port 0"),
        ("udp:0.0.0.0:5000", "all addresses"),
        ("udp:224.0.0.1:5000", "multicast"),
        ("udp:255.255.255.255:5000", "broadcast"),
        ("udp:127.255.255.255:5000", "broadcast"),
        ("udp:192.0.2.1:5000", "only this machine"),
        ("udp:[::1]:0", "port 0"),
        ("udp:[::]:5000", "all addresses"),
        ("udp:[ff02::1]:5000", "multicast"),
        ("udp:[::ffff:127.0.0.1]:5000", "IPv4 address"),
    ] {
        let address: Address = address.parse().expect("an address");
        let device =
            if matches!(address, Address::Udp(SocketAddr::V4(_))) { &mut v4 } else { &mut v6 };
        let error = device.reach(&address).expect_err("nobody can be there");
        assert!(matches!(error, ReachError::NoPeers { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(says) && text.contains(&address.to_string()), "{text}");
    }
    for (mut near, at) in [(v4, "127.71.1.2:0"), (v6, "[::1]:0")] {
        acquaint(&mut near, &mut open(at));
    }
}

/// A socket sends by the route to its peer, whose interface may be another than the one that has
/// the device's address.
#[test]
fn an_interface_too_narrow_for_the_device_is_told_of() {
    lab::test(|lab| {
        let wide = lab.cable("a0", "b0", 9000).expect("a cable");
        let narrow = lab.cable("a1", "b1", 1500).expect("a cable");
        let ends: [(IpAddr, IpAddr, IpAddr); 2] = [
            (wide.near.ipv4.into(), wide.far.ipv4.into(), narrow.far.ipv4.into()),
            (wide.near.ipv6.into(), wide.far.ipv6.into(), narrow.far.ipv6.into()),
        ];
        for (own, over_wide, over_narrow) in ends {
            let mut near = Udp::open(SocketAddr::new(own, 5000)).expect("nobody has it");
            let mut reach = |ip| near.reach(&Address::Udp(SocketAddr::new(ip, 5000)));
            for _ in 0..2 {
                let error = reach(over_narrow).expect_err("its packets do not fit");
                let is_told = matches!(error, ReachError::Narrow { mtu: 1500, least: 4176, .. });
                assert!(is_told, "{error}");
                assert!(reach(over_wide).expect("there they fit").is_some());
            }
            drop(near);
            let far = lab.far.within(|| std::net::UdpSocket::bind((over_wide, 5000)));
            let far = far.expect("nobody has it");
            far.set_nonblocking(true).expect("a live socket");
            assert!(far.recv(&mut [0; 9000]).is_err(), "to ask sends nothing");
        }
    });
}

/// What the listener sends to hosts that are not there waits for their Ethernet addresses, and
/// fills its buffer. Nothing was sent to anybody then.
#[test]
fn a_peer_is_sent_to_while_frames_wait_for_hosts_that_are_not_there() {
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 9000).expect("a cable");
        let at = |ip: IpAddr| Udp::open(SocketAddr::new(ip, 5000)).expect("nobody has it");
        let mut near = at(cable.near.ipv4.into());
        let mut far = lab.far.within(|| at(cable.far.ipv4.into()));
        let (there, _) = acquaint_across(lab, &mut near, &mut far);
        let [a, b, c, _] = cable.near.ipv4.octets();
        let absent: Vec<_> = (20..60).map(|host| nowhere(&near, [a, b, c, host].into())).collect();
        let full = absent.iter().cycle().take(4000).any(|path| {
            let full = near.push(path, headers(0), &[1; 4096][..]).is_err();
            near.flush();
            full
        });
        assert!(full, "else nothing is shown");
        let mut seen = Seen::default();
        for psn in 0..100 {
            send(&mut near, &there, psn, 64);
            let refused = near.push(&absent[0], headers(0), &[1; 4096][..]);
            assert!(refused.is_err() || psn > 0, "there was no room a moment ago");
        }
        until("what was sent to the one that is there", || {
            far.receive(&mut seen);
            seen.packets.len() == 100
        });
    });
}

/// The path to an address, which nobody need have.
fn nowhere(from: &Udp, ip: IpAddr) -> Path {
    let nobody = Mac([0; 6]);
    let outer = Outer::v2((nobody, nobody), socket(from), SocketAddr::new(ip, 5000));
    Way::Network(outer.expect("one family")).path(PathId(7))
}

/// A datagram for a queue pair; of number 1, for management.
fn datagram(to: u32) -> Headers {
    let deth = Deth { qkey: Qkey::GSI, source: Qpn::GSI, reserved: 0 };
    let bth = Bth::new(Opcode::UdSendOnly, Qpn::new(to), Psn::new(0));
    Headers { bth, extensions: Extensions::Deth(deth) }
}

/// Whoever forged requests in the name of 64 addresses had the answers to each of them sent by a
/// socket of its own, and peers with connections had none.
#[test]
fn sockets_are_for_peers_with_connections_and_not_for_whoever_is_answered() {
    let mut hub = open("127.71.1.3:0");
    let stranger = |number: usize| IpAddr::from([127, 71, 2, number as u8]);
    let say = |hub: &mut Udp, to: IpAddr, headers: Headers| {
        for _ in 0..20 {
            let path = nowhere(hub, to);
            hub.push(&path, headers, &[1; 64][..]).expect("there is room");
            hub.flush();
            for _ in 0..20 {
                hub.receive(&mut Seen::default());
            }
        }
    };
    for number in 0..MOST_PEERS + 1 {
        say(&mut hub, stranger(number), datagram(1));
    }
    assert_eq!(hub.connected(), 0, "answers of management count for nothing");
    for number in 0..MOST_PEERS + 1 {
        say(&mut hub, stranger(number), datagram(9));
    }
    assert_eq!(hub.connected(), MOST_PEERS, "datagrams have what is left over");

    let mut peers: Vec<_> = (0..MOST_PEERS).map(|_| open("127.71.1.4:0")).collect();
    for peer in &mut peers {
        let path = path(&mut hub, peer);
        for psn in 0..40 {
            send(&mut hub, &path, psn, 8);
            say(&mut hub, stranger(MOST_PEERS + 1), datagram(9));
        }
    }
    // Whose datagrams came by a socket of its own hears the number that the kernel gave them.
    let connected = hub.peers().filter(|at| at.ip() == IpAddr::from([127, 71, 1, 4])).count();
    assert_eq!(connected, MOST_PEERS, "those with connections take their places");
}

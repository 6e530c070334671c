//! The address of this machine's at which a device is opened for a peer.

use std::net::SocketAddr;

use doorbell_kit::lab;
use doorbell_transports::ReachError;
use doorbell_transports::udp::Udp;

use crate::udp::common::{acquaint_across, until};

fn towards(peer: &str) -> Result<SocketAddr, ReachError> {
    Udp::own_address_towards(peer.parse().expect("an address"))
}

/// Where a device is opened for a peer.
fn own(peer: &str) -> String {
    towards(peer).expect("a route leads there").to_string()
}

#[test]
fn a_peer_at_a_loopback_address_is_reached_from_one_though_there_are_others() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).expect("a cable");
        for (peer, expected) in [
            ("127.0.0.1:5000", "127.0.0.1:0"),
            ("127.0.0.5:5000", "127.0.0.1:0"),
            ("[::1]:5000", "[::1]:0"),
            ("[::1]:4791", "[::1]:4791"),
        ] {
            assert_eq!(own(peer), expected, "towards {peer}");
        }
    });
}

/// The peer has that port at its own address, and so has each other client.
#[test]
fn roces_own_port_of_the_loopback_address_is_reached_from_the_same_port_of_another_one() {
    let peer = "127.0.0.1:4791".parse().expect("an address");
    let [one, other] = [0; 2].map(|_| Udp::own_address_towards(peer).expect("a route"));
    for own in [one, other] {
        assert!(own.ip().is_loopback() && own.port() == 4791, "{own}");
    }
    assert!(one != peer && other != peer && one != other, "{one}, {other}");
    Udp::open(one).expect("it is this machine's");
}

#[test]
fn a_peer_elsewhere_is_reached_from_the_address_by_which_the_route_leads_there() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).expect("a cable");
        lab.cable("a1", "b1", 1500).expect("a cable");
        let ip = |arguments: &str| lab.near.ip(arguments).expect("`ip` does it");
        ip("route add default via 10.219.1.2");
        ip("-6 route add default via fd00:db:1::2");
        for (peer, expected) in [
            ("10.219.0.2:5000", "10.219.0.1:0"),
            ("10.219.1.2:4791", "10.219.1.1:4791"),
            ("198.51.100.7:5000", "10.219.1.1:0"),
            ("10.219.0.1:5000", "10.219.0.1:0"),
            ("[fd00:db::2]:5000", "[fd00:db::1]:0"),
            ("[fd00:db:1::2]:4791", "[fd00:db:1::1]:4791"),
            ("[2001:db8::7]:5000", "[fd00:db:1::1]:0"),
        ] {
            assert_eq!(own(peer), expected, "towards {peer}");
        }
    });
}

#[test]
fn a_peer_at_a_link_local_address_is_reached_from_the_interface_that_is_named() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).expect("a cable");
        lab.near.ip("addr add fe80::7/64 dev a0 nodad").expect("`ip` does it");
        lab.far.ip("addr add fe80::8/64 dev b0 nodad").expect("`ip` does it");
        // The group by which neighbours ask for it.
        until("the far end's group", || {
            let shown = lab.far.ip("-6 maddr show dev b0").expect("`ip` shows it");
            shown.contains("ff02::1:ff00:8")
        });
        let shown = lab.near.ip("-o link show dev a0").expect("`ip` shows it");
        let number = shown.split(':').next().expect("it begins with the number");
        let own = towards(&format!("[fe80::8%{number}]:5000")).expect("it is named");
        assert_eq!(own.to_string(), format!("[fe80::7%{number}]:0"));
        let far = "[fe80::8]:5000".parse().expect("an address");
        let mut near = Udp::open(own).expect("it is this machine's");
        let mut far = lab.far.within(|| Udp::open(far).expect("nobody has it"));
        acquaint_across(lab, &mut near, &mut far);

        let why = towards("[fe80::8]:5000").expect_err("on which interface?");
        assert!(matches!(why, ReachError::NoPeers { .. }), "{why:?}");
        assert!(why.to_string().contains("udp:[fe80::1%2]:5000"), "{why}");
    });
}

#[test]
fn a_peer_to_which_no_route_leads_or_that_is_none_is_an_error() {
    lab::test(|_| {
        let unrouted = towards("192.0.2.7:5000").expect_err("there is loopback only");
        assert!(matches!(unrouted, ReachError::System { .. }), "{unrouted:?}");
        for nobody in ["0.0.0.0:5000", "[::]:5000", "127.0.0.1:0", "224.0.0.1:5000"] {
            let why = towards(nobody).expect_err("it is no peer's");
            assert!(matches!(why, ReachError::NoPeers { .. }), "{nobody}: {why:?}");
        }
    });
}

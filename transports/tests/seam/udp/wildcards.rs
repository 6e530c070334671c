//! Devices that are opened at `0.0.0.0` and `[::]`, and the address that they have then.

use std::net::SocketAddr;

use doorbell_kit::lab;
use doorbell_transports::udp::Udp;
use doorbell_transports::{Address, Device, DeviceError, ReachError};

use crate::udp::common::{acquaint, acquaint_across, open, socket};

const WILDCARDS: [&str; 2] = ["0.0.0.0:0", "[::]:0"];

/// The addresses of devices that are opened at the two wildcards.
fn addresses() -> [String; 2] {
    WILDCARDS.map(|wildcard| socket(&open(wildcard)).ip().to_string())
}

#[test]
fn a_wildcard_is_the_address_that_the_default_route_leaves_from_or_else_the_first_interfaces() {
    lab::test(|lab| {
        assert_eq!(addresses(), ["127.0.0.1", "::1"], "there is nothing else");
        lab.cable("a0", "b0", 1500).expect("a cable");
        lab.cable("a1", "b1", 1500).expect("a cable");
        assert_eq!(addresses(), ["10.219.0.1", "fd00:db::1"]);
        let ip = |arguments: &str| lab.near.ip(arguments).expect("`ip` does it");
        ip("route add default via 10.219.1.2");
        ip("-6 route add default via fd00:db:1::2");
        assert_eq!(addresses(), ["10.219.1.1", "fd00:db:1::1"]);
        // The routes go with it.
        ip("link set a1 down");
        assert_eq!(addresses(), ["10.219.0.1", "fd00:db::1"]);
        ip("addr flush dev a0");
        ip("addr add 169.254.7.7/16 dev a0");
        ip("addr add fe80::7/64 dev a0 nodad");
        assert_eq!(
            addresses(),
            ["127.0.0.1", "::1"],
            "link-local addresses mean nothing elsewhere"
        );
        ip("addr add 10.219.0.1/24 dev a0");
        assert_eq!(addresses(), ["10.219.0.1", "::1"], "one address of the interface is enough");
    });
}

#[test]
fn a_port_that_is_named_with_a_wildcard_is_the_devices_and_taken_at_its_address_only() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).expect("a cable");
        let device = open("0.0.0.0:5000");
        assert_eq!(device.address().to_string(), "udp:10.219.0.1:5000");
        let again = Udp::open("0.0.0.0:5000".parse().expect("an address"));
        let taken = again.expect_err("it is taken");
        assert!(matches!(taken, DeviceError::Taken { .. }), "{taken}");
        assert!(taken.to_string().contains("10.219.0.1:5000"), "{taken}");
        assert_eq!(socket(&open("127.0.0.1:5000")).port(), 5000);
    });
}

#[test]
fn peers_of_this_machine_and_of_others_come_by_the_address_that_a_wildcard_stands_for() {
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 9000).expect("a cable");
        let far: [SocketAddr; 2] = [(cable.far.ipv4, 0).into(), (cable.far.ipv6, 0).into()];
        for (wildcard, (far, loopback)) in
            WILDCARDS.into_iter().zip(far.into_iter().zip(["127.0.0.1:0", "[::1]:0"]))
        {
            let mut hub = open(wildcard);
            acquaint(&mut open(wildcard), &mut hub);
            acquaint(&mut open(loopback), &mut hub);
            let mut far = lab.far.within(|| Udp::open(far).expect("nobody has it"));
            acquaint_across(lab, &mut hub, &mut far);
            let mut far = lab.far.within(|| open(wildcard));
            acquaint_across(lab, &mut hub, &mut far);
        }
    });
}

#[test]
fn a_wildcard_of_a_family_that_no_interface_has_is_refused() {
    lab::test(|lab| {
        lab.near.ip("-6 addr flush dev lo").expect("`ip` does it");
        let opened = Udp::open("[::]:0".parse().expect("an address"));
        let error = opened.expect_err("there is no such address");
        assert!(matches!(error, DeviceError::NoFamily { .. }), "{error}");
        assert!(
            error.to_string().contains("no interface that is up has an IPv6 address"),
            "{error}"
        );
        open("0.0.0.0:0");
    });
}

/// The system refused one without its interface as an invalid argument.
#[test]
fn a_link_local_address_is_found_on_its_interface_without_that_being_named() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 9000).expect("a cable");
        lab.near.ip("addr add fe80::7/64 dev a0 nodad").expect("`ip` does it");
        lab.far.ip("addr add fe80::8/64 dev b0 nodad").expect("`ip` does it");
        let mut near = open("[fe80::7]:5000");
        let mut far = lab.far.within(|| open("[fe80::8]:5000"));
        acquaint_across(lab, &mut near, &mut far);
    });
}

#[test]
fn a_wildcard_is_no_address_of_a_peer() {
    for wildcard in ["0.0.0.0:5000", "[::]:5000"] {
        let mut device = open(wildcard.replace("5000", "0").as_str());
        let to = Address::Udp(wildcard.parse().expect("an address"));
        let error = device.reach(&to).expect_err("it is everybody's");
        assert!(matches!(error, ReachError::NoPeers { .. }), "{error}");
        assert!(error.to_string().contains("the one that the peer's device tells"), "{error}");
    }
}

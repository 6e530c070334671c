//! Hosts that are named, and not addressed.

use std::net::{IpAddr, SocketAddr};

use doorbell_core::nic::Numbering;
use doorbell_kit::{chain, lab};
use doorbell_transports::{Address, AnyDevice, Device, DeviceError, HostName, LookUpError, Spec};

fn open(spec: &str) -> Result<AnyDevice, DeviceError> {
    spec.parse::<Spec>().expect("a device").open(Numbering::default())
}

fn opened(spec: &str) -> String {
    open(spec).expect("it can be opened").address().to_string()
}

fn look_up(host: &str, own: &str) -> Result<String, LookUpError> {
    let host: HostName = host.parse().expect("a name");
    host.look_up_for(&own.parse().expect("an address")).map(|found| found.to_string())
}

#[track_caller]
fn says(error: &impl ToString, words: &[&str]) {
    let said = error.to_string();
    for word in words {
        assert!(said.contains(word), "`{said}` should say `{word}`");
    }
}

#[test]
fn a_device_opened_at_localhost_is_at_a_loopback_address() {
    let device = open("udp:localhost:0").expect("every machine has it");
    let &Address::Udp(address) = device.address() else { panic!("a socket's") };
    assert!(address.ip().is_loopback() && address.port() != 0, "{address}");
}

/// The file of hosts of many machines has their own name at 127.0.1.1 first.
#[test]
fn a_name_of_this_machines_is_where_others_come_and_an_ipv4_address_where_there_is_one() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).expect("a cable");
        let hosts =
            "127.0.1.1 node7 only-here\n::1 node7\nfd00:db::1 node7 six7\n10.219.0.1 node7\n";
        lab::with_names(hosts, || {
            assert_eq!(opened("udp:node7:5000"), "udp:10.219.0.1:5000");
            assert_eq!(opened("udp:node7"), "udp:10.219.0.1:4791");
            assert_eq!(opened("udp:six7:5000"), "udp:[fd00:db::1]:5000");
            assert_eq!(opened("udp:only-here:5000"), "udp:127.0.1.1:5000");
        });
    });
}

#[test]
fn a_name_that_is_another_machines_is_refused_with_the_addresses_of_both() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).expect("a cable");
        lab::with_names("10.219.0.2 node8\n", || {
            let error = open("udp:node8:0").map(drop).expect_err("it is elsewhere");
            assert!(matches!(error, DeviceError::ElsewhereNamed { .. }), "{error}");
            says(&error, &["`node8`", "10.219.0.2", "10.219.0.1"]);
        });
    });
}

#[test]
fn a_peers_name_is_its_first_address_of_the_devices_own_family() {
    lab::test(|_| {
        let hosts = "10.219.0.2 node8\nfd00:db::2 node8\n10.219.0.3 four8\nfd00:db::4 six8\n";
        lab::with_names(hosts, || {
            let [v4, v6] = ["udp:10.219.0.1:7", "udp:[fd00:db::1]:7"];
            let found = [v4, v6].map(|own| look_up("node8:5000", own).expect("it has one"));
            assert_eq!(found, ["udp:10.219.0.2:5000", "udp:[fd00:db::2]:5000"]);
            assert_eq!(look_up("four8", v4).expect("it has one"), "udp:10.219.0.3:4791");
            for (host, own, words) in [
                ("four8", v6, ["no IPv6 address", "10.219.0.3", "`udp:0.0.0.0:0`"]),
                ("six8", v4, ["no IPv4 address", "fd00:db::4", "`udp:[::]:0`"]),
            ] {
                let error = look_up(host, own).expect_err("it has the other");
                assert!(matches!(error, LookUpError::OtherFamily { .. }), "{error}");
                says(&error, &[host]);
                says(&error, &words);
            }
        });
    });
}

#[test]
fn a_name_that_is_not_known_is_an_error_with_the_resolvers_reason_and_an_interfaces_addresses() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).expect("a cable");
        lab::with_names("", || {
            let error = open("udp:nobody.invalid").map(drop).expect_err("it is nobody's");
            let DeviceError::LookUp(LookUpError::Failed { interface: None, source, .. }) = &error
            else {
                panic!("{error}")
            };
            says(&error, &["`nobody.invalid`", "`getent ahosts nobody.invalid`"]);
            assert!(chain(&error).ends_with(&source.to_string()), "{error}");
            let error = open("udp:a0").map(drop).expect_err("it is an interface");
            says(&error, &["`a0` is an interface here, with 10.219.0.1, fd00:db::1"]);
        });
    });
}

#[test]
fn only_a_udp_device_finds_peers_by_the_names_of_their_hosts() {
    let error = look_up("localhost:5000", "shm:job/0").expect_err("it is no socket");
    assert!(matches!(error, LookUpError::NotUdp { .. }), "{error}");
    says(&error, &["`udp:localhost:5000`", "shm:job/0"]);
    let host: HostName = "localhost:5000".parse().expect("a name");
    let loopback = |address: SocketAddr| address.ip().is_loopback() && address.port() == 5000;
    assert!(host.look_up().expect("every machine has it").into_iter().all(loopback));
    let v4: IpAddr = [127, 0, 0, 1].into();
    let own = Address::Udp(SocketAddr::new(v4, 1));
    assert_eq!(host.look_up_for(&own).expect("it has one"), Address::Udp((v4, 5000).into()));
}

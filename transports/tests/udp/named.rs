//! Hosts that are named, and not addressed.

use std::net::{IpAddr, SocketAddr};
use std::process::Stdio;

use doorbell_core::nic::Numbering;
use doorbell_kit::chain;
use doorbell_kit::lab::{self, Lab};
use doorbell_transports::{Address, AnyDevice, Device, HostName, LookUpError, OpenError, Spec};

/// Set for a test that was started again with a file of hosts of its own.
const AGAIN: &str = "DOORBELL_HOSTS";

/// Runs the test of that name again, alone, in the near namespace of a lab, where the hosts are those.
fn with_hosts(lab: &Lab, test: &str, hosts: &str) {
    let file = std::env::temp_dir().join(format!("doorbell-hosts-{}", std::process::id()));
    std::fs::write(&file, hosts).expect("there is room");
    let mut command = lab.near.command("unshare");
    let script = "mount --bind \"$0\" /etc/hosts && exec \"$@\"";
    command.args(["--mount", "sh", "-c", script]).arg(&file);
    command.arg(std::env::current_exe().expect("a test is a program"));
    command.args(["--exact", test, "--nocapture"]).env(AGAIN, "1").stdin(Stdio::null());
    let output = command.output().expect("util-linux is on every machine");
    std::fs::remove_file(&file).expect("it was there");
    let (out, err) = (output.stdout, output.stderr);
    let said = String::from_utf8_lossy(&out) + String::from_utf8_lossy(&err);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

fn is_again() -> bool {
    std::env::var_os(AGAIN).is_some()
}

fn open(spec: &str) -> Result<AnyDevice, OpenError> {
    spec.parse::<Spec>().expect("a device").open(Numbering::default())
}

fn opened(spec: &str) -> String {
    open(spec).expect("it can be opened").address().to_string()
}

fn look_up(host: &str, own: &str) -> Result<String, LookUpError> {
    let host: HostName = host.parse().expect("a name");
    host.look_up_for(&own.parse().expect("an address")).map(|found| found.to_string())
}

#[test]
fn a_device_opened_at_localhost_is_at_a_loopback_address() {
    let device = open("udp:localhost:0").expect("every machine has it");
    let &Address::Udp(address) = device.address() else { panic!("a socket's") };
    assert!(address.ip().is_loopback() && address.port() != 0, "{address}");
}

/// The file of hosts of many machines has their own name at 127.0.1.1 first.
#[test]
fn a_name_of_this_machines_is_the_address_by_which_others_come_and_ipv4_where_there_is_one() {
    if is_again() {
        assert_eq!(opened("udp:node7:5000"), "udp:10.219.0.1:5000");
        assert_eq!(opened("udp:node7"), "udp:10.219.0.1:4791");
        assert_eq!(opened("udp:six7:5000"), "udp:[fd00:db::1]:5000");
        assert_eq!(opened("udp:only-here:5000"), "udp:127.0.1.1:5000");
        return;
    }
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).expect("a cable");
        with_hosts(
            lab,
            "named::a_name_of_this_machines_is_the_address_by_which_others_come_and_ipv4_where_there_is_one",
            "127.0.1.1 node7 only-here\n::1 node7\nfd00:db::1 node7 six7\n10.219.0.1 node7\n",
        );
    });
}

#[test]
fn a_name_that_is_another_machines_is_refused_with_the_addresses_of_both() {
    if is_again() {
        let error = open("udp:node8:0").map(drop).expect_err("it is elsewhere");
        assert!(matches!(error, OpenError::ElsewhereNamed { .. }), "{error}");
        let said = error.to_string();
        for says in ["`node8`", "10.219.0.2", "10.219.0.1"] {
            assert!(said.contains(says), "{said}");
        }
        return;
    }
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).expect("a cable");
        let test = "named::a_name_that_is_another_machines_is_refused_with_the_addresses_of_both";
        with_hosts(lab, test, "10.219.0.2 node8\n");
    });
}

#[test]
fn a_peers_name_is_its_first_address_of_the_devices_own_family() {
    if is_again() {
        let own = ["udp:10.219.0.1:7", "udp:[fd00:db::1]:7"];
        let found = own.map(|own| look_up("node8:5000", own).expect("it has one"));
        assert_eq!(found, ["udp:10.219.0.2:5000", "udp:[fd00:db::2]:5000"]);
        assert_eq!(look_up("four8", own[0]).expect("it has one"), "udp:10.219.0.3:4791");
        for (host, own, found, other) in [
            ("four8", own[1], "10.219.0.3", "`udp:0.0.0.0:0`"),
            ("six8", own[0], "fd00:db::4", "`udp:[::]:0`"),
        ] {
            let error = look_up(host, own).expect_err("it has the other");
            assert!(matches!(error, LookUpError::OtherFamily { .. }), "{error}");
            let said = error.to_string();
            for says in [host, found, other] {
                assert!(said.contains(says), "{said}");
            }
        }
        return;
    }
    lab::test(|lab| {
        let test = "named::a_peers_name_is_its_first_address_of_the_devices_own_family";
        let hosts = "10.219.0.2 node8\nfd00:db::2 node8\n10.219.0.3 four8\nfd00:db::4 six8\n";
        with_hosts(lab, test, hosts);
    });
}

#[test]
fn a_name_that_the_resolver_does_not_know_is_an_error_with_its_reason_and_of_an_interface_its_addresses()
 {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).expect("a cable");
        let error = open("udp:nobody.invalid").map(drop).expect_err("it is nobody's");
        let OpenError::LookUp(why @ LookUpError::Failed { interface: None, source, .. }) = &error
        else {
            panic!("{error}")
        };
        let said = why.to_string();
        assert!(said.contains("`nobody.invalid`") && said.contains("getent ahosts"), "{said}");
        assert!(chain(&error).contains(&source.to_string()), "{error}");

        let error = open("udp:a0").map(drop).expect_err("it is an interface");
        let says = "`a0` is an interface here, with 10.219.0.1, fd00:db::1";
        assert!(error.to_string().contains(says), "{error}");
    });
}

#[test]
fn only_a_udp_device_finds_peers_by_the_names_of_their_hosts() {
    let error = look_up("localhost:5000", "shm:job/0").expect_err("it is no socket");
    assert!(matches!(error, LookUpError::NotUdp { .. }), "{error}");
    let said = error.to_string();
    assert!(said.contains("udp:localhost:5000") && said.contains("shm:job/0"), "{said}");
    let host: HostName = "localhost:5000".parse().expect("a name");
    let loopback = |address: SocketAddr| address.ip().is_loopback() && address.port() == 5000;
    assert!(host.look_up().expect("every machine has it").into_iter().all(loopback));
    let v4: IpAddr = [127, 0, 0, 1].into();
    let own = Address::Udp(SocketAddr::new(v4, 1));
    assert_eq!(host.look_up_for(&own).expect("it has one"), Address::Udp((v4, 5000).into()));
}

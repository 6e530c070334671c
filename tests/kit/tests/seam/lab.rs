//! Labs: real namespaces, cables and processes.

use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use doorbell_kit::lab::{self, Lab, Namespace};
use doorbell_kit::{child, stranger};

/// Sends a datagram from one namespace to the other, where it must arrive.
fn talk(lab: &Lab, to: impl Into<IpAddr>, from: impl Into<IpAddr>) {
    let far = lab.far.within(|| UdpSocket::bind((to.into(), 0))).expect("the far address is there");
    let near = UdpSocket::bind((from.into(), 0)).expect("the near address is there");
    near.send_to(b"hello", far.local_addr().unwrap()).expect("there is a way");
    far.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(far.recv(&mut [0; 9]).expect("it arrives"), 5);
}

fn interfaces(namespace: &Namespace) -> String {
    namespace.within(|| fs::read_to_string("/proc/thread-self/net/dev").unwrap())
}

#[test]
fn a_cable_is_up_at_once_for_both_families() {
    lab::test(|lab| {
        for number in 0..2 {
            let cable = lab.cable(&format!("a{number}"), &format!("b{number}"), 9000).unwrap();
            talk(lab, cable.far.ipv4, cable.near.ipv4);
            talk(lab, cable.far.ipv6, cable.near.ipv6);
        }
        assert!(interfaces(&lab.near).contains("a1:") && !interfaces(&lab.near).contains("b1:"));
        assert!(interfaces(&lab.far).contains("b1:") && !interfaces(&lab.far).contains("a1:"));
        let mtu = lab.far.ip("link show b1").unwrap();
        assert!(mtu.contains("mtu 9000"), "{mtu}");
    });
}

#[test]
fn a_thread_comes_back_from_another_namespace_also_by_a_panic() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).unwrap();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            lab.far.within(|| panic!("as it must"));
        }));
        assert!(panicked.is_err());
        assert!(interfaces(&Namespace::here().unwrap()).contains("a0:"));
    });
}

#[test]
fn commands_run_in_their_namespace() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).unwrap();
        let output = lab.far.command("cat").arg("/proc/self/net/dev").output().unwrap();
        let seen = String::from_utf8(output.stdout).unwrap();
        assert!(seen.contains("b0:") && !seen.contains("a0:"), "{seen}");
    });
}

/// The namespace is entered before, as root.
#[test]
fn a_command_of_an_ordinary_user_runs_in_its_namespace_without_groups_and_privileges() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).unwrap();
        let Some(user) = doorbell_kit::ordinary_user() else { return };
        let mut command = lab.far.command("cat");
        doorbell_kit::run_as(&mut command, user);
        let output = command.args(["/proc/self/status", "/proc/self/net/dev"]).output().unwrap();
        let seen = String::from_utf8(output.stdout).unwrap();
        assert!(seen.contains("b0:") && !seen.contains("a0:"), "{seen}");
        let of = |name: &str| {
            let line = seen.lines().find_map(|line| line.strip_prefix(name));
            line.expect("the system says it").split_whitespace().collect::<Vec<_>>()
        };
        let user = user.to_string();
        assert_eq!((of("Uid:"), of("Gid:")), (vec![&*user; 4], vec![&*user; 4]));
        assert!(of("Groups:").is_empty(), "{seen}");
        for may in ["CapPrm:", "CapEff:", "CapAmb:"] {
            assert_eq!(u64::from_str_radix(of(may)[0], 16), Ok(0), "{may} of\n{seen}");
        }
    });
}

#[test]
fn a_test_plays_a_part_as_another_user_without_groups_and_privileges() {
    const TEST: &str = "lab::a_test_plays_a_part_as_another_user_without_groups_and_privileges";
    if let Some(part) = child::part() {
        child::tell(std::fs::read_to_string("/proc/self/status").unwrap().replace('\n', ";"));
        return child::tell(format!("{part} heard {}", child::listen().unwrap()));
    }
    let Some(mut stranger) = stranger::start(TEST, "stranger") else { return };
    let (status, user) = (stranger.hear(), doorbell_kit::ordinary_user().unwrap());
    assert!(status.contains(&format!(";Uid:\t{user}\t{user}\t{user}\t{user};")), "{status}");
    assert!(status.contains("CapEff:\t0000000000000000;"), "{status}");
    stranger.say("a word");
    assert_eq!(stranger.hear(), "stranger heard a word");
    stranger.end();
}

#[test]
fn offloads_are_switched_and_what_is_not_there_is_an_error() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).unwrap();
        for on in [false, true] {
            lab.near.offload("a0", "tx-udp-segmentation", on).unwrap();
        }
        let error = lab.near.offload("a0", "no-such-feature", true).unwrap_err().to_string();
        assert!(error.contains("no-such-feature"), "{error}");
        let error = lab.near.offload("c0", "tx-udp-segmentation", true).unwrap_err().to_string();
        assert!(error.contains("ethtool -K c0"), "{error}");
        let error = lab.cable("a0", "b1", 1500).unwrap_err().to_string();
        assert!(error.contains("ip link add a0"), "{error}");
    });
}

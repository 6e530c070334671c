//! What may be wrong with an interface, and what may happen to it.

use std::fs::OpenOptions;
use std::time::Duration;

use doorbell_kit::{lab, reach, readable, until};
use doorbell_transports::{Device, DeviceError, ReachError};

use crate::raw::common::{RAW, Seen, Tap, open, pair, send_to, take};

fn error(name: &str, interface: &str) -> DeviceError {
    open(name, interface).map(drop).expect_err("it can't be opened")
}

#[test]
fn an_interface_that_does_not_fit_is_an_error_that_says_why() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).unwrap();
        for name in RAW {
            let none = error(name, "a1");
            assert!(matches!(none, DeviceError::NoInterface { .. }), "{none}");
            lab.near.ip("link set a0 down").unwrap();
            let down = error(name, "a0");
            assert!(matches!(down, DeviceError::Down { .. }), "{down}");
            assert!(down.to_string().contains("ip link set a0 up"), "{down}");
            // Below 1280 it would lose its address.
            lab.near.ip("link set a0 up mtu 200").unwrap();
            let small = error(name, "a0");
            assert!(matches!(small, DeviceError::SmallMtu { mtu: 200, .. }), "{small}");
            lab.near.ip("link set a0 mtu 1500").unwrap();
            drop(open(name, "a0").expect("now it fits"));
        }
    });
}

/// A connection to such an address was tried for seconds.
#[test]
fn addresses_that_can_be_no_peers_are_refused_at_once() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).unwrap();
        let mut v1 = open("packet", "a0").expect("it fits");
        let mut v2 = open("packet-v2", "a0,192.0.2.7/24").expect("it fits");
        let own = v1.address().to_string();
        for (address, says) in [
            ("packet:ff:ff:ff:ff:ff:ff", "multicast"),
            ("packet:01:00:5e:00:00:01", "multicast"),
            ("packet:00:00:00:00:00:00", "zero"),
            (&own, "the device's own"),
            ("packet-v2:192.0.2.255", "broadcast"),
            ("packet-v2:192.0.2.0", "whole network"),
            ("packet-v2:255.255.255.255", "broadcast"),
            ("packet-v2:0.0.0.0", "all addresses"),
            ("packet-v2:224.0.0.1", "multicast"),
            ("packet-v2:127.0.0.1", "loopback"),
        ] {
            let device = if address.starts_with("packet:") { &mut v1 } else { &mut v2 };
            let error = device.reach(&address.parse().expect("an address")).expect_err("nobody's");
            assert!(matches!(error, ReachError::NoPeers { .. }), "{error}");
            let text = error.to_string();
            assert!(text.contains(says) && text.contains(address), "{text}");
        }
    });
}

/// A process of a user namespace has no rights in the network that it came from.
#[test]
fn who_may_not_is_told_what_it_takes() {
    const ALONE: &str = "DOORBELL_WITHOUT_RIGHTS";
    if std::env::var_os(ALONE).is_some() {
        for name in RAW {
            let error = error(name, "a0");
            assert!(matches!(error, DeviceError::Privilege { .. }), "{error}");
            assert!(error.to_string().contains("CAP_NET_RAW"), "{error}");
        }
        return;
    }
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).unwrap();
        let mut command = lab.near.command("unshare");
        command.arg("--user").arg(std::env::current_exe().unwrap()).env(ALONE, "1");
        command.args([
            "--exact",
            "raw::interfaces::who_may_not_is_told_what_it_takes",
            "--nocapture",
        ]);
        let output = command.output().expect("util-linux is on every machine");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
    });
}

#[test]
fn a_tunnel_is_no_ethernet() {
    lab::test(|lab| {
        // The only interface that is no Ethernet and on every machine; not everybody may make one.
        if let Err(why) = OpenOptions::new().write(true).open("/dev/net/tun") {
            eprintln!("PASSED OVER: a tunnel can't be made: /dev/net/tun: {why}");
            return assert!(std::env::var_os("CI").is_none(), "no tunnel to test with");
        }
        lab.near.ip("tuntap add dev t0 mode tun").unwrap();
        lab.near.ip("link set t0 up").unwrap();
        for name in RAW {
            let error = error(name, "t0");
            assert!(matches!(error, DeviceError::NotEthernet { .. }), "{error}");
        }
    });
}

/// Frames for another address than its own never arrive there.
#[test]
fn a_macvlan_takes_the_device_that_uses_its_address() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).unwrap();
        lab.near.ip("link add m0 link a0 type macvlan mode bridge").unwrap();
        lab.near.ip("link set m0 up").unwrap();
        let error = error("packet-v2", "m0");
        assert!(matches!(error, DeviceError::OwnOnly { .. }), "{error}");
        assert!(error.to_string().contains("`packet:m0`"), "{error}");

        let mut near = open("packet", "m0").unwrap();
        let mut far = lab.far.within(|| open("packet", "b0")).unwrap();
        for (from, to) in [(0, 1), (1, 0)] {
            let mut ends = [&mut near, &mut far];
            let [from, to] = ends.get_disjoint_mut([from, to]).unwrap();
            let path = reach(*from, *to);
            send_to(*from, &path, pair(), 3, 8);
            assert_eq!(take(*to, 3).packets.len(), 3);
        }
    });
}

#[test]
fn an_interface_that_is_taken_down_is_trouble_until_it_is_up_again() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 9000).unwrap();
        for name in RAW {
            let mut near = open(name, "a0").unwrap();
            let mut far = lab.far.within(|| open(name, "b0")).unwrap();
            let path = reach(&mut near, &mut far);
            assert_eq!(near.trouble(), None);

            lab.near.ip("link set a0 down").unwrap();
            for len in [8, 64] {
                send_to(&mut near, &path, pair(), 4, len);
            }
            let refused = near.statistics().refused;
            assert!(refused >= 2, "{refused} frames refused");
            let trouble = near.trouble().expect("it is down");
            assert!(trouble.to_string().contains("ip link set"), "{trouble}");
            // Whoever sleeps is told once, and not again.
            assert!(wakes(&mut near), "{name}: it went down");
            assert!(!wakes(&mut near), "{name}: it is still down");

            lab.near.ip("link set a0 up").unwrap();
            assert_eq!(near.trouble(), None);
            let mut seen = Seen::default();
            until("packets after it is up", || {
                send_to(&mut near, &path, pair(), 4, 8);
                far.receive(&mut seen);
                (!seen.packets.is_empty()).then_some(())
            });
            let back = reach(&mut far, &mut near);
            // The other end of the cable has its carrier back a moment later, and loses frames until then.
            let mut seen = Seen::default();
            until("packets the other way", || {
                send_to(&mut far, &back, pair(), 4, 8);
                near.receive(&mut seen);
                (!seen.packets.is_empty()).then_some(())
            });
        }
    });
}

/// Whether a device wakes at once when it is slept on with nothing to do.
fn wakes(device: &mut impl Device) -> bool {
    device.arm(None).expect("it can be slept on");
    device.receive(&mut Seen::default());
    let woken = readable(device.readiness(), Duration::from_millis(50));
    device.disarm();
    woken
}

#[test]
fn an_interface_that_is_deleted_is_trouble_and_no_hang() {
    lab::test(|lab| {
        for name in RAW {
            lab.cable("a0", "b0", 9000).unwrap();
            let mut near = open(name, "a0").unwrap();
            let mut far = lab.far.within(|| open(name, "b0")).unwrap();
            let path = reach(&mut near, &mut far);
            lab.near.ip("link del a0").unwrap();
            for len in [8, 64] {
                send_to(&mut near, &path, pair(), 4, len);
            }
            assert!(near.statistics().refused >= 2);
            let trouble = near.trouble().expect("it is gone");
            assert!(trouble.to_string().contains("open the device anew"), "{trouble}");
            assert!(wakes(&mut near), "{name}: it went away");
            assert!(!wakes(&mut near), "{name}: it is still away");

            // Another of that name is not the same.
            lab.cable("a0", "b0", 9000).unwrap();
            assert!(near.trouble().is_some(), "it is gone");
            lab.near.ip("link del a0").unwrap();
        }
    });
}

#[test]
fn an_interface_is_the_same_by_another_name_and_from_another_namespace() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 9000).unwrap();
        for name in RAW {
            let mut near = open(name, "a0").unwrap();
            lab.near.ip("link set a0 down").unwrap();
            lab.near.ip("link set a0 name a1").unwrap();
            assert!(near.trouble().expect("it is down").to_string().contains("down"));
            lab.near.ip("link set a1 up").unwrap();
            lab.far.within(|| assert_eq!(near.trouble(), None));
            lab.near.ip("link set a1 name a0").unwrap();
        }
    });
}

#[test]
fn an_mtu_that_shrinks_is_trouble_until_it_grows_again() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 9000).unwrap();
        for name in RAW {
            let mut near = open(name, "a0").unwrap();
            let mut far = lab.far.within(|| open(name, "b0")).unwrap();
            let path = reach(&mut near, &mut far);
            lab.near.ip("link set a0 mtu 1500").unwrap();
            send_to(&mut near, &path, pair(), 1, 4096);
            assert_eq!(near.statistics().refused, 1);
            let trouble = near.trouble().expect("packets of 4096 bytes do not fit");
            assert!(trouble.to_string().contains("1500"), "{trouble}");
            // What fits is sent.
            send_to(&mut near, &path, pair(), 1, 1024);
            take(&mut far, 1);
            lab.near.ip("link set a0 mtu 9000").unwrap();
            assert_eq!(near.trouble(), None);
            send_to(&mut near, &path, pair(), 1, 4096);
            take(&mut far, 1);
        }
    });
}

#[test]
fn frames_that_find_no_room_are_counted_and_those_behind_them_arrive() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 9000).unwrap();
        for (name, len) in [("packet", 8), ("packet-v2", 8), ("packet-v2", 4096)] {
            let mut near = open(name, "a0").unwrap();
            let mut far = lab.far.within(|| open(name, "b0")).unwrap();
            let path = reach(&mut near, &mut far);
            let before = near.statistics().frames_sent;
            // Frames of one packet and of many in turn, more of them than there are slots.
            for _ in 0..1000 {
                send_to(&mut near, &path, pair(), 1, len);
                send_to(&mut near, &path, pair(), 20, len);
            }
            let mut seen = Seen::default();
            while far.receive(&mut seen) > 0 {}
            assert!(seen.malformed.is_empty(), "{:?}", seen.malformed);
            let counted = far.statistics();
            let sent = near.statistics().frames_sent - before;
            assert!(counted.overrun > 0, "{counted:?}");
            assert_eq!(counted.frames_received + counted.overrun, sent, "{counted:?}");
            send_to(&mut near, &path, pair(), 100, len);
            assert_eq!(take(&mut far, 100).packets.len(), 100, "{name} {len}");
        }
    });
}

/// A tap sees that what leaves is cut where the interface is to cut it, and that singles are not.
#[test]
fn runs_leave_whole_and_arrive_as_the_interface_cuts_them() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 9000).unwrap();
        let (tap, len) = (lab.far.within(|| Tap::new("b0")), 100);
        for (cut, frames) in [(true, 1), (false, 20)] {
            lab.near.offload("a0", "tx-udp-segmentation", cut).unwrap();
            let mut near = open("packet-v2", "a0").unwrap();
            let mut far = lab.far.within(|| open("packet-v2", "b0")).unwrap();
            assert_eq!(near.capabilities().segmentation, cut);
            let path = reach(&mut near, &mut far);
            while tap.next().is_some() {}
            send_to(&mut near, &path, pair(), 20, len);
            take(&mut far, 20);
            assert_eq!(std::iter::from_fn(|| tap.next()).count(), frames);

            let mut near = near.without_offload();
            assert_eq!(near.capabilities().run, 1);
            send_to(&mut near, &path, pair(), 20, len);
            take(&mut far, 20);
            assert_eq!(std::iter::from_fn(|| tap.next()).count(), 20);
        }
    });
}

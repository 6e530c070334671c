//! Who has which address.

use std::net::{IpAddr, UdpSocket};

use doorbell_core::encap::PathId;
use doorbell_core::nic::Way;
use doorbell_core::wire::Mac;
use doorbell_kit::{lab, reach, sleep, until};
use doorbell_transports::packet_v2::{MOST, PacketV2, Settings};
use doorbell_transports::{Address, Device, DeviceError, ReachError};

use crate::raw::common::{Seen, Tap, mac, pair, send_to, take, v2};

/// Networks that the ends of a cable are in, too, and what is not in them.
const NETWORKS: [(&str, &str, &str); 2] = [
    ("10.219.0.101/24", "10.219.0.102/24", "10.219.1.1"),
    ("fd00:db::101/64", "fd00:db::102/64", "fd00:db:0:1::1"),
];

fn at(ip: &str) -> Address {
    Address::PacketV2(ip.parse().expect("an address"))
}

fn without_prefix(network: &str) -> &str {
    network.split_once('/').expect("a network").0
}

#[test]
fn the_kernel_and_a_device_find_each_other() {
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 1500).unwrap();
        let kernel: [IpAddr; 2] = [cable.far.ipv4.into(), cable.far.ipv6.into()];
        for ((own, ..), kernel) in NETWORKS.into_iter().zip(kernel) {
            let here = Mac([2, 0, 0x5E, 0, 0, 7]);
            let settings = Settings { mac: Some(here), network: Some(own.parse().unwrap()) };
            let mut device = PacketV2::open("a0", settings).unwrap();
            let way = until("an answer", || {
                device.receive(&mut Seen::default());
                device.reach(&Address::PacketV2(kernel)).expect("it is there")
            });
            let Way::Network(outer) = way else { panic!("it is a network") };
            assert_eq!(outer.ethernet().destination, lab.far.within(|| mac("b0")));

            // Whatever the kernel sends, first it must ask.
            let ip = without_prefix(own);
            let socket = lab.far.within(|| UdpSocket::bind((kernel, 0))).unwrap();
            socket.send_to(b"where are you?", (ip, 9)).unwrap();
            until("the kernel to know", || {
                device.receive(&mut Seen::default());
                let known = lab.far.ip(&format!("neigh show {ip} dev b0")).unwrap();
                known.contains(&here.to_string()).then_some(())
            });

            // One that has the address next, with another Ethernet address, is known by that at
            // once: programs come and go quickly.
            drop(device);
            let next = Mac([2, 0, 0x5E, 0, 0, 8]);
            let settings = Settings { mac: Some(next), ..settings };
            let _device = PacketV2::open("a0", settings).unwrap();
            until("the kernel to know of the other", || {
                let known = lab.far.ip(&format!("neigh show {ip} dev b0")).unwrap();
                known.contains(&next.to_string()).then_some(())
            });
        }
    });
}

/// Answers what is asked of a device while `body` runs on a thread of its own.
fn while_answering<R: Send>(device: &mut PacketV2, body: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let body = scope.spawn(body);
        while !body.is_finished() {
            device.receive(&mut Seen::default());
        }
        body.join().expect("it ends well")
    })
}

#[test]
fn an_address_that_somebody_has_is_taken() {
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 1500).unwrap();
        let kernel = [
            (format!("{}/24", cable.near.ipv4), format!("{}/24", cable.far.ipv4)),
            (format!("{}/64", cable.near.ipv6), format!("{}/64", cable.far.ipv6)),
        ];
        for ((own, ..), (near, far)) in NETWORKS.into_iter().zip(&kernel) {
            for host in [near, far] {
                let error = v2("a0", Some(host)).map(drop).expect_err("a host has it");
                assert!(matches!(error, DeviceError::Taken { .. }), "{error}");
            }
            let mut first = lab.far.within(|| v2("b0", Some(own))).expect("nobody has it");
            let here = &lab.near;
            let second =
                while_answering(&mut first, || here.within(|| v2("a0", Some(own)).map(drop)));
            let error = second.expect_err("the first has it");
            assert!(matches!(error, DeviceError::Taken { .. }), "{error}");
            assert!(error.to_string().contains(without_prefix(own)), "{error}");
            // Who merely asks does not disturb the one who has it.
            assert_eq!(first.trouble(), None);
        }
    });
}

#[test]
fn somebody_who_takes_the_address_later_is_trouble() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).unwrap();
        for (own, ..) in NETWORKS {
            let mut device = v2("a0", Some(own)).unwrap();
            let thief = Mac([2, 0, 0, 0, 0, 9]);
            let settings = Settings { mac: Some(thief), network: Some(own.parse().unwrap()) };
            // The first does not answer in time, and hears of it afterwards.
            let second = lab.far.within(|| PacketV2::open("b0", settings));
            assert!(second.is_ok() && device.trouble().is_none());
            while device.receive(&mut Seen::default()) > 0 {}
            let trouble = device.trouble().expect("two have the address");
            assert!(trouble.to_string().contains("02:00:00:00:00:09"), "{trouble}");
        }
    });
}

#[test]
fn a_peer_that_moves_is_followed() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 9000).unwrap();
        for (near, far, _) in NETWORKS {
            let mut near = v2("a0", Some(near)).unwrap();
            let mut peer = lab.far.within(|| v2("b0", Some(far))).unwrap();
            let path = reach(&mut near, &mut peer);
            drop(peer);
            let mut peer = lab.far.within(|| v2("b0", Some(far))).expect("its place is free");
            near.receive(&mut Seen::default());
            for count in [1, 20] {
                send_to(&mut near, &path, pair(), count, 64);
                assert_eq!(take(&mut peer, count as usize).packets.len(), count as usize);
            }
        }
    });
}

#[test]
fn who_is_behind_a_router_of_another_family_or_oneself_is_an_error_at_once() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).unwrap();
        let [(ipv4, _, beyond_ipv4), (ipv6, _, beyond_ipv6)] = NETWORKS;
        for (own, beyond, other) in [(ipv4, beyond_ipv4, ipv6), (ipv6, beyond_ipv6, ipv4)] {
            let mut device = v2("a0", Some(own)).unwrap();
            let error = device.reach(&at(beyond)).expect_err("it is beyond");
            assert!(matches!(error, ReachError::Beyond { .. }), "{error}");
            assert!(error.to_string().contains("gateway"), "{error}");
            let error = device.reach(&at(without_prefix(other))).expect_err("another family");
            assert!(matches!(error, ReachError::Kind { .. }), "{error}");
            let error = device.reach(&at(without_prefix(own))).expect_err("it is oneself");
            assert!(matches!(error, ReachError::Nobody { .. }), "{error}");
        }
    });
}

#[test]
fn nobody_is_asked_for_three_times() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).unwrap();
        for (own, ..) in NETWORKS {
            let mut device = v2("a0", Some(own)).unwrap();
            let tap = lab.far.within(|| Tap::new("b0"));
            let nobody = at(if own.contains(':') { "fd00:db::4242:4242" } else { "10.219.0.66" });
            let last: &[u8] = if own.contains(':') { &[0x42; 4] } else { &[10, 219, 0, 66] };
            let mut asked = Vec::new();
            let error = until("giving up", || {
                device.receive(&mut Seen::default());
                let frames = std::iter::from_fn(|| tap.next());
                let about = |frame: &Vec<u8>| frame.windows(4).any(|bytes| bytes == last);
                asked.extend(frames.filter(about).map(|frame| frame[..6].to_vec()));
                device.reach(&nobody).map(drop_way).err()
            });
            // Groups are what some switches think they know of, and everybody is always there.
            let everybody = Mac([0x33, 0x33, 0, 0, 0, 1]).0;
            let expected = match own.contains(':') {
                true => [[0x33, 0x33, 0xFF, 0x42, 0x42, 0x42], everybody, everybody],
                false => [[0xFF; 6]; 3],
            };
            assert!(matches!(error, ReachError::Nobody { .. }), "{error}");
            assert_eq!(asked, expected);
            // Whoever asks once more begins anew.
            assert!(device.reach(&nobody).is_ok_and(|way| way.is_none()));
        }
    });
}

fn drop_way(way: Option<Way>) {
    assert!(way.is_none(), "nobody is there");
}

#[test]
fn neighbours_are_bounded_and_only_those_asked_for_are_learnt() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).unwrap();
        let mut device = v2("a0", Some("fd00:db::101/64")).unwrap();
        // Some who speak without being asked.
        let peers: Vec<_> = (0..20).map(|host| format!("fd00:db::{}/64", 200 + host)).collect();
        for peer in &peers {
            drop(lab.far.within(|| v2("b0", Some(peer))).unwrap());
        }
        device.receive(&mut Seen::default());
        for host in 0..MOST {
            let nobody = at(&format!("fd00:db::1:{host:x}"));
            assert!(device.reach(&nobody).expect("there is room").is_none());
        }
        let error = device.reach(&at("fd00:db::2:1")).expect_err("there is no room");
        assert!(matches!(error, ReachError::TooMany { most: MOST, .. }), "{error}");
        // When those have not answered, there is room again.
        let way = until("room", || {
            device.receive(&mut Seen::default());
            device.reach(&at("fd00:db::2:1")).ok()
        });
        assert!(way.is_none());
    });
}

/// A sleeper is woken to ask again, and sleeps on afterwards.
#[test]
fn questions_are_repeated_and_answered_while_the_device_is_slept_on() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).unwrap();
        for (own, other, _) in NETWORKS {
            let mut near = v2("a0", Some(own)).unwrap();
            let mut far = lab.far.within(|| v2("b0", Some(other))).unwrap();
            let address = far.address().clone();
            assert!(near.reach(&address).unwrap().is_none());
            for device in [&mut far, &mut near] {
                device.arm(None).unwrap();
                sleep(device);
                device.disarm();
                device.receive(&mut Seen::default());
            }
            let way = near.reach(&address).unwrap().expect("it has answered");
            let path = way.path(PathId(1));
            send_to(&mut near, &path, pair(), 1, 8);
            take(&mut far, 1);
        }
    });
}

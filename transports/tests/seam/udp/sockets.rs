//! Sockets, their addresses, and what leaves by them.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use doorbell_core::encap::{Opener, Outer, Path, PathId, Run};
use doorbell_core::nic::Outbox;
use doorbell_core::pcap::Reader;
use doorbell_core::wire::{IpId, Mac};
use doorbell_kit::{PATIENCE, is_ready, lab, readable};
use doorbell_transports::udp::{MOST_PEERS, Udp};
use doorbell_transports::{Address, Device, DeviceError, ReachError, Spec};

use crate::udp::common::{Seen, acquaint, headers, open, path, send, socket, until};

fn every_length_and_runs(at: &str) {
    let (mut near, mut far) = (open(at), open(at));
    let (there, _) = acquaint(&mut near, &mut far);
    let mut seen = Seen::default();
    // Streams, and packets alone, each long enough for the other end to receive them differently.
    let mut psn = 0;
    for _ in 0..4 {
        for burst in 0..200usize {
            for packet in 0..40 {
                let len = if packet < 30 { 64 } else { burst * 20 % 4097 };
                near.push(&there, headers(psn), &vec![1; len][..]).expect("there is room");
                psn += 1;
            }
            near.flush();
            until("a burst", || {
                far.receive(&mut seen);
                seen.packets.len() == psn as usize
            });
        }
        for len in 0..300 {
            send(&mut near, &there, psn, len);
            psn += 1;
            until("a packet", || {
                far.receive(&mut seen);
                seen.packets.len() == psn as usize
            });
        }
    }
    assert!(seen.packets.is_sorted(), "in their order");
    assert_eq!(seen.malformed, 0);
    let (near, far) = (near.statistics(), far.statistics());
    assert_eq!((near.refused, far.overrun, far.unreachable), (0, 0, 0));
    assert!(near.frames_sent < near.packets_sent / 2, "runs share frames: {near:?}");
}

#[test]
fn streams_and_lone_packets_arrive_over_ipv4() {
    every_length_and_runs("127.71.0.1:0");
}

#[test]
fn streams_and_lone_packets_arrive_over_ipv6() {
    every_length_and_runs("[::1]:0");
}

/// More peers than there are sockets for, from processes of one machine as it were.
#[test]
fn peers_beyond_those_with_sockets_are_served_as_well() {
    let mut hub = open("127.71.0.2:0");
    let mut others: Vec<_> = (0..MOST_PEERS + 6).map(|_| open("127.71.0.2:0")).collect();
    let paths: Vec<_> = others.iter().map(|other| path(&mut hub, other)).collect();
    let mut heard: Vec<_> = others.iter().map(|_| Seen::default()).collect();
    let mut psn = 0;
    let mut round = |hub: &mut Udp, others: &mut [Udp], whom: std::ops::Range<usize>| {
        for index in whom {
            send(hub, &paths[index], psn, 8);
            let (other, heard) = (&mut others[index], &mut heard[index]);
            until("a packet", || {
                other.receive(heard);
                heard.packets.last() == Some(&(psn, 8))
            });
            assert_eq!(heard.malformed, 0);
            hub.receive(&mut Seen::default());
        }
        psn += 1;
    };
    let all = others.len();
    for _ in 0..40 {
        round(&mut hub, &mut others, 0..all);
    }
    assert_eq!(hub.connected(), MOST_PEERS);
    // Those without take the places of those that are not sent to any more.
    for _ in 0..1500 {
        round(&mut hub, &mut others, all - 6..all);
    }
    for _ in 0..40 {
        round(&mut hub, &mut others, 0..all);
    }
    assert_eq!(hub.connected(), MOST_PEERS);
}

#[test]
fn garbage_and_strangers_are_counted_and_do_no_harm() {
    let (mut near, mut far) = (open("127.71.0.3:0"), open("127.71.0.3:0"));
    let (there, _) = acquaint(&mut near, &mut far);
    let stranger = UdpSocket::bind("127.71.0.3:0").expect("a port");
    let mut seen = Seen::default();
    for len in 0..200 {
        let garbage: Vec<u8> = (0..len).map(|byte: usize| (byte * 37 + len) as u8).collect();
        stranger.send_to(&garbage, socket(&far)).expect("it leaves");
        send(&mut near, &there, len as u32, 8);
    }
    until("all of it", || {
        far.receive(&mut seen);
        seen.packets.len() == 200 && seen.malformed == 199
    });
}

#[test]
fn a_peer_that_is_gone_is_noticed_and_one_that_takes_its_place_is_served() {
    let (mut near, mut far) = (open("127.71.0.4:0"), open("127.71.0.4:0"));
    let (there, _) = acquaint(&mut near, &mut far);
    let at = socket(&far);
    drop(far);
    let mut seen = Seen::default();
    let mut psn = 0;
    until("notice that nobody is there", || {
        send(&mut near, &there, psn, 8);
        near.receive(&mut seen);
        psn += 1;
        near.statistics().unreachable > 0
    });
    let mut far = Udp::open(at).expect("its place is free");
    until("a packet", || {
        send(&mut near, &there, psn, 8);
        near.receive(&mut seen);
        far.receive(&mut seen);
        psn += 1;
        !seen.packets.is_empty()
    });
    // What is numbered is understood by one that knows nothing of it.
    assert_eq!(seen.malformed, 0);
}

#[test]
fn addresses_are_had_once_and_only_by_those_who_have_them() {
    let (mut near, mut far) = (open("127.71.0.5:0"), open("127.71.0.5:0"));
    acquaint(&mut near, &mut far);
    let taken = UdpSocket::bind(socket(&near)).expect_err("it is taken");
    assert_eq!(taken.kind(), ErrorKind::AddrInUse);
    let error = Udp::open(socket(&near)).expect_err("it is taken");
    assert!(matches!(error, DeviceError::Taken { .. }), "{error}");
    for nobodys in ["192.0.2.77:0", "224.0.0.1:0", "[2001:db8::77]:0"] {
        let error = Udp::open(nobodys.parse().expect("an address")).expect_err("not ours");
        assert!(matches!(error, DeviceError::NoAddress { .. }), "{error}");
        let said = error.to_string();
        assert!(
            said.contains("is no address of this machine's") && said.contains("127.0.0.1"),
            "{said}"
        );
    }
}

#[test]
fn ports_and_families_that_do_not_go_together_are_errors() {
    let mut near = open("127.71.0.6:0");
    let at = |text: &str| text.parse::<Address>().expect("an address");
    let error = near.reach(&at("udp:127.71.0.6:4791")).expect_err("it answers elsewhere");
    assert!(matches!(error, ReachError::Port { .. }), "{error}");
    let error = near.reach(&at("udp:[::1]:5000")).expect_err("another family");
    assert!(matches!(error, ReachError::Kind { .. }), "{error}");
    for (text, address) in [
        ("udp:192.0.2.7", "192.0.2.7:4791"),
        ("udp:192.0.2.7:5000", "192.0.2.7:5000"),
        ("udp:::1", "[::1]:4791"),
        ("udp:[::1]", "[::1]:4791"),
        ("udp:[::1]:5000", "[::1]:5000"),
        ("udp:[fe80::1%2]:5000", "[fe80::1%2]:5000"),
        ("udp:fe80::1%2", "[fe80::1%2]:4791"),
    ] {
        assert_eq!(text.parse(), Ok(Spec::Udp(address.parse().expect("an address"))));
        assert_eq!(text.parse(), Ok(Address::Udp(address.parse().expect("an address"))));
    }
}

/// The kernel's driver and adapters send from any port, with identifications of their own, and
/// expect answers at RoCE's.
#[test]
fn a_standard_peer_is_understood_and_answered_from_our_own_port() {
    let ip: IpAddr = "127.71.0.7".parse().expect("an address");
    let mut device = Udp::open(SocketAddr::new(ip, 4791)).expect("nobody has it");
    let peer: IpAddr = "127.71.0.8".parse().expect("an address");
    let its = UdpSocket::bind((peer, 4791)).expect("nobody has it");
    let from = UdpSocket::bind((peer, 0xC215)).expect("nobody has it");
    from.connect(socket(&device)).expect("it can be reached");
    let nobody = Mac([0; 6]);
    let outer = Outer::v2((nobody, nobody), (peer, 0xC215).into(), (ip, 4791).into());
    let outer = outer.expect("IPv4 both");
    let path = Path::new(PathId(0), outer);
    let mut seen = Seen::default();
    // As the kernel's driver counts: one by one, and further after a pause.
    let ids = [40_001u16, 40_002, 40_003, 40_257, 40_258, 50_000, 50_001, 65_535, 0, 7];
    for (psn, &id) in (0..).zip(&ids) {
        let mut frame = [0; 256];
        let mut run = Run::begin(&path, &mut frame, IpId(id), 1);
        run.push(&path, &mut frame, headers(psn), &[3; 21][..]).expect("room");
        let sealed = run.seal(&mut frame);
        from.send(&frame[outer.len()..sealed.len]).expect("it leaves");
    }
    until("all of them", || {
        device.receive(&mut seen);
        seen.packets.len() == ids.len()
    });
    assert_eq!(seen.malformed, 0);

    let back = seen.back.expect("the way of the last").path(PathId(3));
    let answers = 40;
    for psn in 0..answers {
        send(&mut device, &back, psn, 16);
        device.receive(&mut seen);
    }
    its.set_read_timeout(Some(PATIENCE)).expect("a time");
    let mut answer = [0; 256];
    // Empty datagrams show which identifications the system gives.
    for _ in 0..answers {
        let (len, source) = loop {
            match its.recv_from(&mut answer).expect("an answer") {
                (0, _) => {}
                answered => break answered,
            }
        };
        assert_eq!((len, source), (12 + 16 + 4, socket(&device)));
    }
}

/// Sends until there is no more room.
fn fill(device: &mut Udp, path: &Path) {
    let full = (0..100_000).any(|_| {
        let full = device.push(path, headers(0), &[1; 4096][..]).is_err();
        device.flush();
        full
    });
    assert!(full, "it takes 400 MB at once");
}

/// Sends one when there is room for all that waited before.
fn drain(device: &mut Udp, path: &Path) {
    until("room for all that waited", || {
        device.flush();
        device.push(path, headers(0), &[1; 64][..]).is_ok()
    });
    device.flush();
}

/// Who sleeps while there is no room is woken when there is some, also if the room was used up by
/// the turns between arming and sleeping. What was then sent elsewhere had the device forget for
/// whose room it had waited, and every later sleep ended at once.
#[test]
fn room_for_one_peer_wakes_once_and_not_while_another_is_sent_to() {
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 9000).expect("a cable");
        let at = |ip: IpAddr, port| Udp::open(SocketAddr::new(ip, port)).expect("nobody has it");
        let mut near = at(cable.near.ipv4.into(), 5000);
        let others = lab.far.within(|| [5001, 5002].map(|port| at(cable.far.ipv4.into(), port)));
        let paths = [0, 1].map(|other| path(&mut near, &others[other]));
        until("sockets for both", || {
            paths.iter().for_each(|path| send(&mut near, path, 0, 8));
            near.receive(&mut Seen::default());
            near.connected() == 2
        });
        // So slow that what is sent waits in the interface's queue, and uses up the socket's room.
        let mut slow = lab.near.command("tc");
        slow.args("qdisc add dev a0 root tbf rate 50mbit burst 20kb limit 100mb".split(' '));
        assert!(slow.status().expect("iproute2 has it").success());
        for full_when_armed in [true, false] {
            match full_when_armed {
                true => fill(&mut near, &paths[0]),
                false => drain(&mut near, &paths[0]),
            }
            near.arm(None).expect("it can be slept on");
            near.receive(&mut Seen::default());
            // Whatever left since, made room that nobody has waited for yet.
            fill(&mut near, &paths[0]);
            until("room", || is_ready(&near));
            if full_when_armed {
                near.disarm();
            }
        }
        // A turn is taken while it is armed still, and what waits is for the other.
        drain(&mut near, &paths[1]);
        near.disarm();
        near.arm(None).expect("it can be slept on");
        while near.receive(&mut Seen::default()) > 0 {}
        // What waits leaves in half of that.
        assert!(!readable(near.readiness(), Duration::from_millis(500)), "nothing has come");
    });
}

/// Every packet that leaves a socket is one that whoever sees its headers can check: by tshark's
/// recording, and with the identifications that the kernel gave.
#[test]
fn every_icrc_is_right_on_the_wire() {
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 9000).expect("a cable");
        // So that each packet is recorded as a frame.
        lab.near.offload("a0", "tx-udp-segmentation", false).expect("veth lets it be switched");
        let address = |ip| Udp::open(SocketAddr::new(ip, 4791)).expect("it is the interface's");
        let mut near = address(cable.near.ipv4.into());
        let mut far = lab.far.within(|| address(cable.far.ipv4.into()));
        let path = path(&mut near, &far);
        let file = std::env::temp_dir().join(format!("doorbell-udp-{}.pcap", std::process::id()));
        let mut command: Command = lab.near.command("tshark");
        command.args(["-q", "-i", "a0", "-F", "pcap", "-f", "udp src port 4791", "-c", "2000"]);
        let child = command.arg("-w").arg(&file).stdin(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut recorder = Recorder(child.expect("tshark can be run"));
        let (mut psn, mut seen) = (0, Seen::default());
        until("as many frames as are to be recorded", || {
            for len in [16, 16, 16, 100, 4096, 4096, 7] {
                near.push(&path, headers(psn), &vec![9; len][..]).expect("there is room");
                psn += 1;
            }
            near.flush();
            near.receive(&mut seen);
            while far.receive(&mut seen) > 0 {}
            recorder.0.try_wait().expect("a child").is_some()
        });
        assert_eq!((near.connected(), seen.malformed), (1, 0));
        let recorded = std::fs::read(&file).expect("the recording");
        std::fs::remove_file(&file).expect("it was there");
        let (mut opener, mut right, mut ids) = (Opener::default(), 0, 0u64);
        for record in Reader::new(&recorded).expect("a recording") {
            let record = record.expect("whole");
            let (outer, transport) = match Outer::parse(record.data) {
                Ok(parsed) => parsed,
                Err(why) => panic!("{why}"),
            };
            if transport.is_empty() {
                continue; // the system was asked for its number
            }
            ids |= outer.id().map_or(0, |IpId(id)| u64::from(id));
            for packet in opener.open(record.data, None).expect("headers") {
                packet.expect("its ICRC is right");
                right += 1;
            }
        }
        assert!(right > 1990 && ids != 0, "{right} right");
    });
}

/// Ends a child with the test.
struct Recorder(Child);

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

//! The host on whose interface a device is: neither answers it nor is disturbed.

use std::fs;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};

use doorbell_kit::{
    lab::{self, Namespace},
    reach, until,
};
use doorbell_transports::Device;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, recv, sendto, socket,
};

use crate::raw::common::{Seen, pair, send_to, v2};

/// The kernel's own ping.
struct Ping {
    fd: OwnedFd,
    to: SockaddrIn,
}

impl Ping {
    fn new(to: Ipv4Addr) -> Self {
        let (kind, flags) = (SockType::Raw, SockFlag::SOCK_NONBLOCK);
        let fd = socket(AddressFamily::Inet, kind, flags, SockProtocol::Icmp);
        let [a, b, c, d] = to.octets();
        Self { fd: fd.expect("a raw socket"), to: SockaddrIn::new(a, b, c, d, 0) }
    }

    fn send(&self, number: u16) {
        let mut echo = [8, 0, 0, 0, 0xDB, 0xDB, 0, 0];
        echo[6..].copy_from_slice(&number.to_be_bytes());
        let words = echo.chunks_exact(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
        let sum: u32 = words.sum();
        let sum = !((sum & 0xFFFF) + (sum >> 16)) as u16;
        echo[2..4].copy_from_slice(&sum.to_be_bytes());
        let sent = sendto(self.fd.as_raw_fd(), &echo, &self.to, MsgFlags::empty());
        assert_eq!(sent, Ok(echo.len()));
    }

    /// The number of the next answer.
    fn answer(&self) -> Option<u16> {
        let mut packet = [0; 128];
        loop {
            let len = recv(self.fd.as_raw_fd(), &mut packet, MsgFlags::empty()).ok()?;
            // Behind the IPv4 header: an answer, and to one of ours.
            if let &[0, _, _, _, 0xDB, 0xDB, high, low] = &packet[20..len] {
                return Some(u16::from_be_bytes([high, low]));
            }
        }
    }
}

/// What a namespace has counted under some names of `/proc/net/snmp` and `/proc/net/snmp6`.
fn counted(namespace: &Namespace, names: &[&str]) -> Vec<u64> {
    let (old, new) = namespace.within(|| {
        let read = |file| fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap();
        (read("snmp"), read("snmp6"))
    });
    let lines: Vec<_> = old.lines().collect();
    let pairs = lines.chunks_exact(2).flat_map(|pair| {
        let protocol = pair[0].split(':').next().unwrap();
        let fields = pair[0].split_whitespace().zip(pair[1].split_whitespace()).skip(1);
        fields.map(move |(name, value)| (format!("{protocol}{name}"), value.to_owned()))
    });
    let more = new.lines().filter_map(|line| line.split_once(char::is_whitespace));
    let more = more.map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
    let all: Vec<_> = pairs.chain(more).collect();
    let value = |name: &&str| {
        let found = all.iter().find(|(found, _)| found == name);
        found.unwrap_or_else(|| panic!("{name} is counted")).1.parse().expect("a number")
    };
    names.iter().map(value).collect()
}

/// What the stack would count if it looked at the devices' frames.
const NOTICED: [&str; 8] = [
    "IcmpOutDestUnreachs",
    "Icmp6OutDestUnreachs",
    "UdpNoPorts",
    "Udp6NoPorts",
    "IpInAddrErrors",
    "Ip6InAddrErrors",
    "IpForwDatagrams",
    "Ip6OutForwDatagrams",
];

#[test]
fn a_ping_between_the_hosts_is_undisturbed_at_full_load() {
    const PINGS: u16 = 300;
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 9000).unwrap();
        // Routers would be the most likely to meddle.
        for namespace in [&lab.near, &lab.far] {
            namespace.within(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap());
        }
        let before = [&lab.near, &lab.far].map(|namespace| counted(namespace, &NOTICED));
        for network in [None, Some(["10.219.0.101/24", "10.219.0.102/24"])] {
            let mut near = v2("a0", network.map(|[near, _]| near)).unwrap();
            let mut far = lab.far.within(|| v2("b0", network.map(|[_, far]| far))).unwrap();
            let path = reach(&mut near, &mut far);
            let (ping, mut seen) = (Ping::new(cable.far.ipv4), Seen::default());
            for number in 0..PINGS {
                ping.send(number);
                let answer = until("an answer", || {
                    send_to(&mut near, &path, pair(), 128, 64);
                    send_to(&mut near, &path, pair(), 1, 64);
                    while far.receive(&mut seen) > 0 {}
                    ping.answer()
                });
                assert_eq!(answer, number, "none is lost");
            }
            assert!(seen.malformed.is_empty());
            assert!(seen.packets.len() >= 129 * usize::from(PINGS), "{}", seen.packets.len());
        }
        let after = [&lab.near, &lab.far].map(|namespace| counted(namespace, &NOTICED));
        assert_eq!(after, before, "{NOTICED:?}");
    });
}

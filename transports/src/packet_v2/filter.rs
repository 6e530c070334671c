//! Which frames are a device's.

use std::net::{IpAddr, Ipv6Addr};

use doorbell_core::wire::{EtherType, Ethernet, IpProtocol, Ipv4, Ipv6, Mac, UdpPort};

use super::question::{
    ADVERTISEMENT, ARP, EVERYBODY, ICMPV6, Own, SOLICITATION, group_mac, solicited_node,
};
use crate::sys::filter::Test;

/// RoCE that is sent to its address, and over IPv6 what neighbours ask and tell.
///
/// Queue pairs are not looked at: the address is one process's alone, and of a frame that holds a
/// run only the first packet is seen.
pub(super) fn own(own: Own) -> Vec<Vec<Test>> {
    match own.ip {
        IpAddr::V4(_) => vec![to(own.mac, ipv4())],
        IpAddr::V6(ip) => vec![
            to(own.mac, [ipv6(IpProtocol::UDP), port(Ipv6::LEN)].concat()),
            [asked_or_told(own.mac, ip), ipv6(ICMPV6), icmp(SOLICITATION)].concat(),
            [asked_or_told(own.mac, ip), ipv6(ICMPV6), icmp(ADVERTISEMENT)].concat(),
        ],
    }
}

/// All of ARP that a station may be told.
pub(super) fn arp() -> Vec<Vec<Test>> {
    vec![vec![ethertype(ARP)]]
}

fn to(mac: Mac, tests: Vec<Test>) -> Vec<Test> {
    [Test::to(mac).into(), tests].concat()
}

/// What is sent to one's own address, to those who are asked for it, or to everybody. The first two
/// bytes of groups are the same; those of stations need not be looked at.
fn asked_or_told(own: Mac, ip: Ipv6Addr) -> Vec<Test> {
    let ends = [own, group_mac(solicited_node(ip)), group_mac(EVERYBODY)];
    let ends = ends.map(|Mac([_, _, a, b, c, d])| (!0, u32::from_be_bytes([a, b, c, d])));
    vec![Test::word(2, &ends)]
}

fn ethertype(ethertype: EtherType) -> Test {
    Test::half(12, !0, ethertype.0)
}

fn ipv4() -> Vec<Test> {
    // Five words of header; the protocol is the second byte of those at 8.
    let form = Test::half(Ethernet::LEN, 0xFF00, 0x4500);
    let protocol = Test::half(Ethernet::LEN + 8, 0x00FF, IpProtocol::UDP.0.into());
    let tests = vec![ethertype(EtherType::IPV4), form, protocol];
    [tests, port(Ipv4::LEN)].concat()
}

fn ipv6(next: IpProtocol) -> Vec<Test> {
    let next = Test::half(Ethernet::LEN + 6, 0xFF00, u16::from(next.0) << 8);
    vec![ethertype(EtherType::IPV6), next]
}

fn port(behind: usize) -> Vec<Test> {
    vec![Test::half(Ethernet::LEN + behind + 2, !0, UdpPort::ROCE_V2.0)]
}

fn icmp(kind: u8) -> Vec<Test> {
    vec![Test::half(Ethernet::LEN + Ipv6::LEN, 0xFF00, u16::from(kind) << 8)]
}

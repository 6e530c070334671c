//! The filter that passes a device its own frames, among those of its protocol.

use std::net::{IpAddr, Ipv6Addr};

use doorbell_core::wire::{Ethernet, IpProtocol, Ipv4, Ipv6, Mac, UdpPort};

use super::discovery::{
    ADVERTISEMENT, EVERYBODY, ICMPV6, SOLICITATION, Station, group_mac, solicited_node,
};
use crate::sys::filter::Test;

/// Returns tests for RoCE that is sent to the device's address and, over IPv6, for questions and
/// answers of neighbours. The test that rules out most frames of others comes first, since every
/// frame of the protocol is looked at.
///
/// Queue pairs are not looked at: one process alone has the address, and a filter sees only the
/// first packet of a run.
pub(super) fn own(own: Station) -> Vec<Vec<Test>> {
    match own.ip {
        IpAddr::V4(_) => {
            // The header has five words, and no options.
            let form = Test::half(Ethernet::LEN, 0xFF00, 0x4500);
            let protocol = Test::half(Ethernet::LEN + 8, 0x00FF, IpProtocol::UDP.0.into());
            let [first, rest] = Test::to(own.mac);
            vec![vec![first, rest, form, protocol, port(Ipv4::LEN)]]
        }
        IpAddr::V6(ip) => {
            let [first, rest] = Test::to(own.mac);
            let kinds = [SOLICITATION, ADVERTISEMENT].map(|kind| (0xFF00, u32::from(kind) << 8));
            let kind = Test::half_of(Ethernet::LEN + Ipv6::LEN, &kinds);
            vec![
                vec![first, rest, next_header(IpProtocol::UDP), port(Ipv6::LEN)],
                vec![next_header(ICMPV6), kind, asked_or_told(own.mac, ip)],
            ]
        }
    }
}

/// Returns a test for frames to the device's own address, to the group that is asked for it, or to
/// everybody. The first two bytes are the same of all groups, and those of stations need not be
/// looked at.
fn asked_or_told(own: Mac, ip: Ipv6Addr) -> Test {
    let ends = [own, group_mac(solicited_node(ip)), group_mac(EVERYBODY)];
    Test::word(2, &ends.map(|Mac([_, _, a, b, c, d])| (!0, u32::from_be_bytes([a, b, c, d]))))
}

fn next_header(next: IpProtocol) -> Test {
    Test::half(Ethernet::LEN + 6, 0xFF00, u16::from(next.0) << 8)
}

fn port(behind: usize) -> Test {
    Test::half(Ethernet::LEN + behind + 2, !0, UdpPort::ROCE_V2.0)
}

//! Marking frames as ECN does: Congestion Experienced.
//!
//! A switch reads the header behind the Ethernet header, and nothing further. InfiniBand's global
//! route header, with which RoCE v1 begins, has the form of the IPv6 header.

use doorbell_core::wire::{EtherType, Ethernet, Grh, Ipv4, Ipv6};

const CONGESTION_EXPERIENCED: u8 = 0b11;

/// Marks a frame of IPv4, IPv6 or RoCE v1 whose ECN bits allow marks. Returns whether the frame was
/// changed; a frame that is marked already is not.
pub(crate) fn mark(frame: &mut [u8]) -> bool {
    let Ok((ethernet, _)) = Ethernet::parse(frame) else { return false };
    let packet = &mut frame[Ethernet::LEN..];
    match ethernet.ethertype {
        EtherType::IPV4 if packet.len() >= Ipv4::LEN && packet[0] >> 4 == 4 => mark_ipv4(packet),
        EtherType::IPV6 if packet.len() >= Ipv6::LEN && packet[0] >> 4 == 6 => mark_ipv6(packet),
        EtherType::ROCE if packet.len() >= Grh::LEN && packet[0] >> 4 == 6 => mark_ipv6(packet),
        _ => false,
    }
}

fn is_capable(bits: u8) -> bool {
    matches!(bits & CONGESTION_EXPERIENCED, 0b01 | 0b10)
}

fn mark_ipv4(packet: &mut [u8]) -> bool {
    if !is_capable(packet[1]) {
        return false;
    }
    let word =
        |packet: &[u8], at: usize| u32::from(u16::from_be_bytes([packet[at], packet[at + 1]]));
    let before = word(packet, 0);
    packet[1] |= CONGESTION_EXPERIENCED;
    // The checksum is updated by the difference, as in RFC 1624, so that a wrong checksum remains
    // wrong.
    let sum = (!word(packet, 10) & 0xFFFF) + (!before & 0xFFFF) + word(packet, 0);
    let sum = (sum & 0xFFFF) + (sum >> 16);
    let sum = !((sum & 0xFFFF) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    true
}

fn mark_ipv6(packet: &mut [u8]) -> bool {
    // Version 4, traffic class 8, flow label 20: the low bits of the class are in the second byte.
    if !is_capable(packet[1] >> 4) {
        return false;
    }
    packet[1] |= CONGESTION_EXPERIENCED << 4;
    true
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use doorbell_core::wire::{FlowLabel, Gid, IpId, IpProtocol, Mac};

    use super::*;

    fn framed(ethertype: EtherType, header: &[u8]) -> Vec<u8> {
        let ends = [Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2])];
        let ethernet = Ethernet { destination: ends[0], source: ends[1], ethertype };
        [&ethernet.to_bytes()[..], header, &[7; 30]].concat()
    }

    fn ipv4(tos: u8, id: u16) -> Ipv4 {
        Ipv4 {
            tos,
            total_length: 50,
            id: IpId(id),
            dont_fragment: true,
            ttl: 64,
            protocol: IpProtocol::UDP,
            source: Ipv4Addr::new(10, 0, 0, 1),
            destination: Ipv4Addr::new(10, 0, 0, 2),
        }
    }

    fn ipv6(traffic_class: u8) -> Ipv6 {
        Ipv6 {
            traffic_class,
            flow_label: FlowLabel::new(0xF_FFFF),
            payload_length: 30,
            next_header: IpProtocol::UDP,
            hop_limit: 64,
            source: Gid([1; 16]),
            destination: Gid([2; 16]),
        }
    }

    #[test]
    fn an_ipv4_header_is_marked_and_its_checksum_holds_whatever_it_was() {
        for id in 0..=u16::MAX {
            let before = ipv4(0x69 + (id & 1) as u8, id);
            let mut frame = framed(EtherType::IPV4, &before.to_bytes());
            assert!(mark(&mut frame));
            let (after, _) = Ipv4::parse(&frame[Ethernet::LEN..]).unwrap();
            assert_eq!(after, Ipv4 { tos: 0x6B, ..before });
        }
    }

    #[test]
    fn ipv6_and_the_route_header_are_marked_and_nothing_else_in_them_changes() {
        for ethertype in [EtherType::IPV6, EtherType::ROCE] {
            for capable in [1, 2] {
                let mut frame = framed(ethertype, &ipv6(0x68 | capable).to_bytes());
                assert!(mark(&mut frame));
                assert_eq!(frame, framed(ethertype, &ipv6(0x6B).to_bytes()));
            }
        }
    }

    #[test]
    fn frames_that_cannot_be_marked_are_left_alone() {
        let deaf = [0, 3].map(|bits| framed(EtherType::IPV4, &ipv4(bits, 9).to_bytes()));
        let deaf6 = [0, 3].map(|bits| framed(EtherType::IPV6, &ipv6(bits).to_bytes()));
        let arp = framed(EtherType(0x0806), &ipv4(2, 9).to_bytes());
        let short = framed(EtherType::IPV4, &ipv4(2, 9).to_bytes())[..33].to_vec();
        let short6 = framed(EtherType::ROCE, &ipv6(2).to_bytes())[..53].to_vec();
        let liar = framed(EtherType::IPV4, &ipv6(2).to_bytes());
        let mut frames = vec![arp, short, short6, liar, vec![], vec![0; 13]];
        frames.extend(deaf.into_iter().chain(deaf6));
        for frame in frames {
            let mut touched = frame.clone();
            assert!(!mark(&mut touched));
            assert_eq!(touched, frame);
        }
    }

    #[test]
    fn a_checksum_that_was_wrong_remains_wrong() {
        let mut frame = framed(EtherType::IPV4, &ipv4(2, 9).to_bytes());
        frame[Ethernet::LEN + 10] ^= 1;
        assert!(mark(&mut frame));
        assert!(Ipv4::parse(&frame[Ethernet::LEN..]).is_err());
    }
}

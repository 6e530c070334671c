//! What neighbours ask and tell each other: which Ethernet address an IP address has. Over IPv4 it
//! is ARP that they speak, over IPv6 neighbour discovery.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use doorbell_core::wire::{EtherType, Ethernet, FlowLabel, Gid, IpProtocol, Ipv6, Mac};

pub(super) const ARP: EtherType = EtherType(0x0806);
pub(super) const ICMPV6: IpProtocol = IpProtocol(58);
pub(super) const SOLICITATION: u8 = 135;
pub(super) const ADVERTISEMENT: u8 = 136;

/// The group that every host on a link is in.
pub(super) const EVERYBODY: Ipv6Addr = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 1);
const BROADCAST: Mac = Mac([0xFF; 6]);
const NOBODY: Mac = Mac([0; 6]);

const ARP_LEN: usize = 28;
/// Ethernet, IPv4, and addresses of 6 and 4 bytes.
const ARP_HEAD: [u8; 6] = [0, 1, 8, 0, 6, 4];
const REQUEST: u16 = 1;
const REPLY: u16 = 2;

/// Type, code, checksum, flags, the address in question, and one option with an Ethernet address.
const ICMP_LEN: usize = 4 + 4 + 16 + 8;
const OPTIONS: usize = 4 + 4 + 16;
/// The hop limit of what came from a neighbour and from nobody farther.
const FROM_HERE: u8 = 255;
/// Flags of what is told: that it was asked for, and that it goes before what was known.
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;

/// One's own two addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Own {
    pub mac: Mac,
    pub ip: IpAddr,
}

/// What was heard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Heard {
    /// Somebody wants to know whose an address is. Who has no address yet, and asks whether this
    /// one is free, does not name his own.
    Asked { about: IpAddr, ip: Option<IpAddr>, mac: Mac },
    /// Somebody says where an address is.
    Told { ip: IpAddr, mac: Mac },
}

/// A frame to be sent.
pub(super) struct Frame {
    bytes: [u8; Ethernet::LEN + Ipv6::LEN + ICMP_LEN],
    len: usize,
}

impl Frame {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn new(ethernet: Ethernet, parts: &[&[u8]]) -> Self {
        let mut frame = Self { bytes: [0; _], len: 0 };
        for part in std::iter::once(&&ethernet.to_bytes()[..]).chain(parts) {
            frame.bytes[frame.len..][..part.len()].copy_from_slice(part);
            frame.len += part.len();
        }
        frame
    }
}

/// Whom to ask for an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Whom {
    /// Over IPv6, the group that who has it is in.
    Group,
    /// Everybody: switches that think they know who is in which group may not know of that one.
    Everybody,
}

/// Asks where an address is. When it is one's own, that is asked in nobody's name.
pub(super) fn ask(own: Own, about: IpAddr, whom: Whom) -> Frame {
    match (own.ip, about) {
        (IpAddr::V4(ip), IpAddr::V4(about)) => {
            let ip = if ip == about { Ipv4Addr::UNSPECIFIED } else { ip };
            arp(REQUEST, BROADCAST, (own.mac, ip), (NOBODY, about))
        }
        (IpAddr::V6(ip), IpAddr::V6(about)) => {
            let probe = ip == about;
            let ip = if probe { Ipv6Addr::UNSPECIFIED } else { ip };
            let group = if whom == Whom::Group { solicited_node(about) } else { EVERYBODY };
            let option = (!probe).then_some((1, own.mac));
            discovery(own.mac, ip, group_mac(group), group, (SOLICITATION, 0), about, option)
        }
        _ => unreachable!("neighbours' addresses are of one kind"),
    }
}

/// Tells where one's own address is: who asked, or everybody.
pub(super) fn tell(own: Own, asker: Option<(IpAddr, Mac)>) -> Frame {
    let (to, mac) = asker.unzip();
    match (own.ip, to) {
        (IpAddr::V4(ip), to) => match (to, mac) {
            (Some(IpAddr::V4(to)), Some(mac)) => arp(REPLY, mac, (own.mac, ip), (mac, to)),
            // An announcement is a question about one's own address (RFC 5227). In an answer to
            // everybody, Linux does not see one, and keeps for a second what it knew.
            _ => arp(REQUEST, BROADCAST, (own.mac, ip), (NOBODY, ip)),
        },
        (IpAddr::V6(ip), to) => {
            let (to, mac, flags) = match (to, mac) {
                (Some(IpAddr::V6(to)), Some(mac)) => (to, mac, SOLICITED | OVERRIDE),
                _ => (EVERYBODY, group_mac(EVERYBODY), OVERRIDE),
            };
            discovery(own.mac, ip, mac, to, (ADVERTISEMENT, flags), ip, Some((2, own.mac)))
        }
    }
}

/// Reads a frame of these, if it is one that may be believed.
pub(super) fn hear(frame: &[u8]) -> Option<Heard> {
    let (ethernet, rest) = Ethernet::parse(frame).ok()?;
    match ethernet.ethertype {
        ARP => hear_arp(rest.first_chunk()?),
        EtherType::IPV6 => hear_discovery(ethernet.source, rest),
        _ => None,
    }
}

fn arp(
    operation: u16,
    destination: Mac,
    (mac, ip): (Mac, Ipv4Addr),
    (to_mac, to): (Mac, Ipv4Addr),
) -> Frame {
    let ethernet = Ethernet { destination, source: mac, ethertype: ARP };
    let operation = operation.to_be_bytes();
    let (from, to) = (ip.octets(), to.octets());
    Frame::new(ethernet, &[&ARP_HEAD, &operation, &mac.0, &from, &to_mac.0, &to])
}

fn hear_arp(packet: &[u8; ARP_LEN]) -> Option<Heard> {
    if packet[..6] != ARP_HEAD {
        return None;
    }
    let mac = a_stations(mac_at(packet, 8)?)?;
    let ip = |at: usize| Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]);
    let (from, about) = (ip(14), ip(24));
    let named = (!from.is_unspecified()).then_some(IpAddr::V4(from));
    match u16::from_be_bytes([packet[6], packet[7]]) {
        // Who asks for his own address announces it.
        REQUEST if from != about => Some(Heard::Asked { about: about.into(), ip: named, mac }),
        REQUEST | REPLY => Some(Heard::Told { ip: named?, mac }),
        _ => None,
    }
}

/// The group of hosts that are asked for an address.
pub(super) fn solicited_node(about: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = about.octets();
    let mut group = [0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xFF, 0, 0, 0];
    group[13..].copy_from_slice(&[a, b, c]);
    group.into()
}

pub(super) fn group_mac(group: Ipv6Addr) -> Mac {
    let [.., a, b, c, d] = group.octets();
    Mac([0x33, 0x33, a, b, c, d])
}

fn discovery(
    source: Mac,
    ip: Ipv6Addr,
    destination: Mac,
    to: Ipv6Addr,
    (kind, flags): (u8, u8),
    about: Ipv6Addr,
    option: Option<(u8, Mac)>,
) -> Frame {
    let mut message = [0; ICMP_LEN];
    message[0] = kind;
    message[4] = flags;
    message[8..24].copy_from_slice(&about.octets());
    let mut len = OPTIONS;
    if let Some((kind, mac)) = option {
        message[24..26].copy_from_slice(&[kind, 1]);
        message[26..].copy_from_slice(&mac.0);
        len = ICMP_LEN;
    }
    let message = &mut message[..len];
    let sum = !checksum(ip.into(), to.into(), message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let header = Ipv6 {
        traffic_class: 0,
        flow_label: FlowLabel::new(0),
        payload_length: len as u16,
        next_header: ICMPV6,
        hop_limit: FROM_HERE,
        source: ip.into(),
        destination: to.into(),
    };
    let ethernet = Ethernet { destination, source, ethertype: EtherType::IPV6 };
    Frame::new(ethernet, &[&header.to_bytes(), message])
}

fn hear_discovery(source: Mac, packet: &[u8]) -> Option<Heard> {
    let (header, message) = Ipv6::parse(packet).ok()?;
    let genuine = header.next_header == ICMPV6
        && header.hop_limit == FROM_HERE
        && message.len() >= OPTIONS
        && message[1] == 0
        && checksum(header.source, header.destination, message) == 0xFFFF;
    let about = Ipv6Addr::from(*message.get(8..)?.first_chunk::<16>()?);
    if !genuine || about.is_multicast() {
        return None;
    }
    let ip = Ipv6Addr::from(header.source);
    let (about, named) = (IpAddr::V6(about), !ip.is_unspecified());
    match message[0] {
        SOLICITATION => {
            let mac = a_stations(option(message, 1)?.unwrap_or(source))?;
            Some(Heard::Asked { about, ip: named.then_some(ip.into()), mac })
        }
        ADVERTISEMENT => {
            let mac = a_stations(option(message, 2)?.unwrap_or(source))?;
            Some(Heard::Told { ip: about, mac })
        }
        _ => None,
    }
}

/// The Ethernet address in an option of a kind, if there is one; `None` when the options are not
/// what they should be.
fn option(message: &[u8], kind: u8) -> Option<Option<Mac>> {
    let mut rest = &message[OPTIONS..];
    let mut found = None;
    while let &[this, units, ..] = rest {
        let option = rest.get(..8 * usize::from(units)).filter(|option| !option.is_empty())?;
        if this == kind {
            found = Some(mac_at(option, 2)?);
        }
        rest = &rest[option.len()..];
    }
    rest.is_empty().then_some(found)
}

fn mac_at(bytes: &[u8], at: usize) -> Option<Mac> {
    bytes.get(at..)?.first_chunk().copied().map(Mac)
}

/// An address, unless it is no single station's.
fn a_stations(mac: Mac) -> Option<Mac> {
    (mac.0[0] & 1 == 0 && mac != NOBODY).then_some(mac)
}

/// The sum over the pseudo-header and a message, folded: all ones where a message's own checksum
/// is right.
fn checksum(source: Gid, destination: Gid, message: &[u8]) -> u16 {
    let sum = |bytes: &[u8]| -> u32 {
        let words = bytes.chunks(2);
        words.map(|w| u32::from(w[0]) << 8 | w.get(1).map_or(0, |&low| u32::from(low))).sum()
    };
    let mut sum = sum(&source.0) + sum(&destination.0) + sum(message);
    sum += message.len() as u32 + u32::from(ICMPV6.0);
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owns() -> [(Own, IpAddr); 2] {
        let mac = Mac([2, 1, 2, 3, 4, 5]);
        let [ipv4, ipv6] = ["192.0.2.1", "fe80::1:2:3"].map(|ip| ip.parse().expect("an address"));
        let [other_4, other_6] = ["192.0.2.9", "fe80::9"].map(|ip| ip.parse().expect("an address"));
        [(Own { mac, ip: ipv4 }, other_4), (Own { mac, ip: ipv6 }, other_6)]
    }

    #[test]
    fn what_is_asked_and_told_is_heard() {
        for (own, other) in owns() {
            let (mac, ip) = (own.mac, own.ip);
            for whom in [Whom::Group, Whom::Everybody] {
                let asked = Heard::Asked { about: other, ip: Some(ip), mac };
                assert_eq!(hear(ask(own, other, whom).bytes()), Some(asked));
            }
            let probed = Heard::Asked { about: ip, ip: None, mac };
            assert_eq!(hear(ask(own, ip, Whom::Group).bytes()), Some(probed));
            for asker in [None, Some((other, Mac([2; 6])))] {
                assert_eq!(hear(tell(own, asker).bytes()), Some(Heard::Told { ip, mac }));
            }
        }
    }

    /// Its form is what Linux tells an announcement by.
    #[test]
    fn an_announcement_over_ipv4_is_a_question_to_everybody_about_oneself() {
        let own = Own { mac: Mac([2, 0, 0, 0, 0, 9]), ip: Ipv4Addr::new(10, 0, 0, 9).into() };
        let frame = tell(own, None);
        let (ethernet, arp) = frame.bytes().split_at(Ethernet::LEN);
        assert_eq!(ethernet[..6], [0xFF; 6]);
        assert_eq!(arp[6..8], REQUEST.to_be_bytes());
        let [who, about] = [&arp[8..18], &arp[18..28]];
        assert_eq!(who, [2, 0, 0, 0, 0, 9, 10, 0, 0, 9]);
        assert_eq!(about, [0, 0, 0, 0, 0, 0, 10, 0, 0, 9]);
    }

    #[test]
    fn a_message_that_is_cut_is_not_heard() {
        for (own, other) in owns() {
            for frame in [ask(own, other, Whom::Group), tell(own, None)] {
                for len in 0..frame.len {
                    assert_eq!(hear(&frame.bytes()[..len]), None, "{len} of {}", frame.len);
                }
            }
        }
    }

    /// Of IPv6, whatever is changed: the checksum covers it, or it is looked at. But for what
    /// routers read, and Ethernet's addresses.
    #[test]
    fn a_message_that_is_changed_is_not_heard() {
        let (own, other) = owns()[1];
        for frame in [ask(own, other, Whom::Group), tell(own, None)] {
            for at in (12..frame.len).filter(|at| !(15..18).contains(at)) {
                for change in 1..=255 {
                    let mut bytes = frame.bytes().to_vec();
                    bytes[at] ^= change;
                    let traffic_class = at == 14 && change & 0xF0 == 0;
                    assert!(traffic_class || hear(&bytes).is_none(), "byte {at}: {change:#x}");
                }
            }
        }
    }

    /// Gives a message of neighbour discovery the checksum that it needs.
    fn genuine(mut frame: Vec<u8>) -> Vec<u8> {
        let at = Ethernet::LEN + Ipv6::LEN;
        let gid = |at: usize| Gid(*frame[at..].first_chunk().expect("an address"));
        let (source, destination) = (gid(22), gid(38));
        frame[at + 2..at + 4].fill(0);
        let sum = !checksum(source, destination, &frame[at..]);
        frame[at + 2..at + 4].copy_from_slice(&sum.to_be_bytes());
        frame
    }

    #[test]
    fn options_that_do_not_fit_and_addresses_that_are_no_stations_are_not_heard() {
        let (own, other) = owns()[1];
        let right = ask(own, other, Whom::Group).bytes().to_vec();
        let option = Ethernet::LEN + Ipv6::LEN + OPTIONS;
        assert!(hear(&genuine(right.clone())).is_some());
        for (at, value) in [(option + 1, 0), (option + 1, 2), (option + 2, 1), (option - 16, 0xFF)]
        {
            let mut wrong = right.clone();
            wrong[at] = value;
            assert_eq!(hear(&genuine(wrong)), None, "byte {at}: {value}");
        }
        // One of a kind that is not known is passed over.
        let mut unknown = right;
        unknown[option] = 14;
        let mac = own.mac;
        let asked = Heard::Asked { about: other, ip: Some(own.ip), mac };
        assert_eq!(hear(&genuine(unknown)), Some(asked), "Ethernet tells the address, too");
    }
}

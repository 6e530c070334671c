//! Questions and answers of neighbours: which Ethernet address an IP address has. Over IPv4 they
//! are messages of ARP, over IPv6 of neighbour discovery.

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
/// How a message of ARP begins: Ethernet, IPv4, and addresses of 6 and 4 bytes.
const ARP_HEAD: [u8; 6] = [0, 1, 8, 0, 6, 4];
const REQUEST: u16 = 1;
const REPLY: u16 = 2;

/// The bytes of a message: type, code, checksum, flags, the address in question, and one option
/// with an Ethernet address.
const ICMP_LEN: usize = 4 + 4 + 16 + 8;
/// The offset of the options in a message.
const OPTIONS: usize = 4 + 4 + 16;
/// The hop limit of messages that no router has forwarded.
const FROM_HERE: u8 = 255;
/// The flag of an answer that was asked for.
const SOLICITED: u8 = 0x40;
/// The flag of an answer that replaces what was known before.
const OVERRIDE: u8 = 0x20;

/// A station, by its two addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Station {
    pub mac: Mac,
    pub ip: IpAddr,
}

/// The question or answer in a frame of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Heard {
    /// A station at `mac` asks which station has the address `about`. `ip` is the address of the
    /// one that asks: `None` if it has none yet, and asks whether that address is free.
    Asked { about: IpAddr, ip: Option<IpAddr>, mac: Mac },
    /// A station tells at which Ethernet address an IP address is.
    Told { ip: IpAddr, mac: Mac },
}

/// A frame that asks or tells something.
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

/// Where a question for an address is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Whom {
    /// To the group of IPv6 that the station with the address is in.
    Group,
    /// To every station on the network. Switches that keep lists of groups may not know of a
    /// station in its group.
    Everybody,
}

/// Makes a question for an address. A question for the own address does not name the station that
/// asks.
pub(super) fn ask(own: Station, about: IpAddr, whom: Whom) -> Frame {
    match (own.ip, about) {
        (IpAddr::V4(ip), IpAddr::V4(about)) => {
            let ip = if ip == about { Ipv4Addr::UNSPECIFIED } else { ip };
            arp(REQUEST, BROADCAST, &at(own.mac, ip), &at(NOBODY, about))
        }
        (IpAddr::V6(ip), IpAddr::V6(about)) => {
            let probe = ip == about;
            let ip = if probe { Ipv6Addr::UNSPECIFIED } else { ip };
            let group = if whom == Whom::Group { solicited_node(about) } else { EVERYBODY };
            let option = (!probe).then_some((1, own.mac));
            let ends = Ends { source: own.mac, ip, destination: group_mac(group), to: group };
            discovery(&ends, SOLICITATION, 0, about, option)
        }
        _ => unreachable!("neighbours' addresses are of one kind"),
    }
}

/// Makes an answer that tells where the own address is, to a station that asked, or to all
/// stations.
pub(super) fn tell(own: Station, asker: Option<Station>) -> Frame {
    let (to, mac) = asker.map(|asker| (asker.ip, asker.mac)).unzip();
    match (own.ip, to) {
        (IpAddr::V4(ip), to) => match (to, mac) {
            (Some(IpAddr::V4(to)), Some(mac)) => arp(REPLY, mac, &at(own.mac, ip), &at(mac, to)),
            // An announcement is a question about the own address (RFC 5227). Linux does not take
            // an answer to all stations for one, and keeps for a second what it knew.
            _ => arp(REQUEST, BROADCAST, &at(own.mac, ip), &at(NOBODY, ip)),
        },
        (IpAddr::V6(ip), to) => {
            let (to, mac, flags) = match (to, mac) {
                (Some(IpAddr::V6(to)), Some(mac)) => (to, mac, SOLICITED | OVERRIDE),
                _ => (EVERYBODY, group_mac(EVERYBODY), OVERRIDE),
            };
            let ends = Ends { source: own.mac, ip, destination: mac, to };
            discovery(&ends, ADVERTISEMENT, flags, ip, Some((2, own.mac)))
        }
    }
}

/// Reads a frame of a neighbour, if it is one that may be believed.
pub(super) fn hear(frame: &[u8]) -> Option<Heard> {
    let (ethernet, rest) = Ethernet::parse(frame).ok()?;
    match ethernet.ethertype {
        ARP => hear_arp(rest.first_chunk()?),
        EtherType::IPV6 => hear_discovery(ethernet.source, rest),
        _ => None,
    }
}

/// The addresses of a station in a message of ARP.
struct ArpStation {
    mac: Mac,
    ip: Ipv4Addr,
}

fn at(mac: Mac, ip: Ipv4Addr) -> ArpStation {
    ArpStation { mac, ip }
}

/// Makes a message of ARP.
fn arp(operation: u16, destination: Mac, from: &ArpStation, to: &ArpStation) -> Frame {
    let ethernet = Ethernet { destination, source: from.mac, ethertype: ARP };
    let operation = operation.to_be_bytes();
    let (from_ip, to_ip) = (from.ip.octets(), to.ip.octets());
    let parts: [&[u8]; 6] = [&ARP_HEAD, &operation, &from.mac.0, &from_ip, &to.mac.0, &to_ip];
    Frame::new(ethernet, &parts)
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
        // A station that asks for its own address announces it.
        REQUEST if from != about => Some(Heard::Asked { about: about.into(), ip: named, mac }),
        REQUEST | REPLY => Some(Heard::Told { ip: named?, mac }),
        _ => None,
    }
}

/// Returns the group of hosts that are asked for an address.
pub(super) fn solicited_node(about: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = about.octets();
    let mut group = [0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xFF, 0, 0, 0];
    group[13..].copy_from_slice(&[a, b, c]);
    group.into()
}

/// Returns the Ethernet address of a group.
pub(super) fn group_mac(group: Ipv6Addr) -> Mac {
    let [.., a, b, c, d] = group.octets();
    Mac([0x33, 0x33, a, b, c, d])
}

/// The addresses that a message of neighbour discovery goes between.
struct Ends {
    source: Mac,
    ip: Ipv6Addr,
    destination: Mac,
    to: Ipv6Addr,
}

/// Makes a message of neighbour discovery, with an option of a kind and an address.
fn discovery(
    ends: &Ends,
    kind: u8,
    flags: u8,
    about: Ipv6Addr,
    option: Option<(u8, Mac)>,
) -> Frame {
    let &Ends { source, ip, destination, to } = ends;
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
            let mac = a_stations(option(message, 1).or_sender(source)?)?;
            Some(Heard::Asked { about, ip: named.then_some(ip.into()), mac })
        }
        ADVERTISEMENT => {
            let mac = a_stations(option(message, 2).or_sender(source)?)?;
            Some(Heard::Told { ip: about, mac })
        }
        _ => None,
    }
}

/// The Ethernet address of a station, in an option of a message.
enum AddressOption {
    Found(Mac),
    /// The message has no option of this kind.
    Missing,
    /// The options are malformed.
    Malformed,
}

impl AddressOption {
    /// Returns the address, or that of the frame's sender if there is no option; `None` if the
    /// options are malformed.
    fn or_sender(self, sender: Mac) -> Option<Mac> {
        match self {
            Self::Found(mac) => Some(mac),
            Self::Missing => Some(sender),
            Self::Malformed => None,
        }
    }
}

/// Looks for an option of a kind in a message of neighbour discovery.
fn option(message: &[u8], kind: u8) -> AddressOption {
    let mut rest = &message[OPTIONS..];
    let mut found = AddressOption::Missing;
    while let &[this, units, ..] = rest {
        let option = rest.get(..8 * usize::from(units)).filter(|option| !option.is_empty());
        let Some(option) = option else { return AddressOption::Malformed };
        if this == kind {
            let Some(mac) = mac_at(option, 2) else { return AddressOption::Malformed };
            found = AddressOption::Found(mac);
        }
        rest = &rest[option.len()..];
    }
    if rest.is_empty() { found } else { AddressOption::Malformed }
}

fn mac_at(bytes: &[u8], at: usize) -> Option<Mac> {
    bytes.get(at..)?.first_chunk().copied().map(Mac)
}

/// Returns an address, unless it is no single station's.
fn a_stations(mac: Mac) -> Option<Mac> {
    (mac.0[0] & 1 == 0 && mac != NOBODY).then_some(mac)
}

/// Returns the folded sum over the pseudo-header and a message, which is all ones if the message's
/// own checksum is right.
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

    fn owns() -> [(Station, IpAddr); 2] {
        let mac = Mac([2, 1, 2, 3, 4, 5]);
        let [ipv4, ipv6] = ["192.0.2.1", "fe80::1:2:3"].map(|ip| ip.parse().expect("an address"));
        let [other_4, other_6] = ["192.0.2.9", "fe80::9"].map(|ip| ip.parse().expect("an address"));
        [(Station { mac, ip: ipv4 }, other_4), (Station { mac, ip: ipv6 }, other_6)]
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
            for asker in [None, Some(Station { ip: other, mac: Mac([2; 6]) })] {
                assert_eq!(hear(tell(own, asker).bytes()), Some(Heard::Told { ip, mac }));
            }
        }
    }

    /// Linux takes only a question of this form for an announcement.
    #[test]
    fn an_announcement_over_ipv4_is_a_question_to_everybody_about_oneself() {
        let own = Station { mac: Mac([2, 0, 0, 0, 0, 9]), ip: Ipv4Addr::new(10, 0, 0, 9).into() };
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

    /// Over IPv6, each changed byte is noticed, by the checksum or by a look at it, except for
    /// bytes that routers read, and Ethernet's addresses.
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
        // An option of an unknown kind is passed over.
        let mut unknown = right;
        unknown[option] = 14;
        let mac = own.mac;
        let asked = Heard::Asked { about: other, ip: Some(own.ip), mac };
        assert_eq!(hear(&genuine(unknown)), Some(asked), "Ethernet tells the address, too");
    }
}

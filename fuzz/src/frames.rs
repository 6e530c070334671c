//! Whole frames: outer headers, and the ICRC that covers part of them.

use doorbell_core::encap::{Opener, Outer, Version};
use doorbell_core::wire::{Bth, Crc, Ethernet, IpId, Ipv4, Ipv6, Malformed, Packet, Part};

use super::check::{can_be_shown, inside, is_rest};
use super::input::Input;

const ICRC_LEN: usize = 4;

/// Parses the outer headers of a frame, and compares them with what is emitted again.
pub fn outer(data: &[u8]) {
    let parsed = Outer::parse(data);
    can_be_shown(&parsed);
    let Ok((outer, transport)) = parsed else { return };
    let len = outer.len();
    is_rest(data, transport, len);

    let mut bytes = data[..len].to_vec();
    let sum = Ethernet::LEN + 10;
    if outer.version() == Version::V2Ipv4 && bytes[sum..][..2] == [0xFF; 2] {
        bytes[sum..][..2].fill(0); // zero is written in two ways
    }
    assert_eq!(outer.to_bytes()[..len], bytes);
    assert_eq!(outer.around(transport.len()), outer, "its lengths are the transport packet's");
    bytes.extend(transport);
    assert_eq!(Outer::parse(&bytes), Ok((outer, transport)));
    if transport.len() >= ICRC_LEN {
        icrc_in_full(&outer, &transport[..transport.len() - ICRC_LEN]);
    }
}

/// Several frames through one opener, each as one packet and as a run.
///
/// Each begins with 7 bytes: flags, the size of a run's packets, a bit of the frame, and the
/// frame's length. The flags say whether the ICRCs are made to fit, of the frame as one packet or
/// as a run: guessing them is not what is tested. The bit is flipped in the end.
pub fn opener(data: &[u8]) {
    let mut input = Input(data);
    let mut opener = Opener::default();
    while !input.is_empty() {
        let flags = input.u8();
        let segment = input.u16();
        let bit = usize::from(input.u16());
        let len = usize::from(input.u16());
        let mut frame = input.bytes(len).to_vec();
        if flags & 1 != 0 {
            seal(&mut frame, None);
        } else if flags & 2 != 0 {
            seal(&mut frame, Some(segment));
        }
        open(&mut opener, &frame, Some(segment));
        if open(&mut opener, &frame, None) == Some(true) {
            flip(&mut opener, frame, bit);
        }
    }
}

/// The packets of a run, or the one packet: their bytes and their places in the frame.
fn pieces(transport: &[u8], segment: Option<u16>) -> impl Iterator<Item = (u16, &[u8])> {
    let segment = segment.map_or(transport.len(), usize::from).max(1);
    transport.chunks(segment).enumerate().map(|(index, piece)| (index as u16, piece))
}

/// The headers of a run's packet as segmentation leaves them: numbered on from the frame's.
fn numbered(outer: &Outer, index: u16) -> Outer {
    match *outer {
        Outer::V2Ipv4(ethernet, ip, udp) => {
            let id = IpId(ip.id.0.wrapping_add(index));
            Outer::V2Ipv4(ethernet, Ipv4 { id, ..ip }, udp)
        }
        other => other,
    }
}

/// Makes the ICRCs of a frame fit.
fn seal(frame: &mut [u8], segment: Option<u16>) {
    let Ok((outer, transport)) = Outer::parse(frame) else { return };
    let icrcs: Vec<_> = pieces(transport, segment)
        .filter(|(_, piece)| piece.len() >= ICRC_LEN)
        .map(|(index, piece)| {
            let end = inside(frame, piece) + piece.len();
            (end, numbered(&outer, index).icrc(&piece[..piece.len() - ICRC_LEN]))
        })
        .collect();
    for (end, icrc) in icrcs {
        frame[end - ICRC_LEN..end].copy_from_slice(&icrc.to_le_bytes());
    }
}

/// Opens a frame and compares with what [`Outer`] and [`Packet`] say, which remember nothing.
/// Returns whether the first ICRC held, if there was one to look at.
fn open(opener: &mut Opener, frame: &[u8], segment: Option<u16>) -> Option<bool> {
    let (outer, transport) = match Outer::parse(frame) {
        Ok(parsed) => parsed,
        Err(error) => {
            assert_eq!(opener.open(frame, segment).err(), Some(error));
            return None;
        }
    };
    let mut arrival = match opener.open(frame, segment) {
        Ok(arrival) => arrival,
        Err(error) => {
            assert!(transport.is_empty(), "{error}");
            return None;
        }
    };
    assert_eq!(*arrival.outer(), outer);
    let mut held = None;
    for (index, piece) in pieces(transport, segment) {
        let found = arrival.next().expect("a packet");
        assert_eq!(found, judge(&outer, index, piece), "packet {index}");
        if let Ok(packet) = found {
            inside(piece, packet.payload);
        }
        held = held.or(Some(!damaged(found)));
    }
    assert_eq!(arrival.next(), None);
    held
}

/// Whether a packet was refused before anything of it was believed.
fn damaged(found: Result<Packet<&[u8]>, Malformed>) -> bool {
    matches!(found, Err(Malformed::Icrc { .. } | Malformed::Truncated { part: Part::Bth, .. }))
}

/// Returns the result that an opener must have for a packet.
fn judge<'a>(outer: &Outer, index: u16, piece: &'a [u8]) -> Result<Packet<&'a [u8]>, Malformed> {
    // Too short for the steady part of a BTH: the rest of it is missed behind the ICRC.
    let Some((body, icrc)) = piece.split_last_chunk().filter(|(body, _)| body.len() >= 8) else {
        let (need, have) = (Bth::LEN + ICRC_LEN, piece.len());
        return Err(Malformed::Truncated { part: Part::Bth, need, have });
    };
    let found = u32::from_le_bytes(*icrc);
    let expected = icrc_in_full(&numbered(outer, index), body);
    // A receiver that puts a run together may leave all packets the first one's identification.
    if expected == found || index > 0 && outer.icrc(body) == found {
        Packet::parse(body)
    } else {
        Err(Malformed::Icrc { found, expected })
    }
}

/// The ICRC, made the long way from the bytes that would travel.
fn icrc_in_full(outer: &Outer, body: &[u8]) -> u32 {
    let made = outer.icrc(body);
    if body.len() >= 8 {
        let alone = outer.around(body.len() + ICRC_LEN);
        let mut frame = alone.to_bytes()[..alone.len()].to_vec();
        frame.extend(&body[..8]);
        for (at, byte) in frame.iter_mut().enumerate() {
            *byte |= uncovered(alone.version(), alone.len(), at);
        }
        let crc = Crc::NEW.update(&[0xFF; 8]).update(&frame[Ethernet::LEN..]);
        assert_eq!(made, crc.update(&body[8..]).finish());
    }
    made
}

/// The bits of a frame's byte that routers may change: the ICRC takes them for ones.
fn uncovered(version: Version, len: usize, at: usize) -> u8 {
    const UDP_CHECKSUM: [usize; 2] = [6, 7];
    let Some(at) = at.checked_sub(Ethernet::LEN) else { return 0xFF };
    let len = len - Ethernet::LEN;
    let ip_len = if version == Version::V2Ipv4 { Ipv4::LEN } else { Ipv6::LEN };
    let covered = match (version, at) {
        (_, at) if at == len + 4 => false, // congestion, and the reserved bits beside it
        (Version::V1, at) if at >= ip_len => true,
        (_, at) if at >= ip_len => at >= len || !UDP_CHECKSUM.contains(&(at - ip_len)),
        // Type of service, time to live, checksum.
        (Version::V2Ipv4, at) => ![1, 8, 10, 11].contains(&at),
        // Traffic class and flow label beside the version, hop limit.
        (_, 0) => return 0x0F,
        (_, at) => ![1, 2, 3, 7].contains(&at),
    };
    if covered { 0 } else { 0xFF }
}

/// Flips a bit of a frame whose ICRC held: it fails if the bit is covered, and only then.
fn flip(opener: &mut Opener, mut frame: Vec<u8>, bit: usize) {
    let (outer, transport) = Outer::parse(&frame).expect("it was opened");
    let (version, len) = (outer.version(), outer.len());
    let bit = bit % (8 * (len + transport.len()));
    let (at, bit) = (bit / 8, 0x80 >> (bit % 8));
    frame[at] ^= bit;

    let ip = Ethernet::LEN..Ethernet::LEN + Ipv4::LEN;
    let sum = ip.start + 10..ip.start + 12;
    let checksum = version == Version::V2Ipv4 && sum.contains(&at);
    if version == Version::V2Ipv4 && ip.contains(&at) && !checksum {
        // A router, or a bad one, would make the checksum anew: the ICRC alone must tell.
        frame[sum.clone()].fill(0);
        let made = ipv4_checksum(&frame[ip]);
        frame[sum].copy_from_slice(&made);
    }
    let holds = open(opener, &frame, None) == Some(true);

    if version == Version::V1 && (18..20).contains(&at) {
        // The length in a GRH is repeated nowhere, and what a smaller one cuts off may have been
        // made so that the shorter packet holds.
        return;
    }
    // These are judged although the ICRC does not cover them.
    let ethertype = at == 12 || at == 13;
    let may_change = uncovered(version, len, at) & bit != 0 && !ethertype && !checksum;
    assert_eq!(holds, may_change, "{version:?}: bit {bit:#04x} of byte {at} was flipped");
}

fn ipv4_checksum(header: &[u8]) -> [u8; 2] {
    let words = header.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
    let sum = words.sum::<u32>();
    let sum = (sum & 0xFFFF) + (sum >> 16);
    (!(sum + (sum >> 16)) as u16).to_be_bytes()
}

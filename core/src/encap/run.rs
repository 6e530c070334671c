//! Encoding packets in a frame: one packet, or a run of packets for segmentation offload.

use crate::cipher::{ENCRYPTED_FROM, Keys, OVERHEAD, TAG_LEN};
use crate::fields::{low16, low32};
use crate::payload::Payload;
use crate::wire::{Bth, Crc, Ethernet, Headers, IpId, Opcode, UdpPort, padding};

use super::icrc::{ICRC_LEN, STEADY_BTH};
use super::outer::Version;
use super::path::{self, HeaderSums, Path, PathId};

/// The longest frame that outer headers can describe.
const LONGEST: usize = Ethernet::LEN + u16::MAX as usize;

/// The error for a packet that does not fit a frame: send the frame, and begin another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the packet goes into another frame")]
pub struct Full;

/// The sizes by which segmentation offload cuts a finished frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Segmentation {
    /// The bytes of each packet behind the outer headers. The last packet may be shorter.
    pub segment: u16,
    /// The bytes of the outer headers, of which each packet gets a copy.
    pub headers: u16,
}

/// A finished frame, ready to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sealed {
    /// The length of the frame in bytes.
    pub len: usize,
    /// The number of packets in the frame.
    pub packets: u32,
    /// The sizes by which the frame is to be cut, if it holds more than one packet.
    pub segmentation: Option<Segmentation>,
}

/// A frame that is being filled: the outer headers once, then packets of one size back to back, the
/// last of them possibly shorter.
///
/// The frame's memory stays with the device, which passes it to each call. Packets are encoded in
/// that memory, and sent from it.
#[derive(Clone, Debug)]
pub struct Run {
    path: PathId,
    label: UdpPort,
    version: Version,
    sums: HeaderSums,
    first_id: IpId,
    headers: usize,
    /// The size of the first packet, or zero if there is none yet.
    segment: usize,
    /// The most bytes that the next packet may have: as many as the first packet, or zero when the
    /// run has ended.
    largest: u32,
    /// The bytes of the frame that are filled. It has 32 bits as `largest` has, so that the
    /// compiler knows that their sum doesn't overflow.
    filled: u32,
    packets: u32,
    most: u32,
}

impl Run {
    /// Begins a frame along `path`, of at most `most` packets, or of one packet if the path is one
    /// of RoCE v1, which no device can segment. If the path has IPv4, `first_id` is the
    /// identification of the first packet, from which segmentation counts on.
    ///
    /// # Panics
    /// If `frame` is shorter than the path's outer headers.
    #[inline]
    pub fn begin(path: &Path, frame: &mut [u8], first_id: IpId, most: u32) -> Self {
        let (headers, version) = (path.outer().len(), path.outer().version());
        path.put_template(frame);
        let most = if version == Version::V1 { most.min(1) } else { most };
        Self {
            path: path.id(),
            label: path.label(),
            version,
            sums: path.sums(),
            first_id,
            headers,
            segment: 0,
            largest: if most > 0 { low32(LONGEST) } else { 0 },
            filled: low32(headers),
            packets: 0,
            most,
        }
    }

    /// Returns the number of packets in the frame.
    #[inline]
    pub fn packets(&self) -> u32 {
        self.packets
    }

    /// Adds a packet behind the others, with padding and ICRC. The packet is refused, and nothing
    /// is written, if it has another path, is larger than the first packet, or does not fit.
    ///
    /// The pad count of `headers` is set here, since the payload is known here.
    #[inline(always)]
    pub fn push(
        &mut self,
        path: &Path,
        frame: &mut [u8],
        headers: Headers,
        payload: impl Payload,
    ) -> Result<(), Full> {
        let len = transport_len(path, &headers, payload);
        let Some(packet) = self.claim(path, frame, len) else { return Err(Full) };
        let id = IpId(self.first_id.0.wrapping_add(((self.packets - 1) & 0xFFFF) as u16));
        lay(path, packet, id, headers, payload);
        Ok(())
    }

    /// Claims the next `len` bytes of the frame for a packet along `path`, if it may have them.
    #[inline(always)]
    fn claim<'f>(&mut self, path: &Path, frame: &'f mut [u8], len: usize) -> Option<&'f mut [u8]> {
        let (filled, largest) = (self.filled as usize, self.largest as usize);
        if len > largest || self.path != path.id() || self.label != path.label() {
            return None;
        }
        // The outer headers carry the length of the rest of the frame in 16 bits.
        let packet = frame.get_mut(filled..filled + len)?;
        if filled + len > LONGEST {
            return None;
        }
        self.filled = low32(filled + len);
        self.packets += 1;
        if len != largest || self.packets == self.most {
            self.resize(len);
        }
        Some(packet)
    }

    /// Updates `largest` after a packet of another size than expected, or the last packet. The
    /// first packet determines the size of the others. No packet follows a shorter one, or the last
    /// that the frame is to hold.
    #[cold]
    fn resize(&mut self, len: usize) {
        if self.packets == 1 {
            self.segment = len;
        }
        let ends = len < self.segment || self.packets == self.most;
        self.largest = if ends { 0 } else { low32(len) };
    }

    /// Completes the outer headers. `frame` is the memory that the packets were pushed to.
    #[inline]
    pub fn seal(&self, frame: &mut [u8]) -> Sealed {
        let segmented = self.packets > 1;
        let frame = frame.split_at_mut(self.filled as usize).0;
        path::seal(frame, self.version, self.sums, self.first_id, segmented);
        Sealed {
            len: self.filled as usize,
            packets: self.packets,
            segmentation: segmented.then_some(Segmentation {
                segment: low16(self.segment),
                headers: low16(self.headers),
            }),
        }
    }
}

/// Encodes a packet in a frame that holds no other, and returns the frame's length. The pad count
/// of `headers` is set here, as in a [`Run`]. If the path has IPv4, `id` is the identification.
///
/// # Errors
/// When the packet is longer than the frame, or than the outer headers can say.
#[inline(always)]
pub fn alone(
    path: &Path,
    frame: &mut [u8],
    id: IpId,
    headers: Headers,
    payload: impl Payload,
) -> Result<usize, Full> {
    let outer = path.outer();
    let (begin, version) = (outer.len(), outer.version());
    let end = begin + transport_len(path, &headers, payload);
    let frame = frame.get_mut(..end).filter(|frame| frame.len() <= LONGEST).ok_or(Full)?;
    path.put_template(frame);
    lay(path, frame.split_at_mut(begin).1, id, headers, payload);
    path::seal(frame, version, path.sums(), id, false);
    Ok(end)
}

/// Returns the bytes of a frame with a packet along a path.
pub fn frame_len(path: &Path, headers: &Headers, payload: impl Payload) -> usize {
    path.outer().len() + transport_len(path, headers, payload)
}

/// Returns the bytes of a packet with padding and ICRC.
#[inline(always)]
fn transport_len(path: &Path, headers: &Headers, payload: impl Payload) -> usize {
    let added = if path.keys().is_some() { OVERHEAD } else { 0 };
    let whole = headers.len() + payload.len() + added;
    whole + padding(whole) + ICRC_LEN
}

/// Encodes a packet in memory of exactly its length.
#[inline(always)]
fn lay(path: &Path, packet: &mut [u8], id: IpId, headers: Headers, payload: impl Payload) {
    if let Some(keys) = path.keys() {
        return lay_encrypted(path, keys, packet, id, &headers, payload);
    }
    let bth = headers.bth.with_pad((padding(payload.len()) as u64 & 3) as u8);
    let crc = path.crc(packet.len(), id, bth.steady());
    let (packet, icrc) = packet.split_at_mut(packet.len() - ICRC_LEN);
    headers.emit_with(bth, packet);
    let crc = if payload.len() < LONG {
        place(packet.split_at_mut(headers.len()).1, payload);
        crc.update(packet.split_at(STEADY_BTH).1)
    } else {
        place_summed(packet, headers.len(), payload, crc)
    };
    icrc.copy_from_slice(&crc.finish().to_le_bytes());
}

/// Encodes a packet in memory of exactly its length, and encrypts it.
#[inline(never)]
fn lay_encrypted(
    path: &Path,
    keys: &Keys,
    packet: &mut [u8],
    id: IpId,
    headers: &Headers,
    payload: impl Payload,
) {
    let whole = headers.len() + payload.len() + OVERHEAD;
    let pad = padding(whole);
    let bth = headers.bth.with_opcode(Opcode::Encrypted).with_pad((pad as u64 & 3) as u8);
    let crc = path.crc(packet.len(), id, bth.steady());
    let (packet, icrc) = packet.split_at_mut(packet.len() - ICRC_LEN);
    let (sealed, pad) = packet.split_at_mut(whole);
    pad.fill(0);
    let (inner, _) = sealed.split_at_mut(whole - TAG_LEN);
    if let Some((opcode, rest)) = inner.split_at_mut(ENCRYPTED_FROM).1.split_first_mut() {
        *opcode = headers.bth.opcode().code();
        let plain = headers.to_bytes();
        let (plain, _) = plain.split_at(headers.len());
        let (_, extensions) = plain.split_at(Bth::LEN);
        let (front, behind) = rest.split_at_mut(extensions.len());
        front.copy_from_slice(extensions);
        payload.copy_to(behind);
    }
    keys.seal(&bth, sealed);
    let crc = crc.update(packet.split_at(STEADY_BTH).1);
    icrc.copy_from_slice(&crc.finish().to_le_bytes());
}

/// Copies a payload and its padding to `out`, which has exactly their length.
#[inline(always)]
fn place(out: &mut [u8], payload: impl Payload) {
    payload.copy_to(out);
    for byte in out.split_at_mut(payload.len()).1 {
        *byte = 0;
    }
}

/// The least length of a payload that is copied and summed in one pass.
const LONG: usize = 512;

/// Copies a long payload and its padding behind headers of `begin` bytes, and returns the CRC of
/// all bytes behind the BTH's first eight.
#[inline(never)]
fn place_summed(packet: &mut [u8], begin: usize, payload: impl Payload, crc: Crc) -> Crc {
    let (headers, body) = packet.split_at_mut(begin);
    let (body, pad) = body.split_at_mut(payload.len());
    pad.fill(0);
    let crc = payload.copy_to_summed(body, crc.update(headers.split_at(STEADY_BTH).1));
    if pad.is_empty() { crc } else { crc.update_short(pad) }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;
    use crate::encap::{Opener, Outer};
    use crate::wire::{Bth, Extensions, Gid, Mac, Opcode, Psn, Qpn};

    fn path() -> Path {
        let mac = Mac([2, 0, 0, 0, 0, 1]);
        let at = |port| (Ipv6Addr::from(Gid::from_mac(mac)), port).into();
        let outer = Outer::v2((mac, mac), at(0xC000), at(4791)).expect("IPv6 both");
        Path::new(PathId(0), outer)
    }

    fn middle(psn: u32) -> Headers {
        let bth = Bth::new(Opcode::RcSendMiddle, Qpn::new(2), Psn::new(psn));
        Headers { bth, extensions: Extensions::None }
    }

    /// The outer headers' lengths once wrapped where the memory was longer than they can say.
    #[test]
    fn a_run_ends_where_the_lengths_of_its_headers_do() {
        let (path, mut frame) = (path(), vec![0; 80_000]);
        let mut run = Run::begin(&path, &mut frame, IpId(0), 128);
        let fitting = (0..128)
            .take_while(|&psn| run.push(&path, &mut frame, middle(psn), &[7; 4096][..]).is_ok());
        let fitting = fitting.count();
        let sealed = run.seal(&mut frame);
        assert_eq!((fitting, sealed.packets), (15, 15));
        let segment = sealed.segmentation.expect("a run").segment;
        let mut opener = Opener::default();
        let packets = opener.open(&frame[..sealed.len], Some(segment)).expect("headers");
        assert_eq!(packets.filter(|packet| packet.is_ok()).count(), 15);
    }

    #[test]
    fn alone_a_packet_is_as_in_a_run_of_one() {
        let macs = (Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]));
        let at = |last| (Ipv4Addr::new(10, 0, 0, last), 4791).into();
        let ipv4 = Outer::v2(macs, at(1), at(2)).expect("IPv4 both");
        let path = path();
        for outer in [Outer::v1(macs), ipv4, *path.outer()] {
            let path = Path::new(PathId(0), outer);
            for len in [0, 1, 8, 63, 511, 4096] {
                let payload = vec![7; len];
                let (mut one, mut other) = (vec![0; 5000], vec![0; 5000]);
                let mut run = Run::begin(&path, &mut one, IpId(3), 1);
                assert_eq!(run.push(&path, &mut one, middle(1), &payload[..]), Ok(()));
                let sealed = run.seal(&mut one);
                let alone = alone(&path, &mut other, IpId(3), middle(1), &payload[..]);
                assert_eq!((alone, one), (Ok(sealed.len), other));
            }
        }
        assert_eq!(alone(&path, &mut [0; 90], IpId(0), middle(0), &[1; 64][..]), Err(Full));
        let (mut frame, long) = (vec![0; 80_000], vec![0; 70_000]);
        assert_eq!(alone(&path, &mut frame, IpId(0), middle(0), &long[..]), Err(Full));
    }

    #[test]
    fn a_shorter_packet_is_the_last() {
        let (path, mut frame) = (path(), vec![0; 4096]);
        let mut run = Run::begin(&path, &mut frame, IpId(0), 128);
        assert_eq!(run.push(&path, &mut frame, middle(0), &[1; 64][..]), Ok(()));
        assert_eq!(run.push(&path, &mut frame, middle(1), &[1; 65][..]), Err(Full));
        assert_eq!(run.push(&path, &mut frame, middle(1), &[1; 8][..]), Ok(()));
        assert_eq!(run.push(&path, &mut frame, middle(2), &[1; 8][..]), Err(Full));
        assert_eq!(run.packets(), 2);
    }
}

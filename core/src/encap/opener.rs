//! Parsing a received frame into packets whose ICRC holds.

use crate::fields::be16;
use crate::wire::{Bth, Crc, Ethernet, Grh, IpId, Ipv4, Malformed, Packet, Part, Udp, fold};

use super::crc_prefix::CrcPrefix;
use super::icrc::{ICRC_LEN, steady_bth};
use super::ip_id::IpIdRecovery;
use super::outer::{Outer, id_of, with_id};

/// A parser of frames, which remembers the outer headers of the last frame and their CRC. The next
/// frame is likely to have the same outer headers, which then are neither parsed nor summed again.
#[derive(Clone, Debug)]
pub struct Opener {
    outer: Outer,
    /// The bytes that `outer` was parsed from.
    bytes: [u8; Outer::MAX_LEN],
    /// The length of that frame's transport packets.
    transport: usize,
    /// The headers that [`datagram`](Self::datagram) was given last, if `outer` is made of them.
    given: Outer,
    /// The CRC of these headers and of the first eight bytes of a packet's BTH.
    remembered: CrcPrefix,
    /// The number of frames whose headers differed from those of the frame before.
    changes: u64,
}

impl Default for Opener {
    fn default() -> Self {
        Self {
            outer: Outer::NOWHERE,
            bytes: [0; Outer::MAX_LEN],
            // No frame is this long, so the first frame is parsed.
            transport: usize::MAX,
            given: Outer::NOWHERE,
            remembered: CrcPrefix::NONE,
            changes: 0,
        }
    }
}

/// The packets of one frame, in their order. A damaged packet is an error, and the others are not
/// affected.
#[derive(Debug)]
pub struct Arrival<'f, 'o> {
    rest: &'f [u8],
    segment: usize,
    index: u16,
    opener: &'o mut Opener,
    ids: Option<&'o mut IpIdRecovery>,
    wrong: Malformed,
}

impl Opener {
    /// Parses the outer headers of `frame`. If the device says that the frame is a run of packets,
    /// `segment` is their size.
    #[inline]
    pub fn open<'f>(
        &mut self,
        frame: &'f [u8],
        segment: Option<u16>,
    ) -> Result<Arrival<'f, '_>, Malformed> {
        let rest = match self.repeated(frame) {
            Some(rest) => rest,
            None => self.parse(frame)?,
        };
        Ok(Arrival::new(rest, segment, self, None))
    }

    /// Parses a datagram that a UDP socket received. Its outer headers are known from the
    /// addresses, except for lengths and identification. `ids` predicts the identification, and
    /// learns from the datagram. As in [`open`](Self::open), `segment` is the size of the packets
    /// of a run.
    #[inline]
    pub fn datagram<'f, 'o>(
        &'o mut self,
        outer: &Outer,
        ids: &'o mut IpIdRecovery,
        datagram: &'f [u8],
        segment: Option<u16>,
    ) -> Result<Arrival<'f, 'o>, Malformed> {
        if datagram.is_empty() {
            return Err(NOTHING);
        }
        if self.given != *outer {
            self.give(outer);
        }
        self.outer.identify(ids.expected());
        Ok(Arrival::new(datagram, segment, self, Some(ids)))
    }

    #[cold]
    fn give(&mut self, outer: &Outer) {
        self.transport = usize::MAX;
        (self.outer, self.given) = (*outer, *outer);
        self.remembered = CrcPrefix::NONE;
        self.changes += 1;
    }

    /// Returns the rest of the frame behind its outer headers, if these are the same as those of
    /// the frame before.
    #[inline]
    fn repeated<'f>(&mut self, frame: &'f [u8]) -> Option<&'f [u8]> {
        // The lengths are constants, so the comparison is a few instructions and no call.
        let same = match &mut self.outer {
            Outer::V1(..) => same::<{ Ethernet::LEN + Grh::LEN }>(frame, &self.bytes),
            Outer::V2Ipv6(..) => same::<{ Outer::MAX_LEN }>(frame, &self.bytes),
            Outer::V2Ipv4(_, ip, _) => {
                let (id, same) = same_but_id(frame, &self.bytes)?;
                ip.id = id;
                same
            }
        };
        let rest = frame.get(self.outer.len()..)?.get(..self.transport)?;
        same.then_some(rest)
    }

    #[cold]
    fn parse<'f>(&mut self, frame: &'f [u8]) -> Result<&'f [u8], Malformed> {
        // If this frame is not accepted, the next frame must not be compared with it.
        (self.transport, self.given) = (usize::MAX, Outer::NOWHERE);
        let (outer, rest) = Outer::parse(frame)?;
        if rest.is_empty() {
            return Err(NOTHING);
        }
        let (Some(own), Some(read)) = (self.bytes.get_mut(..outer.len()), frame.get(..outer.len()))
        else {
            return Err(NOTHING);
        };
        own.copy_from_slice(read);
        self.outer = outer;
        self.transport = rest.len();
        self.remembered = CrcPrefix::NONE;
        self.changes += 1;
        Ok(rest)
    }

    /// Returns the CRC of a packet of `transport` bytes up to the first eight bytes of its BTH,
    /// without the identification.
    #[inline]
    fn crc(&mut self, transport: usize, bth: u64) -> Crc {
        if !self.remembered.fits(transport, bth) {
            self.remembered = CrcPrefix::begin(&self.outer, transport, bth);
        }
        self.remembered.crc
    }
}

/// The error for outer headers that no packet follows.
const NOTHING: Malformed = Malformed::Truncated { part: Part::Bth, need: Bth::LEN, have: 0 };

/// Whether the first `N` bytes of a frame are those of `bytes`.
#[inline]
fn same<const N: usize>(frame: &[u8], bytes: &[u8]) -> bool {
    let (Some(a), Some(b)) = (frame.first_chunk::<N>(), bytes.first_chunk::<N>()) else {
        return false;
    };
    // Word by word, since a comparison of arrays of this length is a call into the library.
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let differences = a.iter().zip(b).map(|(a, b)| u64::from_ne_bytes(*a) ^ u64::from_ne_bytes(*b));
    differences.fold(0, |all, one| all | one) == 0 && a_rest == b_rest
}

/// Returns the IPv4 identification of a frame, and whether its other outer headers are those in
/// `bytes`. The header checksum differs with the identification, but the sum of both stays the
/// same.
#[inline]
fn same_but_id(frame: &[u8], bytes: &[u8]) -> Option<(IpId, bool)> {
    const LEN: usize = Ethernet::LEN + Ipv4::LEN + Udp::LEN;
    const ID: usize = Ethernet::LEN + 4;
    const CHECKSUM: usize = Ethernet::LEN + 10;
    let (ours, theirs) = (frame.first_chunk::<LEN>()?, bytes.first_chunk::<LEN>()?);
    let sum = |h| fold(u32::from(be16::<ID, LEN>(h)) + u32::from(be16::<CHECKSUM, LEN>(h)));
    // The identification is in the third word, and the checksum in the fourth.
    const { assert!(ID / 8 == 2 && (ID + 1) / 8 == 2 && CHECKSUM / 8 == 3 && (CHECKSUM + 1) / 8 == 3) };
    let masks = [!0, !0, without(ID), without(CHECKSUM), !0];
    let ((a, a_rest), (b, b_rest)) = (ours.as_chunks::<8>(), theirs.as_chunks::<8>());
    let differences = a.iter().zip(b).zip(masks).fold(0, |all, ((a, b), mask)| {
        all | (u64::from_ne_bytes(*a) ^ u64::from_ne_bytes(*b)) & mask
    });
    let same = differences == 0 && a_rest == b_rest && sum(ours) == sum(theirs);
    Some((IpId(be16::<ID, LEN>(ours)), same))
}

/// Returns a word of ones, in which the two bytes of a header that begin at `at` are zero.
const fn without(at: usize) -> u64 {
    !u64::from_le(0xFFFF << (8 * (at % 8)))
}

impl<'f, 'o> Arrival<'f, 'o> {
    #[inline]
    fn new(
        rest: &'f [u8],
        segment: Option<u16>,
        opener: &'o mut Opener,
        ids: Option<&'o mut IpIdRecovery>,
    ) -> Self {
        let segment = segment.map_or(rest.len(), usize::from).max(1);
        Self { rest, segment, index: 0, opener, ids, wrong: NOTHING }
    }

    /// Returns the outer headers of the frame.
    #[inline]
    pub fn outer(&self) -> &Outer {
        &self.opener.outer
    }

    /// Returns a number that two frames share only if they follow each other with the same outer
    /// headers, the identification aside. So a NIC that has checked the addresses of one frame need
    /// not check those of the other.
    #[inline]
    pub fn flow(&self) -> u64 {
        self.opener.changes
    }

    /// Returns the next packet with its ICRC, which is not checked yet.
    #[inline(always)]
    pub(crate) fn next_sealed(&mut self) -> Option<&'f [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let (packet, rest) = self.rest.split_at(self.segment.min(self.rest.len()));
        self.rest = rest;
        Some(packet)
    }

    /// Checks the ICRC of the packet that was last taken, and returns the packet without its ICRC.
    /// If the check fails, [`wrong`](Self::wrong) returns the error.
    #[inline(always)]
    pub(crate) fn check(&mut self, packet: &'f [u8]) -> Option<&'f [u8]> {
        let index = self.index;
        self.index = index.wrapping_add(1);
        let split = packet.split_last_chunk::<ICRC_LEN>();
        let split = split.and_then(|(body, found)| Some((body, found, body.split_first_chunk()?)));
        let Some((body, found, (&steady, rest))) = split else {
            let (need, have) = (Bth::LEN + ICRC_LEN, packet.len());
            self.wrong = Malformed::Truncated { part: Part::Bth, need, have };
            return None;
        };
        let crc = self.opener.crc(packet.len(), steady_bth(steady));
        let first = self.opener.outer.id();
        let id = first.map(|IpId(first)| IpId(first.wrapping_add(index)));
        let (expected, found) =
            (with_id(crc, id).update(rest).finish(), u32::from_le_bytes(*found));
        let ids = self.ids.as_deref_mut();
        if expected == found {
            if let (Some(ids), Some(first)) = (ids, first) {
                ids.confirm(first);
            }
        } else if !self.opener.explains(Mismatch { crc, index, rest, found, expected }, ids) {
            self.wrong = Malformed::Icrc { found, expected };
            return None;
        }
        Some(body)
    }

    /// Returns the error of the packet whose check failed last.
    #[inline]
    pub(crate) fn wrong(&self) -> Malformed {
        self.wrong
    }
}

/// A packet whose ICRC does not hold with the expected identification.
struct Mismatch<'f> {
    /// The CRC up to the BTH's first eight bytes, without an identification.
    crc: Crc,
    /// The index of the packet in its run.
    index: u16,
    /// The bytes behind the BTH's first eight.
    rest: &'f [u8],
    /// The ICRC that the packet carries.
    found: u32,
    /// The ICRC that the packet should have with the expected identification.
    expected: u32,
}

impl Opener {
    /// Whether the ICRC of a packet holds with another identification than the expected one.
    #[cold]
    #[inline(never)]
    fn explains(&mut self, mismatch: Mismatch<'_>, ids: Option<&mut IpIdRecovery>) -> bool {
        let Mismatch { crc, index, rest, found, expected } = mismatch;
        let Some(IpId(first)) = self.outer.id() else { return false };
        // A run that the receiving interface put together may have carried one identification
        // throughout, where a sender's runs count upwards.
        if index > 0 && with_id(crc, Some(IpId(first))).update(rest).finish() == found {
            ids.into_iter().for_each(|ids| ids.confirm(IpId(first)));
            return true;
        }
        // Otherwise the difference between the two ICRCs must be the effect of a difference between
        // two identifications: the predicted one, and the sender's, which this side does not see.
        let Some(ids) = ids else { return false };
        let Some(IpId(between)) = id_of(expected ^ found, rest.len()) else { return false };
        let first = IpId((first.wrapping_add(index) ^ between).wrapping_sub(index));
        ids.correct(first);
        self.outer.identify(first);
        true
    }
}

impl<'f> Iterator for Arrival<'f, '_> {
    type Item = Result<Packet<&'f [u8]>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let packet = self.next_sealed()?;
        Some(self.check(packet).ok_or(self.wrong).and_then(Packet::parse))
    }
}

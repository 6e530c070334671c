//! Taking a received frame apart into packets whose ICRC held.

use crate::fields::be16;
use crate::wire::{Bth, Crc, Ethernet, Grh, IpId, Ipv4, Malformed, Packet, Part, Udp, fold};

use super::ip_id::IpIdRecovery;
use super::outer::{Outer, id_of, with_id};
use super::{ICRC_LEN, Remembered, steady_bth};

/// Opens frames, remembering the outer headers of the last one and the CRC that they gave: the
/// next is likely to have the same, and is then neither parsed nor summed again.
#[derive(Clone, Debug)]
pub struct Opener {
    outer: Outer,
    /// The bytes that `outer` was read from, and how many of its frame were the transport packet's.
    bytes: [u8; Outer::MAX_LEN],
    transport: usize,
    /// What `outer` was made of, if it was given and not read.
    given: Outer,
    /// The CRC of these headers and the steady part of a packet's BTH.
    remembered: Remembered,
    /// How often headers came that were not those of the frame before.
    changes: u64,
}

impl Default for Opener {
    fn default() -> Self {
        Self {
            outer: Outer::NOWHERE,
            bytes: [0; Outer::MAX_LEN],
            // More than any frame has: the first is not taken for a repetition.
            transport: usize::MAX,
            given: Outer::NOWHERE,
            remembered: Remembered::NOTHING,
            changes: 0,
        }
    }
}

/// The packets of one frame, in their order. Each is an error of its own when it is damaged.
#[derive(Debug)]
pub struct Arrival<'f, 'o> {
    rest: &'f [u8],
    segment: usize,
    index: u16,
    opener: &'o mut Opener,
    hidden: Option<&'o mut IpIdRecovery>,
    wrong: Malformed,
}

impl Opener {
    /// Reads the outer headers of `frame`. Where the device says that it is a run, `segment` is
    /// the size of its packets.
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

    /// Opens what a UDP socket received: what stood behind the outer headers, which are known from
    /// the addresses but for lengths and identification. `ids` predicts the latter, and learns. As
    /// in [`open`](Self::open), `segment` is the size of the packets of a run.
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
        self.remembered = Remembered::NOTHING;
        self.changes += 1;
    }

    /// What follows the outer headers, if they are those of the frame before.
    #[inline]
    fn repeated<'f>(&mut self, frame: &'f [u8]) -> Option<&'f [u8]> {
        // Of known lengths, so that the comparison is a few instructions and no call.
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
        // Whatever happens, the next frame is not compared with one that was not accepted.
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
        self.remembered = Remembered::NOTHING;
        self.changes += 1;
        Ok(rest)
    }

    /// The CRC of a packet of `transport` bytes up to and with the steady part of its BTH, but for
    /// the identification.
    #[inline]
    fn crc(&mut self, transport: usize, bth: u64) -> Crc {
        if !self.remembered.fits(transport, bth) {
            self.remembered = Remembered::begin(&self.outer, transport, bth);
        }
        self.remembered.crc
    }
}

/// What is wrong with outer headers that nothing follows.
const NOTHING: Malformed = Malformed::Truncated { part: Part::Bth, need: Bth::LEN, have: 0 };

/// Whether a frame begins with the `N` bytes that `bytes` does.
#[inline]
fn same<const N: usize>(frame: &[u8], bytes: &[u8]) -> bool {
    let (Some(a), Some(b)) = (frame.first_chunk::<N>(), bytes.first_chunk::<N>()) else {
        return false;
    };
    // Word by word: for this many bytes a comparison of arrays calls the library.
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let differences = a.iter().zip(b).map(|(a, b)| u64::from_ne_bytes(*a) ^ u64::from_ne_bytes(*b));
    differences.fold(0, |all, one| all | one) == 0 && a_rest == b_rest
}

/// The identification of a frame over IPv4, and whether its other outer headers are those in
/// `bytes`. The checksum differs with the identification: the sum of both is the same.
#[inline]
fn same_but_id(frame: &[u8], bytes: &[u8]) -> Option<(IpId, bool)> {
    const LEN: usize = Ethernet::LEN + Ipv4::LEN + Udp::LEN;
    const ID: usize = Ethernet::LEN + 4;
    const CHECKSUM: usize = Ethernet::LEN + 10;
    let (ours, theirs) = (frame.first_chunk::<LEN>()?, bytes.first_chunk::<LEN>()?);
    let sum = |h| fold(u32::from(be16::<ID, LEN>(h)) + u32::from(be16::<CHECKSUM, LEN>(h)));
    // The identification lies in the third word, with all of the checksum in the fourth.
    const { assert!(ID / 8 == 2 && (ID + 1) / 8 == 2 && CHECKSUM / 8 == 3 && (CHECKSUM + 1) / 8 == 3) };
    let masks = [!0, !0, without(ID), without(CHECKSUM), !0];
    let ((a, a_rest), (b, b_rest)) = (ours.as_chunks::<8>(), theirs.as_chunks::<8>());
    let differences = a.iter().zip(b).zip(masks).fold(0, |all, ((a, b), mask)| {
        all | (u64::from_ne_bytes(*a) ^ u64::from_ne_bytes(*b)) & mask
    });
    let same = differences == 0 && a_rest == b_rest && sum(ours) == sum(theirs);
    Some((IpId(be16::<ID, LEN>(ours)), same))
}

/// A word of ones but for the two bytes of a header that begin at `at`.
const fn without(at: usize) -> u64 {
    !u64::from_le(0xFFFF << (8 * (at % 8)))
}

impl<'f, 'o> Arrival<'f, 'o> {
    #[inline]
    fn new(
        rest: &'f [u8],
        segment: Option<u16>,
        opener: &'o mut Opener,
        hidden: Option<&'o mut IpIdRecovery>,
    ) -> Self {
        let segment = segment.map_or(rest.len(), usize::from).max(1);
        Self { rest, segment, index: 0, opener, hidden, wrong: NOTHING }
    }

    /// The headers around the packets.
    #[inline]
    pub fn outer(&self) -> &Outer {
        &self.opener.outer
    }

    /// A number that frames share only if they follow each other with the same outer headers, but
    /// for the identification: who has judged the addresses of one need not judge the other's.
    #[inline]
    pub fn flow(&self) -> u64 {
        self.opener.changes
    }

    /// The next packet, unchecked.
    #[inline(always)]
    pub(crate) fn next_sealed(&mut self) -> Option<&'f [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let (packet, rest) = self.rest.split_at(self.segment.min(self.rest.len()));
        self.rest = rest;
        Some(packet)
    }

    /// The packet that was last taken without its ICRC, if that held: if it did not, it is
    /// [known](Self::wrong) why.
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
        let hidden = self.hidden.as_deref_mut();
        if expected == found {
            if let (Some(ids), Some(first)) = (hidden, first) {
                ids.confirm(first);
            }
        } else if !self.opener.explains((crc, index), rest, (found, expected), hidden) {
            self.wrong = Malformed::Icrc { found, expected };
            return None;
        }
        Some(body)
    }

    /// What was wrong with the packet whose check failed last.
    #[inline]
    pub(crate) fn wrong(&self) -> Malformed {
        self.wrong
    }
}

impl Opener {
    /// Whether an ICRC that was `found`, and is not the one `expected`, holds with another
    /// identification than the packet of that index in its run should have. Its steady part gave
    /// `crc`.
    #[cold]
    #[inline(never)]
    fn explains(
        &mut self,
        (crc, index): (Crc, u16),
        rest: &[u8],
        (found, expected): (u32, u32),
        hidden: Option<&mut IpIdRecovery>,
    ) -> bool {
        let Some(IpId(first)) = self.outer.id() else { return false };
        // A run that the receiving interface put together may have carried one identification
        // throughout, where a sender's runs count upwards.
        if index > 0 && with_id(crc, Some(IpId(first))).update(rest).finish() == found {
            hidden.into_iter().for_each(|ids| ids.confirm(IpId(first)));
            return true;
        }
        // Otherwise the difference between the two must be that between two identifications: the
        // assumed one, and another that is hidden.
        let Some(ids) = hidden else { return false };
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

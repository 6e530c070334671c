//! Taking a received frame apart into packets whose ICRC held.

use crate::wire::{Bth, Crc, Ethernet, IpId, Malformed, Packet, Part, fold, sum_words};

use super::outer::{Outer, with_id};
use super::{ICRC_LEN, Remembered, STEADY_BTH, steady_bth};

/// Opens frames, remembering the outer headers of the last one and the CRC that they gave: the
/// next is likely to have the same, and is then neither parsed nor summed again.
#[derive(Clone, Debug)]
pub struct Opener {
    outer: Outer,
    /// The bytes that `outer` was read from, and how many of its frame were the transport packet's.
    bytes: [u8; Outer::MAX_LEN],
    transport: usize,
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
        let segment = segment.map_or(rest.len(), usize::from).max(1);
        Ok(Arrival { rest, segment, index: 0, opener: self })
    }

    /// What follows the outer headers, if they are those of the frame before.
    #[inline]
    fn repeated<'f>(&mut self, frame: &'f [u8]) -> Option<&'f [u8]> {
        let (headers, rest) = frame.split_at_checked(self.outer.len())?;
        let rest = rest.get(..self.transport)?;
        if let Outer::V2Ipv4(_, ip, _) = &mut self.outer {
            // Packets of one flow differ in the identification and thereby in the checksum: their
            // sum is the same.
            let (id, sum) = (Ethernet::LEN + 4, Ethernet::LEN + 10);
            let both = |h: &[u8]| fold(sum_words(&h[id..id + 2]) + sum_words(&h[sum..sum + 2]));
            let same = both(headers) == both(&self.bytes)
                && headers[..id] == self.bytes[..id]
                && headers[id + 2..sum] == self.bytes[id + 2..sum]
                && headers[sum + 2..] == self.bytes[sum + 2..headers.len()];
            ip.id = IpId(u16::from_be_bytes([headers[id], headers[id + 1]]));
            return same.then_some(rest);
        }
        (headers == &self.bytes[..headers.len()]).then_some(rest)
    }

    #[cold]
    fn parse<'f>(&mut self, frame: &'f [u8]) -> Result<&'f [u8], Malformed> {
        // Whatever happens, the next frame is not compared with one that was not accepted.
        self.transport = usize::MAX;
        let (outer, rest) = Outer::parse(frame)?;
        if rest.is_empty() {
            return Err(Malformed::Truncated { part: Part::Bth, need: Bth::LEN, have: 0 });
        }
        self.outer = outer;
        self.bytes[..outer.len()].copy_from_slice(&frame[..outer.len()]);
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

impl<'f> Arrival<'f, '_> {
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

    #[inline]
    fn check(&mut self, packet: &'f [u8]) -> Result<Packet<&'f [u8]>, Malformed> {
        let index = self.index;
        self.index = index.wrapping_add(1);
        let (need, have) = (Bth::LEN + ICRC_LEN, packet.len());
        let truncated = Malformed::Truncated { part: Part::Bth, need, have };
        let (body, &found) = packet.split_last_chunk::<ICRC_LEN>().ok_or(truncated)?;
        let (&steady, rest) = body.split_first_chunk::<STEADY_BTH>().ok_or(truncated)?;
        let steady = steady_bth(steady);
        let crc = self.opener.crc(packet.len(), steady);
        self.judge(crc, index, rest, u32::from_le_bytes(found))?;
        Packet::parse(body)
    }

    /// Whether the ICRC `found` is that of a packet whose steady part gave `crc`.
    #[inline]
    fn judge(&self, crc: Crc, index: u16, rest: &[u8], found: u32) -> Result<(), Malformed> {
        let id = self.opener.outer.id();
        let numbered = id.map(|IpId(first)| IpId(first.wrapping_add(index)));
        let expected = with_id(crc, numbered).update(rest).finish();
        if expected == found {
            return Ok(());
        }
        // A run that the receiving interface put together may have carried one identification
        // throughout, where a sender's runs count upwards.
        if index > 0 && id.is_some() && with_id(crc, id).update(rest).finish() == found {
            return Ok(());
        }
        Err(Malformed::Icrc { found, expected })
    }
}

impl<'f> Iterator for Arrival<'f, '_> {
    type Item = Result<Packet<&'f [u8]>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let (packet, rest) = self.rest.split_at(self.segment.min(self.rest.len()));
        self.rest = rest;
        Some(self.check(packet))
    }
}

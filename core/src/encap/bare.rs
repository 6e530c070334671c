//! Packets with nothing around them, in words that two ends share.
//!
//! A record begins with 32 bits of the device's own, its tag, and the packet follows at once:
//! headers and payload, not padded, no ICRC. So the BTH ends at the second word, and a write's
//! RETH at the fourth: a small message's payload is aligned, and message and tag share a cache
//! line. The first word is stored last and with release order: who loads it with acquire order
//! and knows the tag may read the rest.
//!
//! Nothing here lends a reference into the record. The headers are copied out before anything of
//! them is judged, for whoever shares the memory may change it at any time.

use crate::payload::{Payload, WordBytes};
use crate::sync::{AtomicU64, Ordering};
use crate::wire::{
    Bth, Extensions, Glance, Headers, Layout, Malformed, Packet, Part, without_padding,
};

/// The bytes of the device's tag.
pub const TAG_LEN: usize = 4;

/// Where the BTH ends: with a word.
const BTH_END: usize = TAG_LEN + Bth::LEN;
/// The bytes of whole words that the longest extension headers lie in.
const EXTENSIONS: usize = Extensions::MAX_LEN.next_multiple_of(8);

/// The bytes that a record takes, its tag included.
#[inline]
pub fn record_len(headers: &Headers, payload: usize) -> usize {
    TAG_LEN + headers.len() + payload
}

/// Writes a packet to the front of `record`, and the tag with its beginning last of all. Records
/// are not padded, whatever pad count the headers came with; but they take whole words, and what is
/// left over of the last may be overwritten.
///
/// # Panics
/// If `record` is shorter than [`record_len`].
#[inline(always)]
pub fn emit(record: &[AtomicU64], tag: [u8; TAG_LEN], headers: &Headers, payload: impl Payload) {
    let [a, b, c, d, behind @ ..] = headers.bth.with_pad(0).to_bytes();
    record[1].store(u64::from_ne_bytes(behind), Ordering::Relaxed);
    let start = TAG_LEN + headers.len();
    if start > BTH_END {
        let mut bytes = [0; EXTENSIONS];
        headers.extensions.emit(&mut bytes);
        // Whole words, of which the last may reach into the payload's place: that comes afterwards.
        let words = record[BTH_END / 8..start.div_ceil(8)].iter();
        for (word, bytes) in words.zip(bytes.as_chunks().0) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
    }
    if start.is_multiple_of(8) || !put_word(record, start, payload) {
        payload.copy_to_words(record, start);
    }
    let [e, f, g, h] = tag;
    record[0].store(u64::from_ne_bytes([e, f, g, h, a, b, c, d]), Ordering::Release);
}

/// Puts a payload of one word behind headers that end in the middle of one, which is plainly stored
/// again: the record is nobody else's yet. Whether it is such a payload.
#[inline(always)]
fn put_word(record: &[AtomicU64], start: usize, payload: impl Payload) -> bool {
    let (true, Some([first, second])) = (payload.len() == 8, record[start / 8..].first_chunk())
    else {
        return false;
    };
    let (mut bytes, shift) = ([0; 8], start % 8 * 8);
    payload.copy_to(&mut bytes);
    let word = u64::from_le_bytes(bytes);
    let before = u64::from_le(first.load(Ordering::Relaxed)) & ((1 << shift) - 1);
    first.store((before | word << shift).to_le(), Ordering::Relaxed);
    second.store((word >> (64 - shift)).to_le(), Ordering::Relaxed);
    true
}

/// The tag in the first word of a record.
#[inline]
pub fn tag(first: u64) -> [u8; TAG_LEN] {
    let [e, f, g, h, ..] = first.to_ne_bytes();
    [e, f, g, h]
}

/// Reads the packet of `len` bytes in `record`, whose first word was loaded as `first`.
#[inline]
pub fn parse(
    record: &[AtomicU64],
    first: u64,
    len: usize,
) -> Result<Packet<WordBytes<'_>>, Malformed> {
    let (bth, rest) = (begin(record, first, len)?, Rest { record, len });
    // With most layouts as constants: what is read then is known when this is compiled.
    match bth.opcode().layout() {
        Layout::None => rest.parse_as(bth, Layout::None),
        Layout::Reth => rest.parse_as(bth, Layout::Reth),
        Layout::Aeth => rest.parse_as(bth, Layout::Aeth),
        Layout::Atomic => rest.parse_as(bth, Layout::Atomic),
        Layout::AethAtomicAck => rest.parse_as(bth, Layout::AethAtomicAck),
        layout => rest.parse_as(bth, layout),
    }
}

/// Reads its BTH.
#[inline(always)]
pub(crate) fn begin(record: &[AtomicU64], first: u64, len: usize) -> Result<Bth, Malformed> {
    let have = (record.len() * 8).saturating_sub(TAG_LEN);
    if len > have {
        return Err(Malformed::Length { part: Part::Bth, claimed: len, have });
    }
    let Some(second) = record.get(1).filter(|_| len >= Bth::LEN) else {
        return Err(Malformed::Truncated { part: Part::Bth, need: Bth::LEN, have: len });
    };
    Bth::from_bytes(&bth_bytes(first, second))
}

/// A record with a packet of `len` bytes, whose BTH was read, and found within.
#[derive(Clone, Copy)]
pub(crate) struct Rest<'a> {
    pub record: &'a [AtomicU64],
    pub len: usize,
}

impl<'a> Rest<'a> {
    /// Reads what is behind the BTH.
    #[inline(always)]
    pub fn parse_as(self, bth: Bth, layout: Layout) -> Result<Packet<WordBytes<'a>>, Malformed> {
        let Self { record, len } = self;
        let mut bytes = [0; EXTENSIONS];
        let words = record[BTH_END / 8..].iter().take(layout.len().div_ceil(8));
        for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
            *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        let known = (len - Bth::LEN).min(EXTENSIONS);
        let (extensions, _) = Extensions::parse(layout, &bytes[..known])?;
        let headers = Headers { bth, extensions };
        let payload = without_padding(&headers, len - Bth::LEN - layout.len())?;
        let start = BTH_END + layout.len();
        let have = record.len() * 8 - TAG_LEN;
        let missing = Malformed::Length { part: Part::Payload, claimed: payload, have };
        let payload = WordBytes::new(record, start..start + payload).ok_or(missing)?;
        Ok(Packet { headers, payload })
    }
}

/// A glance at its BTH, and all that is behind it, if that has no padding: no record is
/// [written](emit) with any.
#[inline(always)]
pub(crate) fn glance(
    record: &[AtomicU64],
    first: u64,
    len: usize,
) -> Option<(Glance, WordBytes<'_>)> {
    let [a, b, c, d, e, f, g, h, last @ ..] = bth_bytes(first, record.get(1)?);
    let glance = Glance::new([a, b, c, d, e, f, g, h], last);
    if glance.pad() != 0 {
        return None;
    }
    Some((glance, WordBytes::new(record, BTH_END..TAG_LEN + len)?))
}

/// The BTH, of which four bytes are in the first word, and the rest is the second.
#[inline(always)]
fn bth_bytes(first: u64, second: &AtomicU64) -> [u8; Bth::LEN] {
    let [_, _, _, _, a, b, c, d] = first.to_ne_bytes();
    let [e, f, g, h, i, j, k, l] = second.load(Ordering::Relaxed).to_ne_bytes();
    [a, b, c, d, e, f, g, h, i, j, k, l]
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::wire::{Opcode, Psn, Qpn};

    /// Headers that came padded from elsewhere once took the padding from the payload.
    #[test]
    fn a_record_keeps_its_whole_payload_whatever_pad_count_it_is_given() {
        let record = [const { AtomicU64::new(0) }; 8];
        let bth = Bth::new(Opcode::RcSendOnly, Qpn::new(2), Psn::new(0)).with_pad(3);
        let headers = Headers { bth, extensions: Extensions::None };
        emit(&record, [1, 2, 3, 4], &headers, &b"complete"[..]);
        let first = record[0].load(Ordering::Acquire);
        assert_eq!(tag(first), [1, 2, 3, 4]);
        let packet = parse(&record, first, headers.len() + 8).expect("a packet");
        let mut payload = [0; 8];
        packet.payload.copy_to(&mut payload);
        assert_eq!((&payload, packet.headers.bth.pad()), (b"complete", 0));
    }
}

//! Records: packets without outer headers or ICRC, in memory that two processes share.
//!
//! A record begins with 32 bits for the device, its tag. The packet's headers follow at once, and
//! its payload from the next word on. So the BTH ends with the second word, a write's RETH with the
//! fourth, and the payload is always aligned; a small message and its tag share a cache line. The
//! first word is stored last, with release order: a reader that loads it with acquire order and
//! recognises the tag may read the rest.
//!
//! No function here lends a reference into the record. Headers are copied out before they are
//! checked, since the process that shares the memory may change it at any time.

use crate::fields::no_room;
use crate::memory::words;
use crate::payload::{Payload, WordBytes};
use crate::sync::{AtomicU64, Ordering};
use crate::wire::{
    AfterBth, Bth, Extensions, Headers, Layout, Malformed, Packet, Part, RawBth, without_padding,
};

/// The length of the device's tag in bytes.
pub const TAG_LEN: usize = 4;

/// The end of the BTH, which is the end of a word.
const BTH_END: usize = TAG_LEN + Bth::LEN;
/// The bytes of the whole words that hold the longest extension headers.
const EXTENSIONS: usize = Extensions::MAX_LEN.next_multiple_of(8);

/// Returns where the payload begins behind extension headers of that length.
#[inline(always)]
const fn start(extensions: usize) -> usize {
    (BTH_END + extensions).next_multiple_of(8)
}

/// Returns the bytes that a record takes, with its tag.
#[inline]
pub fn record_len(headers: &Headers, payload: usize) -> usize {
    start(headers.len() - Bth::LEN) + payload
}

/// Writes a packet to the front of `record`, and the first word, which has the tag, last of all.
/// Payloads are not padded, and the pad count of `headers` is ignored. Records take whole words, so
/// the unused rest of the last word may be overwritten.
///
/// # Panics
/// If `record` is shorter than [`record_len`].
#[inline(always)]
pub fn emit(record: &[AtomicU64], tag: [u8; TAG_LEN], headers: &Headers, payload: impl Payload) {
    let [a, b, c, d, behind @ ..] = headers.bth.with_pad(0).to_bytes();
    let [first, second, rest @ ..] = record else { no_room() };
    second.store(u64::from_ne_bytes(behind), Ordering::Relaxed);
    let start = start(headers.len() - Bth::LEN);
    if start > BTH_END {
        let mut bytes = [0; EXTENSIONS];
        headers.extensions.emit(&mut bytes);
        // If the record is too short for the headers, copying the payload panics below.
        let words = rest.iter().take(start / 8 - BTH_END / 8);
        for (word, bytes) in words.zip(bytes.as_chunks().0) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
    }
    payload.copy_to_words(record, start);
    let [e, f, g, h] = tag;
    first.store(u64::from_ne_bytes([e, f, g, h, a, b, c, d]), Ordering::Release);
}

/// Returns the tag in the first word of a record.
#[inline]
pub fn tag(first: u64) -> [u8; TAG_LEN] {
    let [e, f, g, h, ..] = first.to_ne_bytes();
    [e, f, g, h]
}

/// Parses the packet of `len` bytes in `record`, whose first word was loaded as `first`.
#[inline]
pub fn parse(
    record: &[AtomicU64],
    first: u64,
    len: usize,
) -> Result<Packet<WordBytes<'_>>, Malformed> {
    let (bth, rest) = (begin(record, first, len)?, Rest { record, len });
    // The common layouts are constants here, so the compiler knows which bytes are parsed.
    match bth.opcode().layout() {
        Layout::None => rest.parse(bth, Layout::None),
        Layout::Reth => rest.parse(bth, Layout::Reth),
        Layout::Aeth => rest.parse(bth, Layout::Aeth),
        Layout::Atomic => rest.parse(bth, Layout::Atomic),
        Layout::AethAtomicAck => rest.parse(bth, Layout::AethAtomicAck),
        layout => rest.parse(bth, layout),
    }
}

/// Parses the BTH of the packet in a record.
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

/// The part of a record that follows the BTH of its packet, which has `len` bytes.
#[derive(Clone, Copy)]
pub(crate) struct Rest<'a> {
    pub record: &'a [AtomicU64],
    pub len: usize,
}

impl<'a> AfterBth for Rest<'a> {
    type Payload = WordBytes<'a>;

    /// The caller has checked that the packet lies within the record.
    #[inline(always)]
    fn parse(self, bth: Bth, layout: Layout) -> Result<Packet<WordBytes<'a>>, Malformed> {
        let Self { record, len } = self;
        let mut bytes = [0; EXTENSIONS];
        let words = record.get(BTH_END / 8..).unwrap_or_default();
        let words = words.iter().take(layout.len().div_ceil(8));
        for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
            *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        let known = (len - Bth::LEN).min(EXTENSIONS);
        let (extensions, _) = Extensions::parse(layout, bytes.split_at(known).0)?;
        let headers = Headers { bth, extensions };
        let start = start(layout.len());
        let need = start - TAG_LEN;
        let padded = len.checked_sub(need);
        let short = Malformed::Truncated { part: Part::Payload, need, have: len };
        let payload = without_padding(&headers, padded.ok_or(short)?)?;
        let have = record.len() * 8 - TAG_LEN;
        let missing = Malformed::Length { part: Part::Payload, claimed: payload, have };
        let payload = WordBytes::new(record, start..start + payload).ok_or(missing)?;
        Ok(Packet { headers, payload })
    }

    #[inline(always)]
    fn split<const N: usize>(self) -> Option<([u8; N], WordBytes<'a>)> {
        let Self { record, len } = self;
        let payload = WordBytes::new(record, start(N)..TAG_LEN + len)?;
        let mut headers = [0; N];
        // Copying zero bytes would still be a call.
        if N > 0 {
            words::copy_out(record, BTH_END, &mut headers);
        }
        Some((headers, payload))
    }
}

/// Returns the BTH without checking it, and the part that follows, if the packet has no padding:
/// [`emit`] writes none.
#[inline(always)]
pub(crate) fn glance(record: &[AtomicU64], first: u64, len: usize) -> Option<(RawBth, Rest<'_>)> {
    let [a, b, c, d, e, f, g, h, last @ ..] = bth_bytes(first, record.get(1)?);
    let bth = RawBth::new([a, b, c, d, e, f, g, h], last);
    if bth.pad() != 0 {
        return None;
    }
    Some((bth, Rest { record, len }))
}

/// Returns the bytes of the BTH, four of which are in the first word, and the rest in the second.
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

    /// A regression test: the pad count of headers from a padded packet once was taken off the
    /// record's payload.
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

//! Inline data: a few bytes that a request carries in place.
//!
//! Requests are moved more than once before they lie in their queue, sixteen bytes at a time. So
//! bytes are stored here sixteen at a time, too: a processor forwards its last store to a load of
//! the same bytes, and a load of more bytes must wait until the store is in the cache. Unused room
//! stays uninitialised, so that moving a request moves only the bytes that it carries, which is why
//! this file has unsafe code.

use std::mem::MaybeUninit;
use std::num::NonZero;
use std::slice;

/// The number of bytes that are stored at a time.
const UNIT: usize = 16;
type Unit = MaybeUninit<[u64; UNIT / 8]>;

/// A list of up to 64 bytes that are stored in place.
#[derive(Clone, Copy)]
pub(crate) struct InlineBytes {
    units: [Unit; 4],
    /// The number of bytes, plus one. Invariant: so many bytes are initialised.
    len: NonZero<u8>,
}

impl InlineBytes {
    /// The most bytes that there is room for.
    pub const MOST: usize = 4 * UNIT;

    /// Copies `bytes`, if they are not too many.
    #[inline(always)]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > Self::MOST {
            return None;
        }
        let mut units = [MaybeUninit::uninit(); 4];
        let (whole, rest) = bytes.as_chunks::<UNIT>();
        for (unit, bytes) in units.iter_mut().zip(whole) {
            put(unit, words(bytes));
        }
        if let Some(unit) = units.get_mut(whole.len()).filter(|_| !rest.is_empty()) {
            put(unit, words(&padded(rest)));
        }
        Some(Self { units, len: NonZero::new(bytes.len() as u8 + 1)? })
    }

    /// Takes the bytes of a word and of the words that follow, the lowest first, if they are not
    /// too many. This is for callers that have words in registers, and would have to store them to
    /// make bytes of them.
    #[inline(always)]
    pub fn of_words(first: u64, words: &[u64]) -> Option<Self> {
        let count = 1 + words.len();
        if count > Self::MOST / 8 {
            return None;
        }
        let mut units = [MaybeUninit::uninit(); 4];
        let (mut low, mut rest) = (first, words.iter());
        for unit in &mut units {
            let high = rest.next().copied().unwrap_or(0);
            put(unit, [low.to_le(), high.to_le()]);
            let Some(next) = rest.next() else { break };
            low = *next;
        }
        Some(Self { units, len: NonZero::new(8 * count as u8 + 1)? })
    }

    #[inline]
    pub const fn len(&self) -> usize {
        self.len.get() as usize - 1
    }

    /// Returns the bytes that are stored.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the invariant says that so many bytes are initialised.
        unsafe { slice::from_raw_parts(self.units.as_ptr().cast(), self.len()) }
    }
}

/// Stores a unit with one instruction.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn put(unit: &mut Unit, [low, high]: [u64; 2]) {
    use std::arch::x86_64::{_mm_set_epi64x, _mm_storeu_si128};
    // SAFETY: every processor of this kind has SSE2.
    let words = unsafe { _mm_set_epi64x(high as i64, low as i64) };
    // SAFETY: every processor of this kind has SSE2, and a unit has room for 16 bytes.
    unsafe { _mm_storeu_si128(unit.as_mut_ptr().cast(), words) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn put(unit: &mut Unit, words: [u64; 2]) {
    unit.write(words);
}

#[inline(always)]
fn words(bytes: &[u8; UNIT]) -> [u64; 2] {
    let words = bytes.as_chunks::<8>().0;
    [u64::from_ne_bytes(words[0]), u64::from_ne_bytes(words[1])]
}

/// Returns a unit that begins with `rest`, which is shorter, and ends with zeros.
#[inline(always)]
fn padded(rest: &[u8]) -> [u8; UNIT] {
    let mut unit = [0; UNIT];
    match rest.first_chunk() {
        // The rest is most often a word, whose copy needs no call.
        Some(word) if rest.len() == 8 => unit[..8].copy_from_slice(word as &[u8; 8]),
        _ => unit[..rest.len()].copy_from_slice(rest),
    }
    unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_bytes_are_those_they_were_made_of_and_at_most_64() {
        for len in 0..=64 {
            let bytes: Vec<u8> = (1..=len).collect();
            let inline = InlineBytes::new(&bytes).expect("at most 64 bytes");
            assert_eq!((inline.len(), inline.bytes()), (bytes.len(), &*bytes));
        }
        let words: Vec<u64> = (7..16).map(|word| word << 56 | word).collect();
        for count in 1..=8 {
            let inline =
                InlineBytes::of_words(words[0], &words[1..count]).expect("at most 64 bytes");
            let bytes: Vec<u8> =
                words[..count].iter().copied().flat_map(u64::to_le_bytes).collect();
            assert_eq!((inline.len(), inline.bytes()), (8 * count, &*bytes));
        }
        assert!(InlineBytes::of_words(words[0], &words[1..]).is_none());
        assert!(InlineBytes::new(&[0; 65]).is_none());
        assert!(InlineBytes::new(&[0; 256]).is_none());
    }
}

//! Copies between private bytes and memory that others write at the same time.
//!
//! Such memory is a slice of atomic 64-bit words, and byte `i` of it is byte `i % 8` of word
//! `i / 8`, in the order of [`u64::to_ne_bytes`]. Every access is to a whole aligned word, since
//! atomic accesses of different sizes that race are undefined in Rust. A reader may therefore see
//! some words of a write and not yet others, but never half of a word's store.
//!
//! Offsets and lengths are in bytes and need no alignment. Like indexing a slice, each function
//! panics when its range does not lie within the words. Ranges that a peer names are checked before,
//! as [`Region`](super::Region) does it.

use super::sys as bulk;
use crate::crc::Crc;
use crate::sync::{AtomicU64, Ordering};
use std::ptr;

/// The number of bytes in a word.
const WORD: usize = size_of::<u64>();

/// Writes `from` to the bytes at `at`.
///
/// Bytes beside the range keep what others write to them at the same time, even in a word that
/// the range shares with them. The word of the highest address is stored last and with
/// [`Release`](Ordering::Release), so whoever loads it with [`Acquire`](Ordering::Acquire) and
/// finds the new value finds the rest in place, too.
///
/// Aligned words cost a store each, a part of a word a compare-and-swap.
///
/// ```
/// use doorbell_core::memory::words;
/// use std::sync::atomic::AtomicU64;
///
/// let memory = [const { AtomicU64::new(0) }; 4];
/// words::copy_in(&memory, 5, b"part of three words");
/// let mut read = [0; 8];
/// words::copy_out(&memory, 10, &mut read);
/// assert_eq!(&read, b"of three");
/// ```
///
/// # Panics
/// When the range does not lie within `words`.
#[inline(always)]
pub fn copy_in(words: &[AtomicU64], at: usize, from: &[u8]) {
    // Most messages are a few whole words, which need no loop and no partial words at the ends.
    match from.len() {
        8 if at.is_multiple_of(WORD) => store_whole::<1>(words, at, from),
        16 if at.is_multiple_of(WORD) => store_whole::<2>(words, at, from),
        24 if at.is_multiple_of(WORD) => store_whole::<3>(words, at, from),
        // An empty range must lie within the words, too, but needs no call.
        0 => _ = touched(words, at, 0),
        _ => copy_in_any(words, at, from),
    }
}

#[inline(always)]
fn store_whole<const N: usize>(words: &[AtomicU64], at: usize, from: &[u8]) {
    for (word, bytes) in words[at / WORD..][..N].iter().zip(from.as_chunks().0) {
        word.store(u64::from_ne_bytes(*bytes), Ordering::Release);
    }
}

// This function is not rare. It is marked cold so that callers which copy less keep their registers.
#[cold]
#[inline(never)]
fn copy_in_any(words: &[AtomicU64], at: usize, from: &[u8]) {
    match touched(words, at, from.len()) {
        [] => {}
        [only] => put(only, at % WORD, from, Ordering::Release),
        [first, middle @ .., last] => {
            let (head, rest) = from.split_at(WORD - at % WORD);
            let (whole, tail) = rest.split_at(middle.len() * WORD);
            put(first, at % WORD, head, Ordering::Relaxed);
            if !bulk::store(middle, whole) {
                for (word, bytes) in middle.iter().zip(whole.as_chunks().0) {
                    word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
                }
            }
            put(last, 0, tail, Ordering::Release);
        }
    }
}

/// Reads the bytes at `at` into `to`.
///
/// The loads are relaxed. To see another thread's write, the caller must first have an acquire that
/// orders them after it: that of a completion, or of a load of the word that was written last.
///
/// # Panics
/// When the range does not lie within `words`.
#[inline(always)]
pub fn copy_out(words: &[AtomicU64], at: usize, to: &mut [u8]) {
    match to.len() {
        8 if at.is_multiple_of(WORD) => load_whole::<1>(words, at, to),
        16 if at.is_multiple_of(WORD) => load_whole::<2>(words, at, to),
        24 if at.is_multiple_of(WORD) => load_whole::<3>(words, at, to),
        _ => copy_out_any(words, at, to),
    }
}

#[inline(always)]
fn load_whole<const N: usize>(words: &[AtomicU64], at: usize, to: &mut [u8]) {
    for (word, bytes) in words[at / WORD..][..N].iter().zip(to.as_chunks_mut().0) {
        *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
    }
}

// Marked cold for the same reason as `copy_in_any`.
#[cold]
#[inline(never)]
fn copy_out_any(words: &[AtomicU64], at: usize, to: &mut [u8]) {
    match touched(words, at, to.len()) {
        [] => {}
        [only] => get(only, at % WORD, to),
        [first, middle @ .., last] => {
            let (head, rest) = to.split_at_mut(WORD - at % WORD);
            let (whole, tail) = rest.split_at_mut(middle.len() * WORD);
            get(first, at % WORD, head);
            if !bulk::load(middle, whole) {
                for (word, bytes) in middle.iter().zip(whole.as_chunks_mut().0) {
                    *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
                }
            }
            get(last, 0, tail);
        }
    }
}

/// Reads bytes at `at` into the front of `to`, and takes them into a CRC in the same pass: as many
/// as one pass can handle, perhaps none. Returns the CRC and the number of bytes.
pub(crate) fn copy_out_summed(
    words: &[AtomicU64],
    at: usize,
    to: &mut [u8],
    crc: Crc,
) -> (Crc, usize) {
    match at.is_multiple_of(WORD) {
        true => crc.update_copying_words(&words[at / WORD..][..to.len() / WORD], to),
        false => (crc, 0),
    }
}

/// Copies `len` bytes at `from_at` of `from` to those at `to_at` of `to`.
///
/// It reads as [`copy_out`] and writes as [`copy_in`] do. Both ranges may lie in the same words and
/// overlap, with the result that [`slice::copy_within`] has. A copy that overlaps itself upwards
/// runs downwards, and then its highest word does not publish the rest.
///
/// # Panics
/// When a range does not lie within its words.
#[inline]
pub fn copy_across(from: &[AtomicU64], from_at: usize, to: &[AtomicU64], to_at: usize, len: usize) {
    // Most short messages are one or two whole words.
    match len {
        8 if to_at.is_multiple_of(WORD) => {
            to[to_at / WORD].store(word_at(from, from_at), Ordering::Release);
        }
        16 if to_at.is_multiple_of(WORD) => {
            let (low, high) = (word_at(from, from_at), word_at(from, from_at + WORD));
            let to = &to[to_at / WORD..][..2];
            to[0].store(low, Ordering::Release);
            to[1].store(high, Ordering::Release);
        }
        _ => copy_across_any(from, from_at, to, to_at, len),
    }
}

/// Loads the eight bytes from `at` on, which may lie in two words.
#[inline]
fn word_at(words: &[AtomicU64], at: usize) -> u64 {
    let low = words[at / WORD].load(Ordering::Relaxed);
    let shift = at % WORD * 8;
    if shift == 0 {
        return low;
    }
    let high = words[at / WORD + 1].load(Ordering::Relaxed);
    joined(low, high, shift)
}

/// Joins the upper bytes of one word, from `shift` bits on, with the lower bytes of the next. Words
/// are read as little-endian, so lower means less significant on every machine.
#[inline]
fn joined(low: u64, high: u64, shift: usize) -> u64 {
    let (low, high) = (low.to_le() >> shift, high.to_le() << (u64::BITS as usize - shift));
    u64::from_le(low | high)
}

#[inline(never)]
fn copy_across_any(from: &[AtomicU64], from_at: usize, to: &[AtomicU64], to_at: usize, len: usize) {
    let source = touched(from, from_at, len);
    match touched(to, to_at, len) {
        [] => {}
        [only] => carry(source, from_at % WORD, only, to_at % WORD, len, Ordering::Release),
        [first, middle @ .., last] => {
            let head = WORD - to_at % WORD;
            let tail = len - head - middle.len() * WORD;
            let at = from_at % WORD;
            let copy_first = || carry(source, at, first, to_at % WORD, head, Ordering::Relaxed);
            let copy_last = || carry(source, at + len - tail, last, 0, tail, Ordering::Release);
            if overlaps_upwards(source, at, first, to_at % WORD) {
                copy_last();
                copy_words(source, at + head, middle, true);
                copy_first();
            } else {
                copy_first();
                copy_words(source, at + head, middle, false);
                copy_last();
            }
        }
    }
}

/// Returns the words that a range of bytes lies in: none for no bytes.
#[inline]
fn touched(words: &[AtomicU64], at: usize, len: usize) -> &[AtomicU64] {
    // A sum that is too large saturates at an index that no slice of words reaches.
    let words = &words[at / WORD..at.saturating_add(len).div_ceil(WORD)];
    if len == 0 { &[] } else { words }
}

/// Stores up to a word's bytes at `shift` within it.
#[inline]
fn put(word: &AtomicU64, shift: usize, bytes: &[u8], order: Ordering) {
    match bytes.as_array() {
        Some(whole) => word.store(u64::from_ne_bytes(*whole), order),
        None => merge(word, shift, bytes),
    }
}

/// Replaces some bytes of a word, more than none and fewer than all, and leaves the others to their
/// writers.
///
/// The compare-and-swap fails when anybody changed the word since it was read, so a neighbour's
/// store is never written over with what stood there before. Clearing the bytes by a `fetch_and`
/// and setting them by a `fetch_or` would keep the neighbours as well, but show a reader zeros in
/// between; a `fetch_xor` with the difference would flip bits of a value that somebody else has
/// replaced meanwhile, and leave bytes that nobody wrote.
///
/// The swap has release order even if the caller needs none, which costs next to nothing.
fn merge(word: &AtomicU64, shift: usize, bytes: &[u8]) {
    // The word is assembled by shifts: assembled in memory, its load would wait for the stores of
    // its bytes.
    let value = bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
    let mask = (1 << (8 * bytes.len())) - 1;
    let (value, mask) = (u64::to_le(value << (8 * shift)), u64::to_le(mask << (8 * shift)));
    let mut old = word.load(Ordering::Relaxed);
    loop {
        let new = old & !mask | value;
        match word.compare_exchange_weak(old, new, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => old = now,
        }
    }
}

/// Loads up to a word's bytes from `shift` within it.
#[inline]
fn get(word: &AtomicU64, shift: usize, bytes: &mut [u8]) {
    let value = word.load(Ordering::Relaxed).to_ne_bytes();
    match bytes.as_mut_array() {
        Some(whole) => *whole = value,
        None => bytes.copy_from_slice(&value[shift..shift + bytes.len()]),
    }
}

/// Copies up to a word's bytes at `at` to `shift` within a word.
#[inline]
fn carry(
    from: &[AtomicU64],
    at: usize,
    word: &AtomicU64,
    shift: usize,
    len: usize,
    order: Ordering,
) {
    let mut bytes = [0; WORD];
    copy_out(from, at, &mut bytes[..len]);
    put(word, shift, &bytes[..len], order);
}

/// Fills whole words with the bytes from `at` on.
fn copy_words(from: &[AtomicU64], at: usize, to: &[AtomicU64], downwards: bool) {
    let source = touched(from, at, to.len() * WORD);
    let shift = at % WORD * 8;
    if shift == 0 {
        if !downwards && bulk::copy(source, to) {
            return;
        }
        run(source.iter().zip(to), downwards, |(from, to)| {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        });
    } else {
        run(source.array_windows().zip(to), downwards, |([low, high], to)| {
            let (low, high) = (low.load(Ordering::Relaxed), high.load(Ordering::Relaxed));
            to.store(joined(low, high, shift), Ordering::Relaxed);
        });
    }
}

/// Visits all items, in reverse order if `backwards` is set.
#[inline]
fn run<I: DoubleEndedIterator>(items: I, backwards: bool, visit: impl FnMut(I::Item)) {
    if backwards {
        items.rev().for_each(visit);
    } else {
        items.for_each(visit);
    }
}

/// Whether a copy from `at` of `source` to `to_at` of `first`, lowest bytes first, would replace
/// some of the source before it is read.
fn overlaps_upwards(source: &[AtomicU64], at: usize, first: &AtomicU64, to_at: usize) -> bool {
    let (Some(start), Some(end)) = (source.first(), source.last()) else { return false };
    (ptr::from_ref(first), to_at) > (ptr::from_ref(start), at)
        && ptr::from_ref(first) <= ptr::from_ref(end)
}

//! Payloads: bytes that can only be copied.
//!
//! The payload of a packet may lie in a private buffer, in a [`Region`](crate::memory::Region) that
//! peers write to, or in a ring that another process maps. The last two can change while they are
//! read, so they can't be lent as `&[u8]`. A payload has a length, and copies itself to its
//! destination, once.

use std::fmt;
use std::ops::Range;

use crate::crc::Crc;
use crate::memory::words;
use crate::sync::AtomicU64;

/// The payload of a packet: bytes of known length that can be copied to private bytes or to words that peers
/// write.
pub trait Payload: Copy {
    /// Returns the length in bytes.
    fn len(&self) -> usize;

    /// Whether the payload has no bytes.
    #[inline]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies all bytes to the front of `to`, which must be long enough.
    fn copy_to(&self, to: &mut [u8]);

    /// Returns the bytes where they are, if nobody can change them meanwhile.
    #[inline]
    fn as_bytes(&self) -> Option<&[u8]> {
        None
    }

    /// Copies all bytes to the front of `to`, and takes them into a CRC. Where it can be done, many
    /// bytes are copied and summed in one pass.
    #[must_use]
    fn copy_to_summed(&self, to: &mut [u8], crc: Crc) -> Crc {
        self.copy_to(to);
        crc.update(&to[..self.len()])
    }

    /// Copies all bytes into `to`, from byte `at` on, where they must fit.
    fn copy_to_words(&self, to: &[AtomicU64], at: usize);

    /// Returns `len` bytes of the payload from byte `at` on, which must exist.
    #[must_use]
    fn part(&self, at: usize, len: usize) -> Self;
}

impl Payload for &[u8] {
    #[inline]
    fn len(&self) -> usize {
        (**self).len()
    }

    #[inline]
    fn as_bytes(&self) -> Option<&[u8]> {
        Some(self)
    }

    #[inline(always)]
    fn copy_to(&self, to: &mut [u8]) {
        // For a constant length, a copy is a load and a store, and no call. The two branches are
        // written differently, since the compiler would join equal ones to a copy of any length.
        match (self.as_array(), self.as_array::<16>()) {
            (Some(word), _) => to[..8].copy_from_slice(&u64::from_ne_bytes(*word).to_ne_bytes()),
            (_, Some(words)) => to[..16].copy_from_slice(words),
            _ => copy_any(self, &mut to[..self.len()]),
        }
    }

    fn copy_to_summed(&self, to: &mut [u8], crc: Crc) -> Crc {
        let to = &mut to[..self.len()];
        let (crc, taken) = crc.update_copying(self, to);
        copy_any(&self[taken..], &mut to[taken..]);
        crc.update(&to[taken..])
    }

    #[inline(always)]
    fn copy_to_words(&self, to: &[AtomicU64], at: usize) {
        words::copy_in(to, at, self);
    }

    #[inline]
    fn part(&self, at: usize, len: usize) -> Self {
        &self[at..at + len]
    }
}

/// Copies bytes whose number is not a constant. This is a function of its own, or the compiler
/// would use it for constant lengths, too.
#[inline(never)]
fn copy_any(from: &[u8], to: &mut [u8]) {
    to.copy_from_slice(from);
}

/// A payload of two parts, one after the other.
#[derive(Clone, Copy)]
pub struct Chain<'a>(pub &'a [u8], pub &'a [u8]);

impl fmt::Debug for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chain({} and {} bytes)", self.0.len(), self.1.len())
    }
}

impl Payload for Chain<'_> {
    #[inline]
    fn len(&self) -> usize {
        self.0.len() + self.1.len()
    }

    #[inline]
    fn copy_to(&self, to: &mut [u8]) {
        let (front, behind) = to.split_at_mut(self.0.len());
        self.0.copy_to(front);
        self.1.copy_to(behind);
    }

    #[inline]
    fn copy_to_words(&self, to: &[AtomicU64], at: usize) {
        self.0.copy_to_words(to, at);
        self.1.copy_to_words(to, at + self.0.len());
    }

    fn part(&self, at: usize, len: usize) -> Self {
        let end = at + len;
        let [from, to] = [at, end].map(|place| place.min(self.0.len()));
        let [front, behind] = [at - from, end - to];
        Self(&self.0[from..to], &self.1[front..behind])
    }
}

/// A range of bytes within words that others may write.
#[derive(Clone, Copy)]
pub struct WordBytes<'a> {
    words: &'a [AtomicU64],
    at: usize,
    len: usize,
}

impl<'a> WordBytes<'a> {
    /// Takes the bytes `range` of `words`, if they lie within.
    #[inline]
    pub fn new(words: &'a [AtomicU64], range: Range<usize>) -> Option<Self> {
        let len = range.end.checked_sub(range.start)?;
        (range.end <= words.len() * 8).then_some(Self { words, at: range.start, len })
    }
}

impl fmt::Debug for WordBytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { words, at, len } = self;
        write!(f, "WordBytes({len} bytes at {at} of {})", size_of_val(*words))
    }
}

impl Payload for WordBytes<'_> {
    #[inline]
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn copy_to(&self, to: &mut [u8]) {
        words::copy_out(self.words, self.at, &mut to[..self.len]);
    }

    fn copy_to_summed(&self, to: &mut [u8], crc: Crc) -> Crc {
        let to = &mut to[..self.len];
        let (crc, taken) = words::copy_out_summed(self.words, self.at, to, crc);
        words::copy_out(self.words, self.at + taken, &mut to[taken..]);
        crc.update(&to[taken..])
    }

    #[inline]
    fn copy_to_words(&self, to: &[AtomicU64], at: usize) {
        words::copy_across(self.words, self.at, to, at, self.len);
    }

    #[inline]
    fn part(&self, at: usize, len: usize) -> Self {
        assert!(at + len <= self.len, "{len} bytes from {at} on, of {}", self.len);
        Self { words: self.words, at: self.at + at, len }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::sync::Ordering;

    use super::*;

    /// The test takes chains of all lengths, cut anywhere, and of each every part.
    #[test]
    fn a_chain_is_its_bytes_one_behind_the_other() {
        let all: Vec<u8> = (1..=20).collect();
        for cut in 0..=all.len() {
            let (front, behind) = all.split_at(cut);
            let chain = Chain(front, behind);
            assert_eq!(chain.len(), all.len());
            for at in 0..=all.len() {
                for len in 0..=all.len() - at {
                    let (part, expected) = (chain.part(at, len), &all[at..at + len]);
                    let mut bytes = vec![0; len];
                    part.copy_to(&mut bytes);
                    assert_eq!((part.len(), &bytes[..]), (len, expected));
                    let words: [AtomicU64; 4] = Default::default();
                    part.copy_to_words(&words, 3);
                    let found = words.map(|word| word.load(Ordering::Relaxed).to_ne_bytes());
                    assert_eq!(&found.as_flattened()[3..3 + len], expected);
                }
            }
        }
    }
}

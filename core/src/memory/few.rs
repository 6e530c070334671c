//! A few bytes that lie in place, for requests that carry them.
//!
//! Requests are moved more than once before they lie in their queue, sixteen bytes at a time. So bytes
//! are put here sixteen at a time, too: what a processor stored last it hands on to who loads just that,
//! and who loads more has to wait until it is in its cache. Room that nothing was put into stays
//! uninitialised, so that moving a request moves what it carries, and not the rest: that is what is
//! unsafe here.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::num::NonZero;
use std::slice;

/// So many bytes are put at a time.
const UNIT: usize = 16;

/// Up to 64 bytes.
#[derive(Clone, Copy)]
pub(crate) struct Few {
    units: [MaybeUninit<[u64; UNIT / 8]>; 4],
    /// How many bytes there are, and one. Invariant: so many of them are initialised.
    len: NonZero<u8>,
}

impl Few {
    /// The most bytes.
    pub const MOST: usize = 4 * UNIT;

    /// A copy of `bytes`, if they are not too many.
    #[inline(always)]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > Self::MOST {
            return None;
        }
        let mut units = [MaybeUninit::uninit(); 4];
        let (whole, rest) = bytes.as_chunks::<UNIT>();
        for (unit, bytes) in units.iter_mut().zip(whole) {
            unit.write(words(bytes));
        }
        if let Some(unit) = units.get_mut(whole.len()).filter(|_| !rest.is_empty()) {
            unit.write(words(&padded(rest)));
        }
        Some(Self { units, len: NonZero::new(bytes.len() as u8 + 1)? })
    }

    #[inline]
    pub const fn len(&self) -> usize {
        self.len.get() as usize - 1
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the invariant; and any bytes of words are bytes.
        unsafe { slice::from_raw_parts(self.units.as_ptr().cast(), self.len()) }
    }
}

#[inline(always)]
fn words(bytes: &[u8; UNIT]) -> [u64; UNIT / 8] {
    let words = bytes.as_chunks::<8>().0;
    [u64::from_ne_bytes(words[0]), u64::from_ne_bytes(words[1])]
}

/// Less than a unit, and zeros.
#[inline(always)]
fn padded(rest: &[u8]) -> [u8; UNIT] {
    let mut unit = [0; UNIT];
    match rest.first_chunk() {
        // Most often it is a word, which needs no call.
        Some(word) if rest.len() == 8 => unit[..8].copy_from_slice(word as &[u8; 8]),
        _ => unit[..rest.len()].copy_from_slice(rest),
    }
    unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_it_was_made_of_or_is_not_made() {
        for len in 0..=64 {
            let bytes: Vec<u8> = (1..=len).collect();
            let few = Few::new(&bytes).expect("few");
            assert_eq!((few.len(), few.bytes()), (bytes.len(), &*bytes));
        }
        assert!(Few::new(&[0; 65]).is_none());
        assert!(Few::new(&[0; 256]).is_none());
    }
}

//! A few bytes that lie in place, for requests that carry them.
//!
//! Room that nothing was put into stays uninitialised, so that moving a request moves what it
//! carries, and not the rest: that is what is unsafe here.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;

/// Up to `MOST` bytes.
#[derive(Clone, Copy)]
pub(crate) struct Few<const MOST: usize> {
    bytes: [MaybeUninit<u8>; MOST],
    /// Invariant: so many of them are initialised, and there are as many.
    len: u8,
}

impl<const MOST: usize> Few<MOST> {
    /// A copy of `bytes`, if they are not too many.
    #[inline(always)]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        const { assert!(MOST <= u8::MAX as usize) };
        let mut copy = [MaybeUninit::uninit(); MOST];
        copy.get_mut(..bytes.len())?.write_copy_of_slice(bytes);
        Some(Self { bytes: copy, len: bytes.len() as u8 })
    }

    #[inline]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the invariant.
        unsafe { self.bytes.get_unchecked(..self.len()).assume_init_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_it_was_made_of_or_is_not_made() {
        for len in 0..=8 {
            let bytes: Vec<u8> = (1..=len).collect();
            let few = Few::<8>::new(&bytes).expect("few");
            assert_eq!((few.len(), few.bytes()), (bytes.len(), &*bytes));
        }
        assert!(Few::<8>::new(&[0; 9]).is_none());
        assert!(Few::<255>::new(&[0; 256]).is_none());
    }
}

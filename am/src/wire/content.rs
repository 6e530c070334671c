//! What messages are made of.

use crate::wire::put_words;

/// What a message is made of, beside its header: words and a payload.
#[derive(Clone, Copy)]
pub(crate) struct Content<'c> {
    pub words: &'c [u64],
    pub payload: &'c [u8],
}

impl<'c> Content<'c> {
    /// What was encoded before.
    pub fn encoded(bytes: &'c [u8]) -> Self {
        Self { words: &[], payload: bytes }
    }

    #[inline]
    pub fn len(&self) -> usize {
        8 * self.words.len() + self.payload.len()
    }

    /// Puts it into as many bytes.
    #[inline]
    pub fn put(&self, bytes: &mut [u8]) {
        let (words, payload) = bytes.split_at_mut(8 * self.words.len());
        put_words(self.words, words);
        // To copy nothing is a call.
        if !payload.is_empty() {
            payload.copy_from_slice(self.payload);
        }
    }
}

//! The content of a message: words and a payload.

use crate::wire::put_words;

/// The content of a message, without its header.
#[derive(Clone, Copy)]
pub(crate) struct Content<'c> {
    pub words: &'c [u64],
    pub payload: &'c [u8],
}

impl<'c> Content<'c> {
    /// Makes a content of bytes that are encoded already.
    pub fn encoded(bytes: &'c [u8]) -> Self {
        Self { words: &[], payload: bytes }
    }

    /// Returns the number of bytes of words and payload.
    #[inline]
    pub fn len(&self) -> usize {
        8 * self.words.len() + self.payload.len()
    }

    /// Encodes the content into as many bytes.
    #[inline]
    pub fn put(&self, bytes: &mut [u8]) {
        let (words, payload) = bytes.split_at_mut(8 * self.words.len());
        put_words(self.words, words);
        // Even copying nothing would be a function call.
        if !payload.is_empty() {
            payload.copy_from_slice(self.payload);
        }
    }
}

//! Short messages, whose bodies are sent as words, which costs less than a payload does.

use bytes::Bytes;
use doorbell_am::{MOST_WORDS, RequestId, Words};

/// The request that carries a short message: its match bits, the length of its body, and the body.
pub const SHORT: RequestId<Words> = RequestId::new(22, "messages: short");

/// The body of a short message, as words of which the last may be filled up with zeros.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Short {
    len: usize,
    words: [u64; Self::WORDS],
}

impl Short {
    /// The most words of a body.
    pub const WORDS: usize = MOST_WORDS - 2;
    /// The most bytes of a body.
    pub const MOST: usize = 8 * Self::WORDS;

    /// Takes the body out of the words of a short message, and returns the match bits, or `None` if
    /// the words are no short message.
    #[inline]
    pub fn read(&mut self, words: &[u64]) -> Option<u64> {
        let [bits, len, body @ ..] = words else { return None };
        let len = usize::try_from(*len).ok()?;
        if body.len() > Self::WORDS || body.len() != len.div_ceil(8) {
            return None;
        }
        self.len = len;
        self.words.iter_mut().zip(body).for_each(|(to, from)| *to = *from);
        Some(*bits)
    }

    /// Returns the number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the words that count.
    #[inline]
    pub fn words(&self) -> &[u64] {
        self.words.get(..self.len.div_ceil(8)).unwrap_or(&self.words)
    }

    /// Returns the bytes, in memory of their own.
    #[inline]
    pub fn to_bytes(self) -> Bytes {
        bytes_of_words(self.len, self.words)
    }
}

/// Returns the first `len` bytes of words, in memory of their own.
///
/// Word by word: a processor that loads wider than it has stored waits until the words have left
/// its store buffer.
#[inline]
pub fn bytes_of_words(len: usize, words: impl IntoIterator<Item = u64>) -> Bytes {
    // Exactly as much memory as the bytes take becomes theirs without another allocation.
    let mut bytes = Vec::with_capacity(len);
    for word in words {
        match len - bytes.len() {
            0 => break,
            rest @ 1..8 => bytes.extend(word.to_le_bytes().into_iter().take(rest)),
            _ => bytes.extend_from_slice(&word.to_le_bytes()),
        }
    }
    bytes.into()
}

/// Returns the words of a short message, and how many of them count, or `None` if the body is too
/// long for words.
#[inline]
pub fn short_words(bits: u64, body: &[u8]) -> Option<([u64; MOST_WORDS], usize)> {
    if body.len() > Short::MOST {
        return None;
    }
    let mut words = [0; MOST_WORDS];
    let [first, second, carried @ ..] = &mut words;
    (*first, *second) = (bits, body.len() as u64);
    let (whole, rest) = body.as_chunks::<8>();
    let mut carried = carried.iter_mut();
    for (bytes, word) in whole.iter().zip(carried.by_ref()) {
        *word = u64::from_le_bytes(*bytes);
    }
    if !rest.is_empty()
        && let Some(word) = carried.next()
    {
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        *word = u64::from_le_bytes(last);
    }
    Some((words, 2 + body.len().div_ceil(8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_bodies_come_out_of_words_as_they_went_in() {
        for len in 0..=Short::MOST {
            let body: Vec<_> = (1..=u8::MAX).take(len).collect();
            let (words, count) = short_words(7, &body).expect("the body is short");
            let words = words.get(..count).expect("no more words count than there are");
            let mut short = Short { len: 3, words: [u64::MAX; Short::WORDS] };
            assert_eq!(short.read(words), Some(7));
            assert_eq!(short.to_bytes(), body, "{len} bytes");
        }
        let is_short = |words: &[u64]| Short::default().read(words).is_some();
        assert!(short_words(7, &[0; Short::MOST + 1]).is_none());
        assert!(is_short(&[1, 8, 0]) && !is_short(&[1, 9, 0]) && !is_short(&[1]));
        assert!(!is_short(&[1, u64::MAX, 0]));
        let too_long = [&[1, Short::MOST as u64 + 1], &[0; Short::WORDS + 1][..]].concat();
        assert!(!is_short(&too_long));
    }
}

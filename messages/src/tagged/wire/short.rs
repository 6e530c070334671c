//! Short messages, whose bodies are sent as words, which costs less than a payload does.

use bytes::Bytes;
use doorbell_am::{MOST_WORDS, RequestId, Words};

/// The request that carries a short message: its match bits, the length of its body, and the body.
pub const SHORT: RequestId<Words> = RequestId::new(22, "messages: short");

/// The most bytes of a body that is sent as words.
pub const MOST: usize = 8 * (MOST_WORDS - 2);

/// Returns the words of a short message, and how many of them count, or `None` if the body is too
/// long for words.
#[inline]
pub fn short_words(bits: u64, body: &[u8]) -> Option<([u64; MOST_WORDS], usize)> {
    if body.len() > MOST {
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

/// Returns the match bits and the body of a short message, or `None` if the words are none.
#[inline]
pub fn short_of_words(words: &[u64]) -> Option<(u64, Bytes)> {
    let [bits, len, body @ ..] = words else { return None };
    let len = usize::try_from(*len).ok()?;
    if body.len() != len.div_ceil(8) {
        return None;
    }
    // Exactly as much memory as the body takes becomes its own without another allocation.
    let mut bytes = Vec::with_capacity(len);
    let (whole, rest) = body.split_at(len / 8);
    whole.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    rest.iter().for_each(|word| bytes.extend(word.to_le_bytes().into_iter().take(len % 8)));
    Some((*bits, bytes.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_bodies_come_out_of_words_as_they_went_in() {
        for len in 0..=MOST {
            let body: Vec<_> = (1..=u8::MAX).take(len).collect();
            let (words, count) = short_words(7, &body).expect("the body is short");
            let words = words.get(..count).expect("no more words count than there are");
            assert_eq!(short_of_words(words), Some((7, body.into())), "{len} bytes");
        }
        assert!(short_words(7, &[0; MOST + 1]).is_none());
        assert!(short_of_words(&[1, 9, 0]).is_none() && short_of_words(&[1]).is_none());
        assert!(short_of_words(&[1, u64::MAX, 0]).is_none());
    }
}

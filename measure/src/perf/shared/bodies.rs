//! What the bodies of calls and the messages of streams of RPC carry.

use bytes::Bytes;

/// The bytes of all bodies: words that follow from their places, so that a body's first word tells
/// where among them it begins.
pub struct Bodies {
    bytes: Bytes,
    size: usize,
}

/// How many places bodies begin at.
const PLACES: u64 = 256;

/// Odd, so that each word has one place; and its inverse, which tells the place of a word.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
const INVERSE: u64 = inverse(FACTOR);

const fn inverse(odd: u64) -> u64 {
    // Each step of Newton's method doubles the bits that are right.
    let (mut found, mut step) = (odd, 0);
    while step < 6 {
        found = found.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(found)));
        step += 1;
    }
    found
}

impl Bodies {
    /// The words of bodies of a size.
    pub fn new(size: usize) -> Self {
        let words = size.div_ceil(8) as u64 + PLACES;
        let bytes = (0..words).flat_map(|place| Self::word(place, 0).to_le_bytes()).collect();
        Self { bytes, size }
    }

    /// Returns the word at an index of the body that begins at a place.
    #[inline]
    pub fn word(place: u64, index: usize) -> u64 {
        (place + 1).wrapping_add(index as u64).wrapping_mul(FACTOR)
    }

    /// Returns the place of a body that consists of words; `None` if `words` are no such body.
    #[inline]
    pub fn place_of_words(words: &[u64]) -> Option<u64> {
        let place = words.first()?.wrapping_mul(INVERSE).wrapping_sub(1);
        let mut expected = (0..words.len()).map(|index| Self::word(place, index));
        let is_right = place < PLACES && words.iter().all(|word| expected.next() == Some(*word));
        is_right.then_some(place)
    }

    /// Returns the place of the body of a number.
    #[inline]
    pub fn place(number: u64) -> u64 {
        number % PLACES
    }

    /// The place and the bytes of the body of a number.
    pub fn body(&self, number: u64) -> (u64, Bytes) {
        let place = Self::place(number);
        (place, self.bytes.slice(place as usize * 8..).slice(..self.size))
    }

    /// The place of a body; `None` if this is no body of the size. It is compared wholly, or at its
    /// ends.
    pub fn place_of(&self, body: &[u8], wholly: bool) -> Option<u64> {
        const END: usize = 64;
        let first = u64::from_le_bytes(*body.first_chunk()?);
        let place = first.wrapping_mul(INVERSE).wrapping_sub(1);
        let expected = self.bytes.get(usize::try_from(place).ok()?.checked_mul(8)?..)?;
        let expected = expected.get(..self.size).filter(|_| body.len() == self.size)?;
        let end = body.len().saturating_sub(END);
        let is_right = match wholly {
            true => body == expected,
            false => body[end..] == expected[end..],
        };
        is_right.then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_body_are_its_bytes_and_tell_the_place_where_it_begins() {
        let bodies = Bodies::new(24);
        for number in [0, 7, PLACES - 1, PLACES + 3] {
            let (place, bytes) = bodies.body(number);
            let words: [u64; 3] = std::array::from_fn(|index| Bodies::word(place, index));
            assert_eq!(bytes, words.map(u64::to_le_bytes).concat());
            assert_eq!(bodies.place_of(&bytes, true), Some(place));
            assert_eq!(Bodies::place_of_words(&words), Some(place));
        }
    }

    #[test]
    fn words_that_are_no_body_have_no_place() {
        let words: [u64; 2] = std::array::from_fn(|index| Bodies::word(5, index));
        for wrong in [vec![], vec![3], vec![words[1], words[0]], vec![words[0], words[0]]] {
            assert_eq!(Bodies::place_of_words(&wrong), None, "{wrong:?}");
        }
        assert_eq!(Bodies::place_of_words(&[Bodies::word(PLACES, 0)]), None);
    }
}

//! What the bodies of calls and the messages of streams carry.

use bytes::Bytes;

/// The bytes of all bodies: words that follow from their places, so that a body's first word tells
/// where among them it begins.
pub struct Words {
    bytes: Bytes,
    size: usize,
}

/// How many places bodies begin at.
pub const PLACES: u64 = 256;

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

impl Words {
    /// The words of bodies of a size.
    pub fn new(size: usize) -> Self {
        let words = size.div_ceil(8) as u64 + PLACES;
        let bytes = (1..=words).flat_map(|word| word.wrapping_mul(FACTOR).to_le_bytes()).collect();
        Self { bytes, size }
    }

    /// The place and the bytes of the body of a number.
    pub fn body(&self, number: u64) -> (u64, Bytes) {
        let place = number % PLACES;
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

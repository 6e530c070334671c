//! What messages carry, so that it can be told from anything else.

/// The bytes of every packet and message: where in them one begins follows from its number.
pub struct Pattern {
    bytes: Box<[u8]>,
}

/// Whether the message of a number in a stream is checked wholly: up to 1 KiB all are; of longer
/// ones each eighth is, and of the others what tells them from each other.
#[inline]
pub fn wholly(size: usize, number: u64) -> bool {
    size <= 1024 || number.is_multiple_of(8)
}

/// How many different beginnings there are, eight bytes apart.
const BEGINNINGS: usize = 256;

/// Numbers that follow each other begin far apart, and so do those that are a ring apart.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

impl Pattern {
    /// For messages of up to `longest` bytes.
    pub fn new(longest: usize) -> Self {
        let mut state = FACTOR;
        let words = longest.div_ceil(8) + BEGINNINGS;
        let bytes = (0..words).flat_map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        });
        Self { bytes: bytes.collect() }
    }

    /// Returns the `len` bytes of the message with this number.
    #[inline]
    pub fn of(&self, number: u64, len: usize) -> &[u8] {
        &self.bytes[self.place_of(number)..][..len]
    }

    /// Returns where among all bytes the message with this number begins.
    #[inline]
    pub fn place_of(&self, number: u64) -> usize {
        (number.wrapping_mul(FACTOR) >> (64 - BEGINNINGS.trailing_zeros())) as usize * 8
    }

    /// Returns the bytes of which all messages are parts.
    pub fn all(&self) -> &[u8] {
        &self.bytes
    }
}

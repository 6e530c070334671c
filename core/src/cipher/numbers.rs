//! The number of a transmission, which is also the nonce of the cipher.

/// The bits that count what was sent with a key.
const COUNT_BITS: u32 = 48;

/// The number of a transmission: which key it is sealed with, and how many were sealed with that
/// before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Number(u64);

impl Number {
    /// The bytes of a number on the wire.
    pub const LEN: usize = 8;

    pub const fn new(key: u16, count: u64) -> Self {
        Self((key as u64) << COUNT_BITS | count & ((1 << COUNT_BITS) - 1))
    }

    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(u64::from_be_bytes(bytes))
    }

    pub const fn to_bytes(self) -> [u8; Self::LEN] {
        self.0.to_be_bytes()
    }

    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of the key, modulo 2¹⁶: how many keys there were before it.
    pub const fn key(self) -> u16 {
        (self.0 >> COUNT_BITS) as u16
    }

    /// How many packets were sealed with the key before.
    pub const fn count(self) -> u64 {
        self.0 & ((1 << COUNT_BITS) - 1)
    }
}

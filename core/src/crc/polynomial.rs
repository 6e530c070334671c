//! The generator polynomial of CRC-32.

/// The generator polynomial, reflected: the highest bit stands for x⁰, and x³² is left out.
pub const POLYNOMIAL: u32 = 0xEDB8_8320;

//! Words and payloads, as they are read from an input.

use super::input::Input;

/// The most bytes of a payload.
const LONGEST: usize = 4096;

/// Reads a word of a packet: a small number, a number of `some`, a number at an edge, or any.
pub fn word(input: &mut Input<'_>, some: &[u64]) -> u64 {
    let byte = input.u8();
    match byte {
        0..64 => u64::from(byte) % 8,
        64..200 if !some.is_empty() => some[usize::from(byte) % some.len()],
        64..230 => [u64::MAX, u64::MAX - 1, 1 << 63, 1 << 32, 1 << 20][usize::from(byte) % 5],
        _ => u64::from_le_bytes(input.array()),
    }
}

pub fn words<const N: usize>(input: &mut Input<'_>, some: &[u64]) -> [u64; N] {
    std::array::from_fn(|_| word(input, some))
}

/// Reads the payload of a packet: bytes of the input, or one byte many times.
pub fn payload(input: &mut Input<'_>) -> Vec<u8> {
    match input.u8() {
        len @ 200.. => vec![len; usize::from(input.u16()) % LONGEST],
        len => input.bytes((len % 48).into()).to_vec(),
    }
}

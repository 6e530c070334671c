//! CRC-32 as Ethernet and the ICRC use it, fast for few bytes.
//!
//! An ICRC covers first a hundred bytes that hardly change, and then a few dozen that do. So the
//! state of a CRC is a value that can be kept and continued. A word or two is taken by tables, a few
//! dozen bytes by carry-less multiplication if the processor has it, and long payloads by carry-less
//! multiplication of wide words, which can copy the payload in the same pass. On other processors,
//! and for lengths in between, `crc32fast` folds the bytes in parallel, which takes ten nanoseconds
//! to begin and to end.

#![deny(clippy::indexing_slicing, clippy::cast_possible_truncation)]

mod polynomial;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod sys;
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
use sys::vpclmulqdq as wide;

#[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
mod wide {
    //! Other processors have no carry-less multiplication of wide words, so no bytes are taken.

    use crate::sync::AtomicU64;

    pub fn update(register: u32, _: &[u8]) -> (u32, usize) {
        (register, 0)
    }

    pub fn copy(register: u32, _: &[u8], _: &mut [u8]) -> (u32, usize) {
        (register, 0)
    }

    pub fn copy_words(register: u32, _: &[AtomicU64], _: &mut [u8]) -> (u32, usize) {
        (register, 0)
    }
}

use crate::sync::AtomicU64;

use crate::fields::{ByByte, low32};
use polynomial::POLYNOMIAL;

/// The state of a CRC-32 in the middle of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crc {
    // The register of the algorithm, which is the bitwise inverse of the finished value.
    register: u32,
}

/// The least length at which folding is faster than tables.
const FOLDING_PAYS: usize = 64;

impl Crc {
    /// The state before the first byte of a message.
    pub const NEW: Self = Self { register: !0 };

    /// Returns the state after `bytes`.
    #[inline(always)]
    #[must_use]
    pub fn update(self, bytes: &[u8]) -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(register) = sys::update(self.register, bytes) {
            return Self { register };
        }
        self.update_otherwise(bytes)
    }

    #[inline(never)]
    fn update_otherwise(self, bytes: &[u8]) -> Self {
        if bytes.len() < FOLDING_PAYS {
            return self.update_short(bytes);
        }
        let (register, taken) = wide::update(self.register, bytes);
        if taken > 0 {
            return Self { register }.update(bytes.split_at(taken).1);
        }
        let mut hasher = crc32fast::Hasher::new_with_initial(self.finish());
        hasher.update(bytes);
        Self { register: !hasher.finalize() }
    }

    /// Copies the front of `bytes` to `to`, which is as long, and takes it into the CRC in the same
    /// pass: whole blocks, if `bytes` are many, or nothing. Returns the state and the number of
    /// bytes.
    pub(crate) fn update_copying(self, bytes: &[u8], to: &mut [u8]) -> (Self, usize) {
        let (register, taken) = wide::copy(self.register, bytes, to);
        (Self { register }, taken)
    }

    /// Copies words that others write to `to`, as [`update_copying`](Self::update_copying) copies
    /// bytes.
    pub(crate) fn update_copying_words(self, words: &[AtomicU64], to: &mut [u8]) -> (Self, usize) {
        let (register, taken) = wide::copy_words(self.register, words, to);
        (Self { register }, taken)
    }

    /// Returns the state after a few `bytes`, by table.
    #[inline]
    #[must_use]
    pub const fn update_short(self, bytes: &[u8]) -> Self {
        let mut crc = self;
        let mut rest = bytes;
        while let Some((eight, tail)) = rest.split_first_chunk::<8>() {
            crc = crc.update_u64(u64::from_le_bytes(*eight));
            rest = tail;
        }
        if let Some((four, tail)) = rest.split_first_chunk::<4>() {
            crc = crc.update_u32(u32::from_le_bytes(*four));
            rest = tail;
        }
        while let Some((&byte, tail)) = rest.split_first() {
            crc = crc.update_u8(byte);
            rest = tail;
        }
        crc
    }

    /// Returns the state after eight bytes, the first of them in the low bits.
    #[inline]
    #[must_use]
    pub const fn update_u64(self, bytes: u64) -> Self {
        let x = bytes ^ self.register as u64;
        let register = look_up::<7>(x)
            ^ look_up::<6>(x >> 8)
            ^ look_up::<5>(x >> 16)
            ^ look_up::<4>(x >> 24)
            ^ look_up::<3>(x >> 32)
            ^ look_up::<2>(x >> 40)
            ^ look_up::<1>(x >> 48)
            ^ look_up::<0>(x >> 56);
        Self { register }
    }

    /// Returns the state after four bytes, the first of them in the low bits.
    #[inline]
    #[must_use]
    pub const fn update_u32(self, bytes: u32) -> Self {
        let x = (bytes ^ self.register) as u64;
        let register =
            look_up::<3>(x) ^ look_up::<2>(x >> 8) ^ look_up::<1>(x >> 16) ^ look_up::<0>(x >> 24);
        Self { register }
    }

    const fn update_u8(self, byte: u8) -> Self {
        let x = (self.register ^ byte as u32) as u64;
        Self { register: look_up::<0>(x) ^ self.register >> 8 }
    }

    /// Returns the CRC of all bytes so far.
    #[inline]
    pub const fn finish(self) -> u32 {
        !self.register
    }

    /// Returns the state of a message that differs, where `difference` is the effect of the
    /// difference on the register: a CRC is linear in its message.
    #[inline]
    #[must_use]
    pub(crate) const fn shifted_by(self, difference: u32) -> Self {
        Self { register: self.register ^ difference }
    }

    /// Returns the effect that a difference of `byte` has on the register after `further` bytes.
    pub(crate) const fn effect_of(byte: u8, further: usize) -> u32 {
        let mut crc = Self { register: 0 }.update_u8(byte);
        let mut i = 0;
        while i < further {
            crc = crc.update_u8(0);
            i += 1;
        }
        crc.register
    }

    /// Returns the difference of two registers before the last `bytes` bytes, which were the same
    /// in both messages: the inverse of the effect of these bytes.
    pub(crate) const fn difference_before(difference: u32, bytes: usize) -> u32 {
        let (mut difference, mut left, mut back) = (difference, bytes, &BACK as &[u32]);
        while let Some((step, further)) = back.split_first() {
            if left & 1 == 1 {
                difference = multiply(difference, *step);
            }
            (left, back) = (left >> 1, if left > 1 { further } else { &[] });
        }
        difference
    }
}

/// Multiplies two registers as polynomials, of which the highest bit stands for x⁰.
const fn multiply(a: u32, b: u32) -> u32 {
    let (mut product, mut shifted, mut bit) = (0, b, 32);
    while bit > 0 {
        bit -= 1;
        if a >> bit & 1 == 1 {
            product ^= shifted;
        }
        shifted = shifted >> 1 ^ if shifted & 1 == 1 { POLYNOMIAL } else { 0 };
    }
    product
}

/// The powers of x that undo zeros: `BACK[k]` is x to the power of −8 · 2ᵏ, which undoes 2ᵏ zero
/// bytes.
#[expect(clippy::indexing_slicing, reason = "a wrong index is an error when this is compiled")]
static BACK: [u32; usize::BITS as usize] = {
    let mut back = [0; usize::BITS as usize];
    // Division by x: the bit that a multiplication shifts out at one end comes back at the other.
    let (mut one_byte, mut bit) = (1u32 << 31, 0);
    while bit < 8 {
        let carried = one_byte >> 31;
        one_byte = (one_byte ^ if carried == 1 { POLYNOMIAL } else { 0 }) << 1 | carried;
        bit += 1;
    }
    back[0] = one_byte;
    let mut k = 1;
    while k < back.len() {
        back[k] = multiply(back[k - 1], back[k - 1]);
        k += 1;
    }
    back
};

/// The tables of the CRC: `TABLES[k][b]` is the effect of byte `b` on the register when `k` bytes
/// follow it in the same step.
static TABLES: [ByByte<u32>; 8] = {
    let [a, b, c, d, e, f, g, h] = TABLES_VALUE;
    [ByByte(a), ByByte(b), ByByte(c), ByByte(d), ByByte(e), ByByte(f), ByByte(g), ByByte(h)]
};
#[expect(clippy::indexing_slicing, reason = "a wrong index is an error when this is compiled")]
const TABLES_VALUE: [[u32; 256]; 8] = {
    let mut tables = [[0u32; 256]; 8];
    let mut b = 0;
    while b < 256 {
        let mut value = low32(b);
        let mut bit = 0;
        while bit < 8 {
            value = value >> 1 ^ if value & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        tables[0][b] = value;
        b += 1;
    }
    let mut k = 1;
    while k < 8 {
        let mut b = 0;
        while b < 256 {
            let before = tables[k - 1][b];
            tables[k][b] = tables[0][(before & 0xFF) as usize] ^ before >> 8;
            b += 1;
        }
        k += 1;
    }
    tables
};

#[inline]
const fn look_up<const TABLE: usize>(byte: u64) -> u32 {
    const { assert!(TABLE < 8) }
    #[expect(
        clippy::indexing_slicing,
        reason = "the assertion above says that it is one of the tables"
    )]
    let table = &TABLES[TABLE];
    *table.of((byte & 0xFF) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_crc_of_ethernet() {
        assert_eq!(Crc::NEW.update(b"123456789").finish(), 0xCBF4_3926);
    }

    #[test]
    fn tables_and_folding_agree_however_the_message_is_cut() {
        let message: Vec<u8> = (0..300u32).map(|i| ((i * i) >> 3 & 0xFF) as u8).collect();
        for len in 0..message.len() {
            let whole = crc32fast::hash(&message[..len]);
            assert_eq!(Crc::NEW.update_short(&message[..len]).finish(), whole);
            let (a, b) = message[..len].split_at(len / 3);
            assert_eq!(Crc::NEW.update(a).update(b).finish(), whole);
        }
    }

    #[test]
    fn a_difference_far_back_is_added_in_without_the_message() {
        let (mut a, mut b) = ([7u8; 40], [7u8; 40]);
        (a[3], b[3]) = (0x55, 0x55 ^ 0xA7);
        let patched = Crc::NEW.update(&a).shifted_by(Crc::effect_of(0xA7, 36));
        a[3] = b[3];
        assert_eq!(patched, Crc::NEW.update(&a));
    }

    #[test]
    fn a_difference_is_known_from_what_became_of_it() {
        for behind in [0, 1, 2, 3, 30, 255, 256, 4113, 65535] {
            let became = Crc::effect_of(0xA7, behind);
            assert_eq!(Crc::difference_before(became, behind + 1), 0xA7, "{behind} bytes");
        }
    }
}

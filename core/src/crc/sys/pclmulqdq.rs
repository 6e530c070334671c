//! The CRC of a few dozen bytes by carry-less multiplication (PCLMULQDQ), on processors that have
//! it.
//!
//! A CRC is the remainder of the message as a polynomial. Each word of the message can be multiplied
//! by the power of x that its place stands for, independently of the others, and only the sum is
//! reduced. That takes three multiplications one after another, however many words there are, no
//! table, and a third of the instructions. (The method is Intel's: Gopal et al., "Fast CRC
//! Computation for Generic Polynomials Using PCLMULQDQ Instruction", 2009.)
//!
//! The code is unsafe only because the processor must have the instructions, which [`update`] checks.

use std::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_clmulepi64_si128, _mm_cvtsi64_si128, _mm_cvtsi128_si32,
    _mm_set_epi64x, _mm_setzero_si128, _mm_shuffle_epi32, _mm_xor_si128,
};

use super::super::polynomial::POLYNOMIAL;

/// The least length at which multiplying is faster than tables.
const LEAST: usize = 16;

/// The most bytes that are taken at once.
const MOST: usize = 8 * PLACES.len();

/// Takes `bytes` into a register, if the processor can, and if their number is within the limits
/// and a multiple of four, as that of every whole packet is.
#[inline(always)]
pub fn update(register: u32, bytes: &[u8]) -> Option<u32> {
    let whole = bytes.len().is_multiple_of(4) && (LEAST..=MOST).contains(&bytes.len());
    if !whole || !is_x86_feature_detected!("pclmulqdq") {
        return None;
    }
    Some(match bytes.len() {
        // SAFETY: the processor has just said that it has the instructions.
        SEND => unsafe { multiply_known::<SEND>(register, bytes) },
        // SAFETY: the processor has just said that it has the instructions.
        WRITE => unsafe { multiply_known::<WRITE>(register, bytes) },
        // SAFETY: the processor has just said that it has the instructions.
        _ => unsafe { multiply_any(register, bytes) },
    })
}

/// The lengths that are summed for packets with sixteen bytes of payload: the last word of the BTH
/// and the payload, and of a write also its RETH.
const SEND: usize = 4 + 16;
const WRITE: usize = 4 + 16 + 16;

/// Sums bytes whose number is constant, which takes half of the instructions.
#[target_feature(enable = "pclmulqdq")]
#[inline(never)]
fn multiply_known<const LEN: usize>(register: u32, bytes: &[u8]) -> u32 {
    debug_assert_eq!(bytes.len(), LEN);
    bytes.as_array::<LEN>().map_or(register, |bytes| multiply(register, bytes))
}

#[target_feature(enable = "pclmulqdq")]
#[inline(never)]
fn multiply_any(register: u32, bytes: &[u8]) -> u32 {
    multiply(register, bytes)
}

#[target_feature(enable = "pclmulqdq")]
#[inline]
fn multiply(register: u32, bytes: &[u8]) -> u32 {
    // Zeros in front of a message change nothing, so a half word at the front counts as a whole word.
    let (half, words) = bytes.as_rchunks::<8>();
    let mut places = PLACES.iter();
    let mut sum = _mm_setzero_si128();
    let mut first = 0;
    for (word, &place) in words.iter().rev().zip(&mut places) {
        sum = _mm_xor_si128(sum, product(u64::from_le_bytes(*word), place));
        first = place;
    }
    let mut front = u64::from(register);
    if let (Some(half), Some(&place)) = (half.first_chunk::<4>(), places.next()) {
        front = (front ^ u64::from(u32::from_le_bytes(*half))) << 32;
        first = place;
    }
    reduce(_mm_xor_si128(sum, product(front, first)))
}

#[target_feature(enable = "pclmulqdq")]
#[inline]
fn product(a: u64, b: u64) -> __m128i {
    _mm_clmulepi64_si128::<0>(_mm_cvtsi64_si128(a as i64), _mm_set_epi64x(0, b as i64))
}

/// Reduces a sum of products: from 96 bits to 64, and from these to 32 bits by Barrett's method.
#[target_feature(enable = "pclmulqdq")]
#[inline]
pub(super) fn reduce(sum: __m128i) -> u32 {
    let fold = _mm_set_epi64x(0, power(64) as i64);
    let folded = _mm_xor_si128(sum, _mm_clmulepi64_si128::<0x00>(sum, fold));
    // Barrett reduction of the upper word. The lower half of the quotient depends on the lower half of
    // the word alone.
    let barrett = _mm_set_epi64x((u64::from(POLYNOMIAL) << 1 | 1) as i64, RECIPROCAL as i64);
    let quotient = _mm_clmulepi64_si128::<0x01>(folded, barrett);
    let quotient = _mm_and_si128(quotient, _mm_set_epi64x(0, 0xFFFF_FFFF));
    let multiple = _mm_clmulepi64_si128::<0x10>(quotient, barrett);
    let (rest, multiple) = (_mm_shuffle_epi32::<3>(folded), _mm_shuffle_epi32::<1>(multiple));
    _mm_cvtsi128_si32(_mm_xor_si128(rest, multiple)) as u32
}

/// The powers of x that words stand for, by the number of words that follow. The register stands 32
/// bits above the message.
#[expect(clippy::indexing_slicing, reason = "a wrong index is an error when this is compiled")]
static PLACES: [u64; 16] = {
    let mut places = [0; 16];
    let mut behind = 0;
    while behind < 16 {
        places[behind] = power(64 * behind + 32);
        behind += 1;
    }
    places
};

/// The quotient of x⁶⁴ and the polynomial, lowest power first.
const RECIPROCAL: u64 = 0x1_F701_1641;

/// Returns the remainder of xⁿ⁻¹, as a word whose highest bit stands for x⁰. The power is one less
/// than n because the product of two such words is one place short of a word of twice the length.
pub(super) const fn power(n: usize) -> u64 {
    let mut remainder = 1u32 << 31;
    let mut i = 1;
    while i < n {
        remainder = remainder >> 1 ^ if remainder & 1 == 1 { POLYNOMIAL } else { 0 };
        i += 1;
    }
    (remainder as u64) << 32
}

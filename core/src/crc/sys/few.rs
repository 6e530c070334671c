//! A few bytes at once by carry-less multiplication, on processors that have it.
//!
//! A CRC is the remainder of the message, taken as a polynomial. Each word of it can be multiplied
//! by what its place stands for, independently of the others, and only the sum is reduced: three
//! multiplications after one another however many words there were, no table to be fetched, and a
//! third of the instructions. (The method is Intel's: Gopal et al., "Fast CRC Computation for
//! Generic Polynomials Using PCLMULQDQ Instruction", 2009.)
//!
//! The one thing unsafe here is that the processor must have the instructions, which [`update`]
//! asks it.

use std::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_clmulepi64_si128, _mm_cvtsi64_si128, _mm_cvtsi128_si32,
    _mm_set_epi64x, _mm_setzero_si128, _mm_shuffle_epi32, _mm_xor_si128,
};

use super::super::polynomial::POLYNOMIAL;

/// From this length on, multiplying is faster than the tables.
const LEAST: usize = 16;

/// The most bytes taken at once.
const MOST: usize = 8 * PLACES.len();

/// Takes `bytes` into a register: if the processor can, and they are not too few or too many, and a
/// multiple of four, as every whole packet is.
#[inline(always)]
pub fn update(register: u32, bytes: &[u8]) -> Option<u32> {
    let whole = bytes.len().is_multiple_of(4) && (LEAST..=MOST).contains(&bytes.len());
    if !whole || !is_x86_feature_detected!("pclmulqdq") {
        return None;
    }
    Some(match bytes.len() {
        // SAFETY: the processor has just said that it has the instructions.
        SEND => unsafe { multiply_known::<SEND>(register, bytes) },
        // SAFETY: as above.
        WRITE => unsafe { multiply_known::<WRITE>(register, bytes) },
        // SAFETY: as above.
        _ => unsafe { multiply_any(register, bytes) },
    })
}

/// What is summed of packets that carry sixteen bytes: the sequence number, where it is written if
/// it is, and they.
const SEND: usize = 4 + 16;
const WRITE: usize = 4 + 16 + 16;

/// Of known length, it takes half of the instructions.
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
    // Zeros in front of a message change nothing, so that a half word goes first as a whole one.
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

/// The remainder of a sum of products: 96 bits to 64, and these by Barrett's method to 32.
#[target_feature(enable = "pclmulqdq")]
#[inline]
pub(super) fn reduce(sum: __m128i) -> u32 {
    let fold = _mm_set_epi64x(0, power(64) as i64);
    let folded = _mm_xor_si128(sum, _mm_clmulepi64_si128::<0x00>(sum, fold));
    // Of what is in the upper word now. The lower half of the quotient comes of its lower half.
    let barrett = _mm_set_epi64x((u64::from(POLYNOMIAL) << 1 | 1) as i64, RECIPROCAL as i64);
    let quotient = _mm_clmulepi64_si128::<0x01>(folded, barrett);
    let quotient = _mm_and_si128(quotient, _mm_set_epi64x(0, 0xFFFF_FFFF));
    let multiple = _mm_clmulepi64_si128::<0x10>(quotient, barrett);
    let (rest, multiple) = (_mm_shuffle_epi32::<3>(folded), _mm_shuffle_epi32::<1>(multiple));
    _mm_cvtsi128_si32(_mm_xor_si128(rest, multiple)) as u32
}

/// What a word stands for by the number of words behind it; and the register stands 32 bits above
/// the message.
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

/// The remainder of xⁿ, as a word whose highest bit stands for x⁰. It is of one power less, for
/// the product of two such words is one place short of a word of twice the length.
pub(super) const fn power(n: usize) -> u64 {
    let mut remainder = 1u32 << 31;
    let mut i = 1;
    while i < n {
        remainder = remainder >> 1 ^ if remainder & 1 == 1 { POLYNOMIAL } else { 0 };
        i += 1;
    }
    (remainder as u64) << 32
}

//! The CRC of many bytes, with an optional copy in the same pass, by carry-less multiplication of
//! 512 bits (VPCLMULQDQ), on processors that have it.
//!
//! The sum of the bytes so far is kept as four words of 512 bits. A word is moved on, by the distance
//! that all four of them cover, by multiplying each 64-bit half of its 128-bit quarters by the power
//! of x that the distance stands for. Then the next block is added. The copy takes no extra time
//! beside the multiplications. (The method is that of the white paper that [`super::pclmulqdq`]
//! names, with wider words.)

use std::arch::asm;
use std::arch::x86_64::{
    __m128i, __m512i, _mm_clmulepi64_si128, _mm_cvtsi32_si128, _mm_set_epi64x, _mm_xor_si128,
    _mm512_broadcast_i32x4, _mm512_clmulepi64_epi128, _mm512_extracti32x4_epi32,
    _mm512_storeu_si512, _mm512_ternarylogic_epi64, _mm512_xor_si512, _mm512_zextsi128_si512,
};

use crate::sync::AtomicU64;

use super::pclmulqdq::{power, reduce};

/// The number of bytes in a wide word.
const BLOCK: usize = 64;

/// The number of wide words that are summed in parallel.
const LANES: usize = 4;

/// The least number of bytes for which wide words pay.
pub const LEAST: usize = LANES * BLOCK;

fn is_possible() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("vpclmulqdq")
}

/// Returns how many of `len` bytes are taken: whole blocks, if they are many.
fn takes(len: usize) -> usize {
    if len >= LEAST && is_possible() { len - len % BLOCK } else { 0 }
}

/// Takes the front of `bytes` into a register. Returns the register and the number of bytes.
#[inline]
pub fn update(register: u32, bytes: &[u8]) -> (u32, usize) {
    let taken = takes(bytes.len());
    if taken == 0 {
        return (register, 0);
    }
    // SAFETY: the processor has the instructions, and `bytes` has as many bytes as are taken.
    (unsafe { take::<false>(register, bytes.as_ptr(), [].as_mut_ptr(), taken) }, taken)
}

/// Takes the front of `bytes` into a register, and copies it to the front of `to`, which is as
/// long. Returns the register and the number of bytes.
#[inline]
pub fn copy(register: u32, bytes: &[u8], to: &mut [u8]) -> (u32, usize) {
    let taken = takes(bytes.len());
    assert!(to.len() >= taken);
    if taken == 0 {
        return (register, 0);
    }
    // SAFETY: the processor has the instructions, `bytes` and `to` have as many bytes as are taken,
    // and `to` is borrowed exclusively.
    (unsafe { take::<true>(register, bytes.as_ptr(), to.as_mut_ptr(), taken) }, taken)
}

/// Takes words that others write into a register, loading each of them whole, and copies them to
/// the front of `to`. Returns the register and the number of bytes.
#[inline]
pub fn copy_words(register: u32, words: &[AtomicU64], to: &mut [u8]) -> (u32, usize) {
    let taken = takes(size_of_val(words));
    assert!(to.len() >= taken);
    if taken == 0 {
        return (register, 0);
    }
    // SAFETY: the processor has the instructions, `words` and `to` have as many bytes as are taken,
    // and `to` is borrowed exclusively. The words are atomic and aligned.
    (unsafe { take::<true>(register, words.as_ptr().cast(), to.as_mut_ptr(), taken) }, taken)
}

/// Takes `len` bytes into a register, which must be whole blocks and at least [`LEAST`], and copies
/// them if `COPY` is set.
///
/// # Safety
/// The processor must have the instructions. `len` bytes at `from` must be readable, as memory that
/// is borrowed or as aligned atomic words. If `COPY` is set, `len` bytes at `to` must be writable.
#[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq")]
#[inline(never)]
unsafe fn take<const COPY: bool>(register: u32, from: *const u8, to: *mut u8, len: usize) -> u32 {
    let next = |at: usize| {
        // SAFETY: no block is asked for beyond the `len` bytes that the caller has there.
        let from = unsafe { from.add(at) };
        // SAFETY: the block lies within the memory that the caller guarantees.
        let block = unsafe { load(from) };
        if COPY {
            // SAFETY: no block is asked for beyond the `len` bytes that the caller has there.
            let to = unsafe { to.add(at) };
            // SAFETY: the block lies within the memory that the caller guarantees.
            unsafe { _mm512_storeu_si512(to.cast(), block) };
        }
        block
    };
    let mut sums: [__m512i; LANES] = [next(0), next(BLOCK), next(2 * BLOCK), next(3 * BLOCK)];
    let register = _mm512_zextsi128_si512(_mm_cvtsi32_si128(register as i32));
    sums[0] = _mm512_xor_si512(sums[0], register);
    let (far, near) = (distance(const { AHEAD[LANES] }), distance(const { AHEAD[1] }));
    let mut at = LEAST;
    while at + LEAST <= len {
        for (lane, sum) in sums.iter_mut().enumerate() {
            *sum = fold(*sum, far, next(at + lane * BLOCK));
        }
        at += LEAST;
    }
    let [first, others @ ..] = sums;
    let mut sum = others.into_iter().fold(first, |sum, next| fold(sum, near, next));
    while at < len {
        sum = fold(sum, near, next(at));
        at += BLOCK;
    }
    finish(sum)
}

/// Loads a block of 64 bytes.
///
/// # Safety
/// The block must be readable: memory that is borrowed, or aligned atomic words.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn load(from: *const u8) -> __m512i {
    let block;
    // SAFETY: the caller guarantees that the memory can be read. Each atomic word is loaded whole,
    // since no processor with these instructions splits an aligned word of a wider load, and that is
    // all that a relaxed access guarantees. The load is an assembler instruction because racing plain
    // loads would be undefined behaviour.
    unsafe {
        asm!(
            "vmovdqu64 {}, [{}]",
            out(zmm_reg) block,
            in(reg) from,
            options(nostack, readonly, preserves_flags)
        );
    }
    block
}

/// The powers of x that move a sum on by a number of blocks, for the lower and the upper half of
/// 128 bits.
#[expect(clippy::indexing_slicing, reason = "a wrong index is an error when this is compiled")]
static AHEAD: [(u64, u64); LANES + 1] = {
    let mut ahead = [(0, 0); LANES + 1];
    let mut blocks = 1;
    while blocks <= LANES {
        let bits = 8 * BLOCK * blocks;
        ahead[blocks] = (power(bits + 64), power(bits));
        blocks += 1;
    }
    ahead
};

#[target_feature(enable = "avx512f")]
#[inline]
fn distance((lower, upper): (u64, u64)) -> __m512i {
    _mm512_broadcast_i32x4(_mm_set_epi64x(upper as i64, lower as i64))
}

/// Moves a sum on by a distance, and adds the next block.
#[target_feature(enable = "avx512f,vpclmulqdq")]
#[inline]
fn fold(sum: __m512i, distance: __m512i, next: __m512i) -> __m512i {
    const XOR_OF_THREE: i32 = 0x96;
    let lower = _mm512_clmulepi64_epi128::<0x00>(sum, distance);
    let upper = _mm512_clmulepi64_epi128::<0x11>(sum, distance);
    _mm512_ternarylogic_epi64::<XOR_OF_THREE>(lower, upper, next)
}

/// Reduces a sum of 512 bits to the register.
#[target_feature(enable = "avx512f,pclmulqdq")]
#[inline]
fn finish(sum: __m512i) -> u32 {
    // Each quarter is moved on by the bits that follow it in the block, and the last one by the 32
    // bits of the register.
    let moved = |quarter: __m128i, bits: (u64, u64)| {
        let distance = _mm_set_epi64x(bits.1 as i64, bits.0 as i64);
        _mm_xor_si128(
            _mm_clmulepi64_si128::<0x00>(quarter, distance),
            _mm_clmulepi64_si128::<0x11>(quarter, distance),
        )
    };
    let first = moved(_mm512_extracti32x4_epi32::<0>(sum), const { (power(448), power(384)) });
    let second = moved(_mm512_extracti32x4_epi32::<1>(sum), const { (power(320), power(256)) });
    let third = moved(_mm512_extracti32x4_epi32::<2>(sum), const { (power(192), power(128)) });
    let last = _mm_xor_si128(_mm_xor_si128(first, second), third);
    let last = _mm_xor_si128(last, _mm512_extracti32x4_epi32::<3>(sum));
    reduce(moved(last, const { (power(96), power(32)) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_same_crc_and_a_copy() {
        if !is_possible() {
            return println!("skipped: this processor does not multiply 512 bits without carries");
        }
        let message: Vec<u8> = (0..2000u32).map(|i| ((i * i) >> 3 & 0xFF) as u8).collect();
        let words: Vec<_> = message.as_chunks().0.iter().map(|&w| u64::from_ne_bytes(w)).collect();
        let words: Vec<_> = words.into_iter().map(AtomicU64::new).collect();
        for len in (LEAST..message.len()).step_by(8) {
            for from in [0, 8, 16, 3] {
                let bytes = &message[from..][..len.min(message.len() - from)];
                let taken = bytes.len() - bytes.len() % BLOCK;
                let mut hasher = crc32fast::Hasher::new_with_initial(!0x1234_5678);
                hasher.update(&bytes[..taken]);
                let expected = (!hasher.finalize(), taken);
                assert_eq!(update(0x1234_5678, bytes), expected, "{len} from {from}");
                let mut to = vec![0; bytes.len()];
                assert_eq!(copy(0x1234_5678, bytes, &mut to), expected, "{len} from {from}");
                assert_eq!(to[..taken], bytes[..taken]);
                if from % 8 == 0 {
                    let words = &words[from / 8..][..bytes.len() / 8];
                    let (mut to, taken) = (vec![0; bytes.len()], taken.min(words.len() * 8));
                    assert_eq!(copy_words(0x1234_5678, words, &mut to), expected, "{len}, {from}");
                    assert_eq!(to[..taken], bytes[..taken]);
                }
            }
        }
    }
}

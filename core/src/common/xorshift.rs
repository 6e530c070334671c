//! Numbers without a pattern, for choices that nobody has to be unable to guess.

/// Returns the next of a row of numbers, which begins with any but zero (Marsaglia, "Xorshift RNGs",
/// Journal of Statistical Software, 2003).
#[inline]
pub(crate) fn xorshift(state: &mut u32) -> u32 {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    *state
}

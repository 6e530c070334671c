//! Tags, and the names by which processes have them.

use std::io;
use std::ops::RangeInclusive;

use crate::sys::unix::Claim;

/// The number of bits of a tag. It can't be chosen, since all processes on an interface must agree.
pub const TAG_BITS: u32 = 6;

/// The range of all tags. Tag 0 is for processes that share with nobody, and keeps clear of
/// InfiniBand's own numbers.
pub(super) const TAGS: RangeInclusive<u32> = 1..=(1 << TAG_BITS) - 1;

/// Returns the name that the owner has.
pub(super) fn owners(key: &str) -> Vec<u8> {
    format!("doorbell-owner/{key}").into_bytes()
}

/// Returns the name that the process with a tag has.
pub(super) fn tagged(key: &str, tag: u32) -> Vec<u8> {
    format!("doorbell-tag/{tag}/{key}").into_bytes()
}

/// Takes a tag, for as long as the claim lives.
pub(super) fn claim(key: &str, tag: u32) -> io::Result<Claim> {
    Claim::take(&tagged(key, tag))
}

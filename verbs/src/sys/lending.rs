//! Regions on bytes that are only read.

use std::ops::Range;

use bytes::Bytes;
use doorbell_core::memory::Region;

/// Returns a region on the whole words within some bytes, and where in the bytes they are. The
/// caller is `Domain::lend`, which registers the region for reading by peers alone, and hands out
/// neither the region nor its local key.
pub fn region_to_read(bytes: Bytes) -> (Region, Range<usize>) {
    // SAFETY: `Domain::lend` gives peers the right to read and no other, and keeps the region and
    // its local key to itself, so nobody writes there.
    unsafe { Region::read_only(bytes) }
}

//! The atomic changes of mapped memory that are kept for a moment: see `changing`.

use crate::atomics::Change;

/// How many changes are kept at most: as many as there are cache misses that a processor has under
/// way at a time, or a little more.
pub(super) const MOST: usize = 16;

/// The changes that are kept, in a ring.
#[derive(Default)]
pub(crate) struct Deferred {
    pub(super) changes: [Option<Later>; MOST],
    pub(super) next: usize,
}

/// A change that is kept.
#[derive(Clone, Copy)]
pub(super) struct Later {
    pub change: Change,
    pub rank: u32,
    pub offset: u64,
    pub operand: u64,
}

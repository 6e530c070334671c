//! Where the words of a ring lie, its tags, and how much of its memory is there.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use doorbell_core::encap::shm_record;
use doorbell_core::memory::Region;
use doorbell_core::wire::PathMtu;

use crate::sys::mapping::populate;

/// The number of words of a line.
pub(super) const LINE: usize = 8;

/// The word that says how far the reader has come. This word, the next two, and the ring are in
/// pairs of lines of their own, since processors fetch lines in pairs.
pub(super) const TAKEN: usize = 0;
/// The word that says how much the reader had sent, in the other direction, when it told how far it
/// has come.
pub(super) const SENT: usize = 1;
/// The word that says whether the reader sleeps.
pub(super) const SLEEPING: usize = 2 * LINE;
/// The first word of the ring itself.
pub(super) const RING: usize = 4 * LINE;

/// The bytes of the longest record: any headers, and a payload of 4096 bytes.
pub(super) const LONGEST: usize = shm_record::TAG_LEN + 64 + PathMtu::Mtu4096.bytes();

/// The fewest lines of a ring, so that some of the longest records fit.
pub const FEWEST: u32 = 256;
/// The most lines of a ring.
pub const MOST: u32 = 1 << 16;

/// How many lines have memory from the beginning.
pub(super) const FIRST: u64 = 1 << 8;

/// How many lines a ring may always take, and how many lines' memory is taken at a time beyond
/// that.
pub(super) const SHORT: u64 = 1 << 12;
/// How many lines behind the writer a reader is at most that keeps up.
pub(super) const CLOSE: u64 = 64;

/// Returns the bytes of a ring of so many lines, and of the words in front of it.
pub const fn bytes(lines: u32) -> usize {
    (RING + lines as usize * LINE) * 8
}

/// Returns how many lines of a ring have memory from the beginning.
const fn first_part(lines: u64) -> u64 {
    if lines < FIRST { lines } else { FIRST }
}

/// Returns how many lines a ring may take beside what is [spare](Spare).
pub(super) const fn own_part(lines: u64) -> u64 {
    if lines < SHORT { lines } else { SHORT }
}

/// Returns how many [bytes] of a ring must have memory from the beginning.
pub const fn first_bytes(lines: u32) -> usize {
    let looked_at = Ring::looked_at(lines as u64, first_part(lines as u64));
    (RING + looked_at as usize * LINE) * 8
}

/// Returns how many [bytes] a ring may take beside what is [spare](Spare).
#[cfg(test)]
pub const fn own_bytes(lines: u32) -> usize {
    let looked_at = Ring::looked_at(lines as u64, own_part(lines as u64));
    (RING + looked_at as usize * LINE) * 8
}

/// The error of a ring whose other side wrote what no honest peer writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nonsense;

/// The number of lines that the long rings of a device may still take together.
#[derive(Clone, Default)]
pub struct Spare(Arc<AtomicU64>);

impl Spare {
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(AtomicU64::new((bytes / (LINE * 8)) as u64)))
    }

    pub(super) fn take(&self, lines: u64) -> bool {
        let Self(left) = self;
        let take = |left: u64| left.checked_sub(lines);
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    pub(super) fn give_back(&self, lines: u64) {
        self.0.fetch_add(lines, Ordering::Relaxed);
    }
}

/// The memory of a ring, as either end sees it.
pub(super) struct Ring {
    memory: Region,
    /// The number of lines, a power of two.
    pub(super) lines: u64,
    shift: u32,
    /// The number of lines that records may use. Memory is there for these, and for the line behind
    /// them, where the reader looks.
    pub(super) reach: u64,
}

impl Ring {
    pub(super) fn new(memory: Region, lines: u32) -> Self {
        assert!(lines.is_power_of_two() && memory.len() == bytes(lines), "a ring's memory");
        let (lines, shift) = (u64::from(lines), lines.trailing_zeros());
        Self { memory, lines, shift, reach: first_part(lines) }
    }

    /// Returns how many lines of a ring are looked at while records use `reach` lines.
    pub(super) const fn looked_at(lines: u64, reach: u64) -> u64 {
        if reach < lines { reach + 1 } else { lines }
    }

    /// Returns how many lines the next part of the ring has, for which memory may be taken.
    pub(super) fn next_part(&self) -> u64 {
        let end = if self.reach < SHORT { SHORT } else { self.reach + SHORT };
        end.min(self.lines) - self.reach
    }

    /// Takes memory for the next part of the ring. Words that the other side has written there
    /// stay.
    #[cold]
    pub(super) fn grow(&mut self) -> io::Result<()> {
        let reach = self.reach + self.next_part();
        let words = |reach| RING + Self::looked_at(self.lines, reach) as usize * LINE;
        populate(&self.memory.words()[words(self.reach)..words(reach)])?;
        self.reach = reach;
        Ok(())
    }

    /// Returns the line of the ring at which a position is.
    #[inline]
    pub(super) fn place(&self, position: u64) -> u64 {
        position & (self.lines - 1)
    }

    /// Returns how many lines there are from a position to where memory ends.
    #[inline]
    pub(super) fn left(&self, position: u64) -> u64 {
        self.reach - self.place(position)
    }

    /// Returns whether there is memory for so many lines from a word on. This takes fewer steps
    /// than [`left`](Self::left) takes for a position.
    #[inline]
    pub(super) fn has_memory(&self, start: usize, lines: u64) -> bool {
        start + lines as usize * LINE <= RING + self.reach as usize * LINE
    }

    #[inline]
    pub(super) fn word(&self, at: usize) -> &AtomicU64 {
        &self.memory.words()[at]
    }

    /// Returns how many lines there are from a position to the end of the ring.
    #[inline]
    pub(super) fn to_end(&self, position: u64) -> u64 {
        self.lines - self.place(position)
    }

    /// Returns the word at which the line of a position begins.
    #[inline]
    pub(super) fn start(&self, position: u64) -> usize {
        RING + self.place(position) as usize * LINE
    }

    #[inline]
    pub(super) fn lines(&self, first: u64, count: u64) -> &[AtomicU64] {
        self.record(self.start(first), count)
    }

    /// Returns the words of some lines, from a word on.
    #[inline]
    pub(super) fn record(&self, start: usize, lines: u64) -> &[AtomicU64] {
        &self.memory.words()[start..][..lines as usize * LINE]
    }

    /// Returns the lap of a position, as it stands in tags.
    #[inline]
    pub(super) fn lap(&self, position: u64) -> u16 {
        // No lap is 0, since a cleared line must not seem to be of any lap.
        ((position >> self.shift) % u64::from(u16::MAX)) as u16 + 1
    }
}

/// Makes the tag of a record of `len` bytes, from its length and the lap. Words that stood there in
/// the lap before have another lap in their tags; other words are cleared, where they look like a
/// tag of this lap.
#[inline]
pub(super) fn tag(lap: u16, len: usize) -> [u8; shm_record::TAG_LEN] {
    let [a, b] = lap.to_ne_bytes();
    let [c, d] = (len as u16).to_ne_bytes();
    [a, b, c, d]
}

/// Returns the length in the first word of a record, if the record is of this lap.
#[inline]
pub(super) fn written(lap: u16, first: u64) -> Option<usize> {
    let [a, b, c, d] = shm_record::tag(first);
    (u16::from_ne_bytes([a, b]) == lap).then(|| usize::from(u16::from_ne_bytes([c, d])))
}

/// Returns how many lines so many bytes take.
#[inline]
pub(super) fn lines_for(bytes: usize) -> u64 {
    bytes.div_ceil(LINE * 8) as u64
}

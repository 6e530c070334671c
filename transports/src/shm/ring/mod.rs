//! One direction of a link: a ring of cache lines that one side writes and the other reads.
//!
//! A record takes as many consecutive lines as it needs. Its tag says how long it is and in which
//! lap of the ring it was written, so the reader looks at the record itself and at nothing else: a
//! small message costs the way of one cache line. How far the reader has come it tells in a line of
//! its own, now and then, and beside it how far it had written in the other direction by then: what
//! it answered is read before what it answers is believed. In another line it tells that it is
//! going to sleep.
//!
//! A ring is as long as its reader is behind. While the reader keeps up, the writer turns back early,
//! and the same few lines stay in the caches: a quiet link takes 16 KiB for each of its rings. To a
//! reader that is behind it leaves the whole ring, which may be longer than a processor's own cache:
//! lines that have left the writer's before the reader comes to them reach it four times as fast.
//! Memory beyond the first lines is taken when a writer first goes there, if the system has it: up
//! to 256 KiB always, and more if the device's [`Spare`] allows it; else the ring stays as it is.
//!
//! Each word has one writer, but for the sleeper's, so nothing is ever locked, and it does not
//! matter where either side dies. Nor does it matter what either side writes: what can't be is
//! [`Nonsense`].

mod reader;
mod writer;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use doorbell_core::encap::shm_record;
use doorbell_core::memory::Region;
use doorbell_core::wire::PathMtu;

use crate::sys::mapping::populate;

pub(super) use reader::Reader;
pub(super) use writer::Writer;

/// The words of a line.
const LINE: usize = 8;

/// Where the words stand, in pairs of lines, since processors fetch them in pairs: how far the
/// reader has come and how much it had sent by then, whether it sleeps, and the ring.
const TAKEN: usize = 0;
const SENT: usize = 1;
const SLEEPING: usize = 2 * LINE;
const RING: usize = 4 * LINE;

/// The longest record: any headers, and a payload of 4096 bytes.
const LONGEST: usize = shm_record::TAG_LEN + 64 + PathMtu::Mtu4096.bytes();

/// The fewest lines of a ring, so that some of the longest records fit, and the most.
pub(super) const FEWEST: u32 = 256;
pub(super) const MOST: u32 = 1 << 16;

/// How many lines have memory from the beginning.
const FIRST: u64 = 1 << 8;

/// How many lines a ring may always take, and beyond that, how many lines' memory is taken at a
/// time. The other number says how close behind the writer a reader is that keeps up.
const SHORT: u64 = 1 << 12;
const CLOSE: u64 = 64;

/// The bytes of a ring of so many lines, and of what stands in front of it.
pub(super) const fn bytes(lines: u32) -> usize {
    (RING + lines as usize * LINE) * 8
}

/// How many lines have memory from the beginning.
const fn first_part(lines: u64) -> u64 {
    if lines < FIRST { lines } else { FIRST }
}

/// How many lines a ring may take without asking for what is [spare](Spare).
const fn own_part(lines: u64) -> u64 {
    if lines < SHORT { lines } else { SHORT }
}

/// How many of those bytes must be there from the beginning.
pub(super) const fn first_bytes(lines: u32) -> usize {
    let looked_at = Ring::looked_at(lines as u64, first_part(lines as u64));
    (RING + looked_at as usize * LINE) * 8
}

/// How many of those bytes a ring may take without asking for what is spare.
#[cfg(test)]
pub(super) const fn own_bytes(lines: u32) -> usize {
    let looked_at = Ring::looked_at(lines as u64, own_part(lines as u64));
    (RING + looked_at as usize * LINE) * 8
}

/// The other side wrote what can't be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Nonsense;

/// How many lines the long rings of a device may still take.
#[derive(Clone, Default)]
pub(super) struct Spare(Arc<AtomicU64>);

impl Spare {
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(AtomicU64::new((bytes / (LINE * 8)) as u64)))
    }

    fn take(&self, lines: u64) -> bool {
        let Self(left) = self;
        let take = |left: u64| left.checked_sub(lines);
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    fn give_back(&self, lines: u64) {
        self.0.fetch_add(lines, Ordering::Relaxed);
    }
}

/// Where a ring's words are.
struct Ring {
    memory: Region,
    /// A power of two.
    lines: u64,
    shift: u32,
    /// Up to which line records may go: memory is there for these, and for the line behind, where
    /// the reader looks.
    reach: u64,
}

impl Ring {
    fn new(memory: Region, lines: u32) -> Self {
        assert!(lines.is_power_of_two() && memory.len() == bytes(lines), "a ring's memory");
        let (lines, shift) = (u64::from(lines), lines.trailing_zeros());
        Self { memory, lines, shift, reach: first_part(lines) }
    }

    /// How many lines of a ring are looked at while records go up to `reach`.
    const fn looked_at(lines: u64, reach: u64) -> u64 {
        if reach < lines { reach + 1 } else { lines }
    }

    /// How many lines the next part has.
    fn next_part(&self) -> u64 {
        let end = if self.reach < SHORT { SHORT } else { self.reach + SHORT };
        end.min(self.lines) - self.reach
    }

    /// Has the memory of the next part be there. What another has written there stays.
    #[cold]
    fn grow(&mut self) -> io::Result<()> {
        let reach = self.reach + self.next_part();
        let words = |reach| RING + Self::looked_at(self.lines, reach) as usize * LINE;
        populate(&self.memory.words()[words(self.reach)..words(reach)])?;
        self.reach = reach;
        Ok(())
    }

    /// At which line of the ring a position is.
    #[inline]
    fn place(&self, position: u64) -> u64 {
        position & (self.lines - 1)
    }

    /// How many lines are left from a position to where memory ends.
    #[inline]
    fn left(&self, position: u64) -> u64 {
        self.reach - self.place(position)
    }

    /// Whether there is memory for so many lines from a word on: the same as of a position, in
    /// fewer steps.
    #[inline]
    fn has_memory(&self, start: usize, lines: u64) -> bool {
        start + lines as usize * LINE <= RING + self.reach as usize * LINE
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU64 {
        &self.memory.words()[at]
    }

    /// How many lines are left from a position to the end of the ring.
    #[inline]
    fn to_end(&self, position: u64) -> u64 {
        self.lines - self.place(position)
    }

    /// Where the line of a position begins.
    #[inline]
    fn start(&self, position: u64) -> usize {
        RING + self.place(position) as usize * LINE
    }

    #[inline]
    fn lines(&self, first: u64, count: u64) -> &[AtomicU64] {
        self.record(self.start(first), count)
    }

    /// The lines from a word on.
    #[inline]
    fn record(&self, start: usize, lines: u64) -> &[AtomicU64] {
        &self.memory.words()[start..][..lines as usize * LINE]
    }

    /// The lap of a position, as it stands in tags.
    #[inline]
    fn lap(&self, position: u64) -> u16 {
        // Never 0: a cleared line must not seem to be of any lap.
        ((position >> self.shift) % u64::from(u16::MAX)) as u16 + 1
    }
}

/// The tag of a record of `len` bytes: its length and the lap, which is not that of the words that
/// were there in the lap before; others [are looked at](Writer::clear_ahead).
#[inline]
fn tag(lap: u16, len: usize) -> [u8; shm_record::TAG_LEN] {
    let [a, b] = lap.to_ne_bytes();
    let [c, d] = (len as u16).to_ne_bytes();
    [a, b, c, d]
}

/// The length in the first word of a record, if it is one of a lap.
#[inline]
fn written(lap: u16, first: u64) -> Option<usize> {
    let [a, b, c, d] = shm_record::tag(first);
    (u16::from_ne_bytes([a, b]) == lap).then(|| usize::from(u16::from_ne_bytes([c, d])))
}

#[inline]
fn lines_for(bytes: usize) -> u64 {
    bytes.div_ceil(LINE * 8) as u64
}

#[cfg(test)]
mod tests;

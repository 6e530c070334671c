//! The reading end of a ring.

use std::sync::atomic::{AtomicU64, Ordering};

use doorbell_core::encap::{PathId, shm_record};
use doorbell_core::memory::Region;
use doorbell_core::nic::{Inbox, receive_record};
use doorbell_core::wire::{Malformed, Part};

use super::layout::{LINE, LONGEST, Nonsense, Ring, SENT, SLEEPING, TAKEN, lines_for, written};

/// The reading end of a ring.
pub struct Reader {
    ring: Ring,
    /// How many lines were read.
    read: u64,
    /// The word that is looked at, the first of the next record.
    start: usize,
    /// The lap of the next record.
    lap: u16,
    /// Up to which line the NIC has answered for what was read.
    settled: u64,
    /// Up to which line the writer was told that its records are answered for.
    told: u64,
}

impl Reader {
    pub fn new(memory: Region, lines: u32) -> Self {
        let ring = Ring::new(memory, lines);
        let (start, lap) = (ring.start(0), ring.lap(0));
        Self { ring, read: 0, start, lap, settled: 0, told: 0 }
    }

    #[inline]
    fn advance(&mut self, lines: u64) {
        self.read += lines;
        self.start = self.ring.start(self.read);
        if self.start == self.ring.start(0) {
            self.lap = self.ring.lap(self.read);
        }
    }

    /// Hands the next record to `inbox`, if there is one, and returns its length in bytes.
    #[inline]
    pub fn take(
        &mut self,
        link: PathId,
        inbox: &mut impl Inbox,
    ) -> Result<Option<usize>, Nonsense> {
        let Some((mut first, mut len)) = self.look() else { return Ok(None) };
        if len == 0 {
            if !self.skip() {
                inbox.malformed(Malformed::Length { part: Part::Bth, claimed: 0, have: 0 });
                return Err(Nonsense);
            }
            match self.look() {
                Some(behind) => (first, len) = behind,
                None => return Ok(None),
            }
        }
        let bytes = shm_record::TAG_LEN + len;
        let lines = lines_for(bytes);
        if bytes > LONGEST || !self.reaches(lines) {
            let to_end = self.ring.to_end(self.read);
            let have = LONGEST.min(to_end as usize * LINE * 8) - shm_record::TAG_LEN;
            inbox.malformed(Malformed::Length { part: Part::Payload, claimed: len, have });
            return Err(Nonsense);
        }
        if !receive_record(inbox, link, self.ring.record(self.start, lines), first, len) {
            return Err(Nonsense);
        }
        self.advance(lines);
        Ok(Some(bytes))
    }

    /// Returns whether the ring has so many lines more, and memory for them. An honest writer has
    /// provided the memory.
    #[inline]
    fn reaches(&mut self, lines: u64) -> bool {
        self.ring.has_memory(self.start, lines)
            || (lines <= self.ring.to_end(self.read) && self.follows())
    }

    /// Takes memory where the writer should have taken it, and returns whether that was possible.
    #[cold]
    fn follows(&mut self) -> bool {
        let grown = self.ring.grow();
        if let Err(why) = &grown {
            tracing::warn!(%why, "a ring can't be read on: its writer had memory for more of it");
        }
        grown.is_ok()
    }

    /// Returns the first word of the next record, and the record's length, if there is a record.
    #[inline]
    fn look(&self) -> Option<(u64, usize)> {
        let first = self.ring.word(self.start).load(Ordering::Acquire);
        written(self.lap, first).map(|len| (first, len))
    }

    /// Goes on at the beginning of the ring. Returns false, for nonsense, if the reader is at the
    /// beginning already, where no honest writer skips.
    #[cold]
    fn skip(&mut self) -> bool {
        let to_end = self.ring.to_end(self.read);
        let sense = to_end < self.ring.lines;
        if sense {
            self.advance(to_end);
        }
        sense
    }

    /// Records that all that was read is answered for. Returns whether the writer should be told at
    /// once, since it may be waiting for room.
    #[inline]
    pub fn settle(&mut self) -> bool {
        self.settled = self.read;
        self.settled - self.told >= (self.ring.reach / 4).min(1024)
    }

    /// Returns whether there is a record, or a tag that leads on to one.
    pub fn has_some(&self) -> bool {
        self.look().is_some()
    }

    /// Returns how many lines this side has read.
    #[inline]
    pub fn read(&self) -> u64 {
        self.read
    }

    /// Tells the writer up to where its records are answered for, and how much this side has
    /// `written` in the other direction, where the answers are. A writer that sees the first number
    /// sees the second, too.
    #[inline]
    pub fn tell(&mut self, written: u64) {
        self.told = self.settled;
        self.ring.word(SENT).store(written, Ordering::Relaxed);
        self.ring.word(TAKEN).store(self.settled, Ordering::Release);
    }

    /// Returns the word in which this side says whether it sleeps.
    pub fn sleeping(&self) -> &AtomicU64 {
        self.ring.word(SLEEPING)
    }

    /// Moves on, as if so many lines had been read.
    #[cfg(test)]
    pub fn pass(&mut self, lines: u64) {
        self.advance(lines);
        self.lap = self.ring.lap(self.read);
        self.settled = self.read;
    }
}

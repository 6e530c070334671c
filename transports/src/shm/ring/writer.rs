//! The writing end of a ring.

use std::sync::atomic::{AtomicU64, Ordering};

use doorbell_core::encap::{Full, shm_record};
use doorbell_core::memory::Region;
use doorbell_core::payload::Payload;
use doorbell_core::wire::Headers;

use super::layout::{
    CLOSE, LINE, LONGEST, Ring, SENT, SHORT, SLEEPING, Spare, TAKEN, lines_for, own_part, tag,
    written,
};

/// The writing end of a ring. Positions are lines, counted from the first that was ever written.
pub struct Writer {
    ring: Ring,
    /// The position behind the last record.
    written: u64,
    /// The lap of that position, as it stands in tags.
    lap: u16,
    /// The position up to which may be written before [room must be found](Self::find_room).
    bound: u64,
    /// The position up to which may be written before the writer [chooses](Self::choose_way) to
    /// turn back or to go on.
    due: u64,
    /// How far the reader had come at the last look.
    taken: u64,
    /// How far the reader is known to have answered: this side has read all that the reader had
    /// sent by then.
    delivered: u64,
    /// The numbers that the reader told last: how far it has come, and how much it had sent by
    /// then. The pair is kept until this side has read that much. If a newer pair replaced it, this
    /// side might never have read enough, while the peer streams.
    told: (u64, u64),
    /// Up to this position, lines hold payload of records longer than a line, which may look like
    /// the tag of a lap to come.
    strewn_until: u64,
    /// Up to this position, lines were written in the lap before. Lines beyond it may hold a tag
    /// from so many laps ago that its number is that of this lap again.
    fresh_until: u64,
    /// True once the reader has told what no honest reader tells.
    nonsense: bool,
    spare: Spare,
    /// The line up to which memory was taken from [`Spare`].
    paid: u64,
    /// True if in this lap the system has refused memory.
    refused: bool,
}

impl Writer {
    pub fn new(memory: Region, lines: u32) -> Self {
        let ring = Ring::new(memory, lines);
        let (lap, due, fresh_until) = (ring.lap(0), ring.reach, ring.lines);
        let ring_lines = ring.lines;
        Self {
            ring,
            written: 0,
            lap,
            bound: due,
            due,
            taken: 0,
            delivered: 0,
            told: (0, 0),
            strewn_until: 0,
            fresh_until,
            nonsense: false,
            spare: Spare::default(),
            paid: own_part(ring_lines),
            refused: false,
        }
    }

    /// Lets the ring take memory beyond what is there from the beginning.
    pub fn may_take(&mut self, spare: Spare) {
        self.spare = spare;
    }

    /// Writes a record, and returns the position behind it, and its bytes.
    // Inlined as the `push` of the device is, the only caller.
    #[inline(always)]
    pub fn push(&mut self, headers: &Headers, payload: impl Payload) -> Result<(u64, usize), Full> {
        let bytes = shm_record::record_len(headers, payload.len());
        if bytes > LONGEST {
            return Err(Full);
        }
        let lines = lines_for(bytes);
        let first = self.claim(lines)?;
        self.clear_ahead(first + lines);
        if lines > 1 {
            self.strewn_until = first + lines + self.ring.lines;
        }
        let tag = tag(self.lap, bytes - shm_record::TAG_LEN);
        shm_record::emit(self.ring.lines(first, lines), tag, headers, payload);
        self.written = first + lines;
        Ok((self.written, bytes))
    }

    /// Begins to fetch the line that will be written next from the reader's cache, if there is
    /// room. That is half of a message's way, and goes on while the message is made.
    ///
    /// The fetch is begun by a store to the last word of the line, where no tag is, so that the
    /// reader sees no record. A prefetch is not followed for a line that was last used a lap ago.
    #[inline]
    pub fn claim_early(&self) {
        if self.written < self.bound {
            self.ring.lines(self.written, 1)[LINE - 1].store(0, Ordering::Relaxed);
        }
    }

    /// Returns the position of a record of so many lines, if the reader has left room for it.
    #[inline]
    fn claim(&mut self, lines: u64) -> Result<u64, Full> {
        if self.written + lines > self.bound {
            self.find_room(lines)?;
        }
        Ok(self.written)
    }

    /// Moves the bound on, so that `lines` more may be written, if the reader has left room for
    /// them.
    #[cold]
    fn find_room(&mut self, lines: u64) -> Result<(), Full> {
        self.look();
        if self.written + lines > self.due {
            self.choose_way(lines)?;
        }
        self.bound = self.due.min(self.taken + self.ring.lines);
        if self.written + lines > self.bound { Err(Full) } else { Ok(()) }
    }

    /// Turns back to the beginning if the reader is close behind, or the ring or its memory ends.
    fn choose_way(&mut self, lines: u64) -> Result<(), Full> {
        let (to_end, behind) = (self.ring.to_end(self.written), self.written - self.taken);
        if to_end == self.ring.lines {
            self.fresh_until = self.written + to_end;
            self.lap = self.ring.lap(self.written);
        } else {
            let may_turn = to_end + lines + behind <= self.ring.lines;
            if (may_turn && behind <= CLOSE) || !self.can_go_on(lines) {
                if !may_turn {
                    return Err(Full);
                }
                self.skip(to_end);
            }
        }
        self.due = self.written + self.ring.left(self.written).min(SHORT);
        Ok(())
    }

    /// Returns whether there is memory for so many lines before the ring ends, or it can be taken.
    fn can_go_on(&mut self, lines: u64) -> bool {
        lines <= self.ring.left(self.written) || self.grow()
    }

    /// Takes memory for the next part, and returns whether that was possible. A refusal may leave
    /// part of the memory with the ring, so it counts as taken. The system is asked once a lap,
    /// since that is a system call.
    fn grow(&mut self) -> bool {
        let (part, end) = (self.ring.next_part(), self.ring.reach + self.ring.next_part());
        if part == 0 || self.refused || (self.paid < end && !self.spare.take(part)) {
            return false;
        }
        self.paid = end;
        self.refused = self.ring.grow().is_err();
        !self.refused
    }

    /// Sends the reader to the beginning, by a tag whose length is zero.
    fn skip(&mut self, to_end: u64) {
        let beginning = self.written + to_end;
        self.clear_ahead(beginning);
        let [a, b, c, d] = tag(self.lap, 0);
        let first = u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0]);
        self.ring.lines(self.written, 1)[0].store(first, Ordering::Release);
        self.fresh_until = self.written + self.ring.lines;
        self.refused = false;
        self.written = beginning;
        self.lap = self.ring.lap(beginning);
    }

    /// Clears the line where the reader will look next, if it seems to hold a record of this lap.
    #[inline]
    fn clear_ahead(&self, next: u64) {
        if (self.strewn_until..self.fresh_until).contains(&next) {
            return;
        }
        let first = &self.ring.lines(next, 1)[0];
        if written(self.ring.lap(next), first.load(Ordering::Relaxed)).is_some() {
            first.store(0, Ordering::Relaxed);
        }
    }

    /// Reads how far the reader says that it has come.
    #[inline]
    fn look(&mut self) {
        let taken = self.ring.word(TAKEN).load(Ordering::Acquire);
        match (self.taken..=self.written).contains(&taken) {
            true => self.taken = taken,
            false => self.nonsense = true,
        }
    }

    /// Returns how many lines this side has written.
    #[inline]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Returns the position up to which the peer has taken what was written, and answered for it.
    /// This side has read the answers up to `read` in the other direction.
    #[inline]
    pub fn delivered(&mut self, read: u64) -> u64 {
        let (taken, sent) = self.told;
        if sent > read {
            return self.delivered;
        }
        self.delivered = taken;
        self.look();
        if self.taken != taken {
            self.hear(read);
        }
        self.delivered
    }

    /// Reads how much the reader had sent when it told how far it has come. If the reader has told
    /// again meanwhile, the number is larger, which does no harm.
    #[inline]
    fn hear(&mut self, read: u64) {
        let sent = self.ring.word(SENT).load(Ordering::Relaxed);
        // The ring that the peer writes is as long as this one.
        if !(self.told.1..=read + self.ring.lines).contains(&sent) {
            self.nonsense = true;
            return;
        }
        self.told = (self.taken, sent);
        if sent <= read {
            self.delivered = self.taken;
        }
    }

    /// Returns whether the reader has told what no honest reader tells.
    #[inline]
    pub fn nonsense(&self) -> bool {
        self.nonsense
    }

    /// Returns the word in which the reader says whether it sleeps.
    #[inline]
    pub fn sleeping(&self) -> &AtomicU64 {
        self.ring.word(SLEEPING)
    }

    #[cfg(test)]
    pub fn lap(&self) -> u16 {
        self.lap
    }

    /// Moves on, as if so many lines had been written and read.
    #[cfg(test)]
    pub fn pass(&mut self, lines: u64) {
        self.written += lines;
        self.lap = self.ring.lap(self.written);
        self.bound += lines;
        self.due += lines;
        self.taken += lines;
        self.fresh_until += lines;
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.spare.give_back(self.paid - own_part(self.ring.lines));
    }
}

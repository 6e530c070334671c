//! The end of a ring that writes.

use std::sync::atomic::{AtomicU64, Ordering};

use doorbell_core::encap::{Full, shm_record};
use doorbell_core::memory::Region;
use doorbell_core::payload::Payload;
use doorbell_core::wire::Headers;

use super::{
    CLOSE, LINE, LONGEST, Ring, SENT, SHORT, SLEEPING, Spare, TAKEN, lines_for, own_part, tag,
    written,
};

/// The end that writes. Positions are lines, counted from the beginning of time.
pub struct Writer {
    ring: Ring,
    written: u64,
    /// The lap, as it stands in tags.
    lap: u16,
    /// How far may be written before [room must be found](Self::find_room).
    bound: u64,
    /// How far may be written before the writer [chooses](Self::choose_way) to turn back or to go
    /// on.
    due: u64,
    /// How far the reader was when last looked at.
    taken: u64,
    /// How far it is known to have answered, as this side has read what it had sent by then.
    delivered: u64,
    /// What it told last: as far as it has come, and how much it had sent. It is kept until this
    /// side has read that much, or a stream of others that tell again and again would never be
    /// behind us.
    told: (u64, u64),
    /// Up to here, lines hold what may look like the tag of a lap to come: payload of records
    /// longer than a line.
    strewn_until: u64,
    /// Up to here, lines were written in the lap before. Others may hold a tag from so many laps
    /// ago that it is of this one again.
    fresh_until: u64,
    nonsense: bool,
    spare: Spare,
    /// Up to which line it was asked for memory, and whether in this lap that was refused.
    paid: u64,
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
    // As the device's, which is its only caller.
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

    /// Begins to take the line that will be written next from the reader's cache, if there is room
    /// for it: that is half of a message's way, and goes on while the message is made.
    ///
    /// It is stored to, in its last word, where no tag is, so that nothing is told by it. A hint to
    /// the processor is not followed for a line that was last used a lap ago.
    #[inline]
    pub fn claim_early(&self) {
        if self.written < self.bound {
            self.ring.lines(self.written, 1)[LINE - 1].store(0, Ordering::Relaxed);
        }
    }

    /// Where a record of so many lines may begin, if the reader has left room for it.
    #[inline]
    fn claim(&mut self, lines: u64) -> Result<u64, Full> {
        if self.written + lines > self.bound {
            self.find_room(lines)?;
        }
        Ok(self.written)
    }

    /// Moves the bound behind so many lines more, if the reader has left room for them.
    #[cold]
    fn find_room(&mut self, lines: u64) -> Result<(), Full> {
        self.look();
        if self.written + lines > self.due {
            self.choose_way(lines)?;
        }
        self.bound = self.due.min(self.taken + self.ring.lines);
        if self.written + lines > self.bound { Err(Full) } else { Ok(()) }
    }

    /// Turns back to the beginning if the reader is close behind, or the ring ends, or its memory.
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

    /// Whether there is memory for so many lines before the ring ends, or can be taken.
    fn can_go_on(&mut self, lines: u64) -> bool {
        lines <= self.ring.left(self.written) || self.grow()
    }

    /// Takes memory for the next part. Part of that may be had even if it is refused, and so it is
    /// paid for once and not given back. It is asked for once a lap: that is a system call.
    fn grow(&mut self) -> bool {
        let (part, end) = (self.ring.next_part(), self.ring.reach + self.ring.next_part());
        if part == 0 || self.refused || (self.paid < end && !self.spare.take(part)) {
            return false;
        }
        self.paid = end;
        self.refused = self.ring.grow().is_err();
        !self.refused
    }

    /// Sends the reader to the beginning, by a tag of no length.
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

    /// Sees to it that the line where the reader will look next does not seem written already.
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

    /// Looks how far the reader says that it has come.
    #[inline]
    fn look(&mut self) {
        let taken = self.ring.word(TAKEN).load(Ordering::Acquire);
        match (self.taken..=self.written).contains(&taken) {
            true => self.taken = taken,
            false => self.nonsense = true,
        }
    }

    /// How far this side has written.
    #[inline]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// How far the reader's side has taken what was written, and answered for it, of which this
    /// side has read everything up to `read`.
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

    /// Hears how much the reader had sent when it told how far it has come. If it has told again
    /// since, that is more, and no harm.
    #[inline]
    fn hear(&mut self, read: u64) {
        let sent = self.ring.word(SENT).load(Ordering::Relaxed);
        // The ring that it writes is as long as this one.
        if !(self.told.1..=read + self.ring.lines).contains(&sent) {
            self.nonsense = true;
            return;
        }
        self.told = (self.taken, sent);
        if sent <= read {
            self.delivered = self.taken;
        }
    }

    /// Whether the reader has said what can't be.
    #[inline]
    pub fn nonsense(&self) -> bool {
        self.nonsense
    }

    /// Where the reader says whether it sleeps.
    #[inline]
    pub fn sleeping(&self) -> &AtomicU64 {
        self.ring.word(SLEEPING)
    }

    #[cfg(test)]
    pub fn lap(&self) -> u16 {
        self.lap
    }

    /// As if so many lines had been written and read since.
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

//! Two rings of cache lines in memory that two processes map, as a device.
//!
//! A record takes as many consecutive lines as it needs. Its tag says how long it is and in which
//! lap of the ring it was written, so the reader looks at the record itself and at nothing else: a
//! small message costs the way of one cache line. The reader tells the writer how far it has come
//! in a line of its own, once a burst; that is also what acknowledges.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use doorbell_core::encap::{Full, Path, bare};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{Headers, Malformed, Part};

use crate::device::{Burst, Device, Flow, Inbox, Outbox};
use crate::sys::{SharedWords, clear_event, signal_event};

const LINE: usize = 8;
const LINES: u64 = 4096;

/// Where one direction's words stand: two lines of state, then the ring.
const TAKEN: usize = 0;
const SLEEPING: usize = LINE;
const RING: usize = 2 * LINE;
const DIRECTION: usize = RING + LINES as usize * LINE;
/// The words of the whole segment.
pub const WORDS: usize = 2 * DIRECTION;

pub struct SharedMemory {
    words: Arc<SharedWords>,
    outgoing: usize,
    incoming: usize,
    /// The next line to write, counted from the beginning of time; likewise to read.
    written: u64,
    read: u64,
    burst: Burst,
    /// Whether the writer's record made no sense: where the next one begins is then unknown.
    broken: bool,
    /// How far the reader was when last looked at.
    taken: u64,
    /// How far the writer was told that we have read.
    announced: u64,
    /// Up to here, lines hold what may look like the tag of a lap to come: payload of records
    /// longer than a line.
    strewn_until: u64,
    /// Whether the reader might sleep through what was written since it was last looked at.
    unannounced: bool,
    ours: OwnedFd,
    theirs: OwnedFd,
}

impl SharedMemory {
    /// One end of the segment: side 0 or 1. `ours` wakes this end, `theirs` the other.
    pub fn new(words: Arc<SharedWords>, side: usize, ours: OwnedFd, theirs: OwnedFd) -> Self {
        Self {
            words,
            outgoing: side * DIRECTION,
            incoming: (1 - side) * DIRECTION,
            written: 0,
            read: 0,
            burst: Burst::new(),
            broken: false,
            taken: 0,
            announced: 0,
            strewn_until: 0,
            unannounced: false,
            ours,
            theirs,
        }
    }

    /// Empties both directions. Neither side may be using them.
    pub fn clear(words: &SharedWords) {
        words.words().iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    #[inline]
    fn lines(words: &SharedWords, direction: usize, first: u64, count: u64) -> &[AtomicU64] {
        let start = direction + RING + (first % LINES) as usize * LINE;
        &words.words()[start..start + count as usize * LINE]
    }

    /// A line to begin a record of `lines` at, if the reader has left room for it.
    #[inline]
    fn claim(&mut self, lines: u64) -> Result<u64, Full> {
        let to_end = LINES - self.written % LINES;
        let skipped = if lines > to_end { to_end } else { 0 };
        if self.written + skipped + lines - self.taken > LINES {
            self.taken = self.load_taken();
            if self.written + skipped + lines - self.taken > LINES {
                return Err(Full);
            }
        }
        if skipped > 0 {
            // A record does not wrap: a tag of no length sends the reader to the beginning.
            self.clear_ahead(self.written + skipped);
            let line = Self::lines(&self.words, self.outgoing, self.written, 1);
            let [a, b, c, d] = tag(self.written, 0);
            line[0].store(u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0]), Ordering::Release);
            self.written += skipped;
        }
        Ok(self.written)
    }

    /// Sees to it that the line where the reader will look next does not seem written already.
    #[inline]
    fn clear_ahead(&self, next: u64) {
        if next >= self.strewn_until {
            return;
        }
        let first = &Self::lines(&self.words, self.outgoing, next, 1)[0];
        if bare::tag(first.load(Ordering::Relaxed))[..2] == tag(next, 0)[..2] {
            first.store(0, Ordering::Relaxed);
        }
    }

    /// Hands the next record to `inbox`, if it is there.
    #[inline]
    fn take_record(&mut self, inbox: &mut impl Inbox) -> bool {
        if self.broken {
            return false;
        }
        let first_line = Self::lines(&self.words, self.incoming, self.read, 1);
        let first = first_line[0].load(Ordering::Acquire);
        let [a, b, c, d] = bare::tag(first);
        if [a, b] != tag(self.read, 0)[..2] {
            return false;
        }
        let len = usize::from(u16::from_ne_bytes([c, d]));
        let to_end = LINES - self.read % LINES;
        if len == 0 {
            self.read += to_end;
            return true;
        }
        let lines = lines_for(bare::TAG_LEN + len);
        if lines > to_end {
            let have = to_end as usize * LINE * 8;
            inbox.malformed(Malformed::Length { part: Part::Payload, claimed: len, have });
            self.broken = true;
            return false;
        }
        let record = Self::lines(&self.words, self.incoming, self.read, lines);
        match bare::parse(record, first, len) {
            Ok(packet) => inbox.packet(Flow::Wire, &packet),
            Err(why) => inbox.malformed(why),
        }
        self.read += lines;
        true
    }

    #[inline]
    fn load_taken(&self) -> u64 {
        let taken = self.words.words()[self.outgoing + TAKEN].load(Ordering::Acquire);
        // The other process may write anything here; it can only have taken what was written.
        taken.clamp(self.taken, self.written)
    }
}

/// The tag of a record of `len` bytes at a line: its length and the lap, which is never that of
/// the words that were there before.
#[inline]
fn tag(line: u64, len: usize) -> [u8; bare::TAG_LEN] {
    // Never 0: a cleared line must not seem to be of any lap.
    let lap = (line / LINES % u64::from(u16::MAX)) as u16 + 1;
    let [a, b] = lap.to_ne_bytes();
    let [c, d] = (len as u16).to_ne_bytes();
    [a, b, c, d]
}

#[inline]
fn lines_for(bytes: usize) -> u64 {
    bytes.div_ceil(LINE * 8) as u64
}

impl Outbox for SharedMemory {
    #[inline]
    fn push(&mut self, _: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        let bytes = bare::record_len(&headers, payload.len());
        let lines = lines_for(bytes);
        let first = self.claim(lines)?;
        self.clear_ahead(first + lines);
        if lines > 1 {
            self.strewn_until = first + lines + LINES;
        }
        let record = Self::lines(&self.words, self.outgoing, first, lines);
        bare::emit(record, tag(first, bytes - bare::TAG_LEN), &headers, payload);
        self.written = first + lines;
        self.unannounced = true;
        Ok(self.written)
    }

    #[inline]
    fn flush(&mut self) {
        if !std::mem::take(&mut self.unannounced) {
            return;
        }
        // Against the reader's: it announces its sleep, fences, and looks at the ring once more.
        // One of the two sees the other's store.
        fence(Ordering::SeqCst);
        let sleeping = &self.words.words()[self.outgoing + SLEEPING];
        if sleeping.load(Ordering::Relaxed) != 0 {
            sleeping.store(0, Ordering::Relaxed);
            signal_event(self.theirs.as_raw_fd());
        }
    }

    #[inline]
    fn delivered(&mut self) -> u64 {
        self.taken = self.load_taken();
        self.taken
    }
}

impl Device for SharedMemory {
    const LOSSLESS: bool = true;

    #[inline]
    fn receive(&mut self, inbox: &mut impl Inbox) -> usize {
        let mut burst = std::mem::replace(&mut self.burst, Burst::new());
        let found = burst.take(|| self.take_record(inbox));
        self.burst = burst;
        // The writer watches this line. Writing it before the answer to what was read would keep
        // the answer waiting for the line to come over: so when there is nothing left to do.
        if self.read != self.announced && (found == 0 || self.read - self.announced > LINES / 4) {
            self.announced = self.read;
            let taken = &self.words.words()[self.incoming + TAKEN];
            taken.store(self.read, Ordering::Release);
            self.unannounced = true;
        }
        found
    }

    fn readiness(&self) -> RawFd {
        self.ours.as_raw_fd()
    }

    fn arm(&mut self) {
        self.words.words()[self.incoming + SLEEPING].store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    fn disarm(&mut self) {
        self.words.words()[self.incoming + SLEEPING].store(0, Ordering::Relaxed);
        clear_event(self.ours.as_raw_fd());
    }
}

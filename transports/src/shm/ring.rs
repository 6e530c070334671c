//! One direction of a link: a ring of cache lines that one side writes and the other reads.
//!
//! A record takes as many consecutive lines as it needs. Its tag says how long it is and in which
//! lap of the ring it was written, so the reader looks at the record itself and at nothing else: a
//! small message costs the way of one cache line. How far the reader has come it tells in a line of
//! its own, now and then, and beside it how far it had written in the other direction by then: what
//! it answered is read before what it answers is believed. In another line it tells that it is going
//! to sleep.
//!
//! Each word has one writer, but for the sleeper's, so nothing is ever locked, and it does not
//! matter where either side dies. Nor does it matter what either side writes: what can't be is
//! [`Nonsense`].

use std::sync::atomic::{AtomicU64, Ordering};

use doorbell_core::encap::{Full, PathId, bare};
use doorbell_core::memory::Region;
use doorbell_core::nic::{Flow, Inbox};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{Headers, Malformed, Part, PathMtu};

/// The words of a line.
const LINE: usize = 8;

/// Where the words stand, in pairs of lines, since processors fetch them in pairs: how far the
/// reader has come and how much it had sent by then, whether it sleeps, and the ring.
const TAKEN: usize = 0;
const SENT: usize = 1;
const SLEEPING: usize = 2 * LINE;
const RING: usize = 4 * LINE;

/// The longest record: any headers, and a payload of 4096 bytes.
const LONGEST: usize = bare::TAG_LEN + 64 + PathMtu::Mtu4096.bytes();

/// The fewest lines of a ring, so that some of the longest records fit, and the most.
pub(super) const FEWEST: u32 = 256;
pub(super) const MOST: u32 = 1 << 16;

/// The bytes of a ring of so many lines, and of what stands in front of it.
pub(super) const fn bytes(lines: u32) -> usize {
    (RING + lines as usize * LINE) * 8
}

/// The other side wrote what can't be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Nonsense;

/// Where a ring's words are.
struct Ring {
    memory: Region,
    /// A power of two.
    lines: u64,
    shift: u32,
}

impl Ring {
    fn new(memory: Region, lines: u32) -> Self {
        assert!(lines.is_power_of_two() && memory.len() == bytes(lines), "a ring's memory");
        Self { memory, lines: lines.into(), shift: lines.trailing_zeros() }
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU64 {
        &self.memory.words()[at]
    }

    /// How many lines are left from a position to the end of the ring.
    #[inline]
    fn to_end(&self, position: u64) -> u64 {
        self.lines - (position & (self.lines - 1))
    }

    /// Where the line of a position begins.
    #[inline]
    fn start(&self, position: u64) -> usize {
        RING + (position & (self.lines - 1)) as usize * LINE
    }

    #[inline]
    fn lines(&self, first: u64, count: u64) -> &[AtomicU64] {
        let start = self.start(first);
        &self.memory.words()[start..start + count as usize * LINE]
    }

    /// The lap of a position, as it stands in tags.
    #[inline]
    fn lap(&self, position: u64) -> u16 {
        // Never 0: a cleared line must not seem to be of any lap.
        ((position >> self.shift) % u64::from(u16::MAX)) as u16 + 1
    }

    /// The tag of a record of `len` bytes at a position: its length and the lap, which is never
    /// that of the words that were there before.
    #[inline]
    fn tag(&self, position: u64, len: usize) -> [u8; bare::TAG_LEN] {
        let [a, b] = self.lap(position).to_ne_bytes();
        let [c, d] = (len as u16).to_ne_bytes();
        [a, b, c, d]
    }
}

/// The length in the first word of a record, if it is one of a lap.
#[inline]
fn written(lap: u16, first: u64) -> Option<usize> {
    let [a, b, c, d] = bare::tag(first);
    (u16::from_ne_bytes([a, b]) == lap).then(|| usize::from(u16::from_ne_bytes([c, d])))
}

#[inline]
fn lines_for(bytes: usize) -> u64 {
    bytes.div_ceil(LINE * 8) as u64
}

/// The end that writes. Positions are lines, counted from the beginning of time.
pub(super) struct Writer {
    ring: Ring,
    written: u64,
    /// How far the reader was when last looked at.
    taken: u64,
    /// How far it is known to have answered, as this side has read what it had sent by then.
    delivered: u64,
    /// What it told last: as far as it has come, and how much it had sent. It is kept until this side
    /// has read that much, or a stream of others that tell again and again would never be behind us.
    told: (u64, u64),
    /// Up to here, lines hold what may look like the tag of a lap to come: payload of records
    /// longer than a line.
    strewn_until: u64,
    nonsense: bool,
}

impl Writer {
    pub fn new(memory: Region, lines: u32) -> Self {
        let ring = Ring::new(memory, lines);
        let (taken, delivered, told) = (0, 0, (0, 0));
        Self { ring, written: 0, taken, delivered, told, strewn_until: 0, nonsense: false }
    }

    /// Writes a record, and returns the position behind it, and its bytes.
    #[inline]
    pub fn push(&mut self, headers: &Headers, payload: impl Payload) -> Result<(u64, usize), Full> {
        let bytes = bare::record_len(headers, payload.len());
        if bytes > LONGEST {
            return Err(Full);
        }
        let lines = lines_for(bytes);
        let first = self.claim(lines)?;
        self.clear_ahead(first + lines);
        if lines > 1 {
            self.strewn_until = first + lines + self.ring.lines;
        }
        let tag = self.ring.tag(first, bytes - bare::TAG_LEN);
        bare::emit(self.ring.lines(first, lines), tag, headers, payload);
        self.written = first + lines;
        Ok((self.written, bytes))
    }

    /// Where a record of so many lines may begin, if the reader has left room for it.
    #[inline]
    fn claim(&mut self, lines: u64) -> Result<u64, Full> {
        let to_end = self.ring.to_end(self.written);
        let skipped = if lines > to_end { to_end } else { 0 };
        let end = self.written + skipped + lines;
        if end - self.taken > self.ring.lines {
            self.look();
            if end - self.taken > self.ring.lines {
                return Err(Full);
            }
        }
        if skipped > 0 {
            // A record does not wrap: a tag of no length sends the reader to the beginning.
            self.clear_ahead(self.written + skipped);
            let [a, b, c, d] = self.ring.tag(self.written, 0);
            let first = u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0]);
            self.ring.lines(self.written, 1)[0].store(first, Ordering::Release);
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

    /// How far the reader's side has taken what was written, and answered for it, of which this side
    /// has read everything up to `read`.
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

    /// Whether the reader may sleep through what was written. To be called behind a fence, which
    /// stands against the reader's in [`Reader::sleeps`]: one of the two sees the other's store.
    #[inline]
    pub fn must_wake(&self) -> bool {
        let sleeping = self.ring.word(SLEEPING);
        if sleeping.load(Ordering::Relaxed) == 0 {
            return false;
        }
        sleeping.store(0, Ordering::Relaxed);
        true
    }
}

/// The end that reads.
pub(super) struct Reader {
    ring: Ring,
    read: u64,
    /// Where the word is that is looked at, and the lap that it is looked at for.
    start: usize,
    lap: u16,
    /// How far what was read is answered for.
    settled: u64,
    /// How far the writer was told so.
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
        (self.start, self.lap) = (self.ring.start(self.read), self.ring.lap(self.read));
    }

    /// Hands the next record to `inbox`, if it is there, and returns its bytes.
    #[inline]
    pub fn take(
        &mut self,
        link: PathId,
        inbox: &mut impl Inbox,
    ) -> Result<Option<usize>, Nonsense> {
        let first = self.ring.word(self.start).load(Ordering::Acquire);
        let Some(len) = written(self.lap, first) else { return Ok(None) };
        if len == 0 {
            return self.skip(link, inbox);
        }
        let bytes = bare::TAG_LEN + len;
        let lines = lines_for(bytes);
        let to_end = self.ring.to_end(self.read);
        if bytes > LONGEST || lines > to_end {
            let have = LONGEST.min(to_end as usize * LINE * 8) - bare::TAG_LEN;
            inbox.malformed(Malformed::Length { part: Part::Payload, claimed: len, have });
            return Err(Nonsense);
        }
        match bare::parse(self.ring.lines(self.read, lines), first, len) {
            Ok(packet) => inbox.packet(Flow::Link(link), &packet),
            Err(why) => {
                inbox.malformed(why);
                return Err(Nonsense);
            }
        }
        self.advance(lines);
        Ok(Some(bytes))
    }

    /// Goes on at the beginning of the ring, where no other skip can be.
    #[cold]
    fn skip(&mut self, link: PathId, inbox: &mut impl Inbox) -> Result<Option<usize>, Nonsense> {
        let to_end = self.ring.to_end(self.read);
        if to_end == self.ring.lines {
            inbox.malformed(Malformed::Length { part: Part::Bth, claimed: 0, have: 0 });
            return Err(Nonsense);
        }
        self.advance(to_end);
        self.take(link, inbox)
    }

    /// What was read so far is answered for. Whether the writer should be told at once, since it
    /// may be waiting for room.
    #[inline]
    pub fn settle(&mut self) -> bool {
        self.settled = self.read;
        self.settled - self.told >= self.ring.lines / 4
    }

    /// How far this side has read.
    #[inline]
    pub fn read(&self) -> u64 {
        self.read
    }

    /// Tells the writer how far what was read is answered for, and how far this side has `written`
    /// in the other direction: the answers are among that. Whoever sees the one sees the other.
    #[inline]
    pub fn tell(&mut self, written: u64) {
        self.told = self.settled;
        self.ring.word(SENT).store(written, Ordering::Relaxed);
        self.ring.word(TAKEN).store(self.settled, Ordering::Release);
    }

    /// Says whether this side is going to sleep. If it is, a fence must follow, and then another
    /// look at the ring.
    pub fn sleeps(&self, sleeps: bool) {
        self.ring.word(SLEEPING).store(sleeps.into(), Ordering::Relaxed);
    }
}

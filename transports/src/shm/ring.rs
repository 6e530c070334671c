//! One direction of a link: a ring of cache lines that one side writes and the other reads.
//!
//! A record takes as many consecutive lines as it needs. Its tag says how long it is and in which
//! lap of the ring it was written, so the reader looks at the record itself and at nothing else: a
//! small message costs the way of one cache line. How far the reader has come it tells in a line of
//! its own, now and then, and beside it how far it had written in the other direction by then: what
//! it answered is read before what it answers is believed. In another line it tells that it is going
//! to sleep.
//!
//! A ring has two lengths. While the reader keeps up, the writer turns back early, and the same few
//! lines stay in the caches. To a reader that is behind it leaves the whole ring, which may be longer
//! than a processor's own cache: lines that have left the writer's before the reader comes to them
//! reach it four times as fast.
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

/// How many lines are used while the reader keeps up, and how close behind it then says that it is.
const SHORT: u64 = 1 << 12;
const CLOSE: u64 = 64;

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

    /// The tag of a record of `len` bytes at a position: its length and the lap, which is not that of
    /// the words that were there in the lap before; others [are looked at](Writer::clear_ahead).
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
    /// Where it is to be thought about where to go on: the beginning of the ring, or further ahead.
    bound: u64,
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
    /// Up to here, lines were written in the lap before. Others may hold a tag from so many laps ago
    /// that it is of this one again.
    fresh_until: u64,
    nonsense: bool,
}

impl Writer {
    pub fn new(memory: Region, lines: u32) -> Self {
        let ring = Ring::new(memory, lines);
        let (bound, fresh_until) = (ring.lines.min(SHORT), ring.lines);
        Self {
            ring,
            written: 0,
            bound,
            taken: 0,
            delivered: 0,
            told: (0, 0),
            strewn_until: 0,
            fresh_until,
            nonsense: false,
        }
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
        if lines > self.bound - self.written {
            self.turn(lines)?;
        }
        let end = self.written + lines;
        if end - self.taken > self.ring.lines {
            self.look();
            if end - self.taken > self.ring.lines {
                return Err(Full);
            }
        }
        Ok(self.written)
    }

    /// Goes back to the beginning if the reader is close behind, or the ring ends; and moves the bound.
    #[cold]
    fn turn(&mut self, lines: u64) -> Result<(), Full> {
        self.look();
        let (to_end, behind) = (self.ring.to_end(self.written), self.written - self.taken);
        let (ends, room) = (lines > to_end, self.ring.lines - behind);
        if to_end == self.ring.lines {
            self.fresh_until = self.written + to_end;
        } else if room >= to_end + lines && (ends || behind <= CLOSE) {
            self.skip(to_end);
        } else if ends {
            return Err(Full);
        }
        self.bound = self.written + self.ring.to_end(self.written).min(SHORT);
        Ok(())
    }

    /// Sends the reader to the beginning, by a tag of no length.
    fn skip(&mut self, to_end: u64) {
        let beginning = self.written + to_end;
        self.clear_ahead(beginning);
        let [a, b, c, d] = self.ring.tag(self.written, 0);
        let first = u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0]);
        self.ring.lines(self.written, 1)[0].store(first, Ordering::Release);
        self.fresh_until = self.written + self.ring.lines;
        self.written = beginning;
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

#[cfg(test)]
mod tests {
    use doorbell_core::wire::{Bth, Extensions, Opcode, Packet, Psn, Qpn};

    use super::*;

    /// Twice as long as what is used while the reader keeps up.
    const LINES: u32 = 2 * SHORT as u32;

    struct Both {
        memory: Region,
        writer: Writer,
        reader: Reader,
        sent: u32,
        taken: Taken,
    }

    /// Counts packets, which come in their order.
    #[derive(Default)]
    struct Taken(u32);

    impl Inbox for Taken {
        fn packet<P: Payload>(&mut self, _: Flow<'_>, packet: &Packet<P>) {
            assert_eq!(packet.headers.bth.psn(), Psn::new(self.0), "one after the other");
            self.0 += 1;
        }
        fn malformed(&mut self, why: Malformed) {
            panic!("{why}");
        }
        fn gone(&mut self, _: PathId) {}
    }

    impl Both {
        fn new() -> Self {
            let memory = Region::new(bytes(LINES));
            let [writer, reader] = [memory.clone(), memory.clone()];
            let (writer, reader) = (Writer::new(writer, LINES), Reader::new(reader, LINES));
            Self { memory, writer, reader, sent: 0, taken: Taken::default() }
        }

        /// Writes a record of a line, if there is room.
        fn push(&mut self) -> bool {
            let bth = Bth::new(Opcode::UcSendOnly, Qpn::GSI, Psn::new(self.sent));
            let headers = Headers { bth, extensions: Extensions::None };
            let pushed = self.writer.push(&headers, &[0_u8; 8][..]).is_ok();
            self.sent += u32::from(pushed);
            pushed
        }

        /// Reads all there is, and says so.
        fn drain(&mut self) {
            while self.reader.take(PathId(0), &mut self.taken) != Ok(None) {}
            self.reader.settle();
            self.reader.tell(0);
            assert_eq!(self.taken.0, self.sent, "all that was sent, and nothing else");
        }

        /// The lines of the ring in which anything was ever written.
        fn touched(&self) -> usize {
            let lines = self.memory.words()[RING..].chunks(LINE);
            lines.filter(|line| line[0].load(Ordering::Relaxed) != 0).count()
        }

        /// As if so many laps had passed since.
        fn pass(&mut self, laps: u64) {
            let ahead = laps * u64::from(LINES);
            let Self { writer, reader, .. } = self;
            for position in [&mut writer.written, &mut writer.bound, &mut writer.taken] {
                *position += ahead;
            }
            writer.fresh_until += ahead;
            reader.settled += ahead;
            reader.advance(ahead);
            reader.tell(0);
        }
    }

    #[test]
    fn a_reader_that_keeps_up_is_sent_round_the_same_lines() {
        let mut both = Both::new();
        for _ in 0..10 * LINES {
            assert!(both.push());
            both.drain();
        }
        // One more says to turn back.
        assert_eq!(both.touched(), SHORT as usize + 1);
    }

    #[test]
    fn a_reader_that_is_behind_is_left_the_whole_ring() {
        let mut both = Both::new();
        while both.push() {}
        assert_eq!(both.touched(), LINES as usize);
        both.drain();
        // And again, from the middle on.
        for _ in 0..SHORT {
            both.push();
        }
        while both.push() {}
        assert_eq!(both.sent, 2 * LINES);
        both.drain();
    }

    /// There are 65,535 laps, and then the first again.
    #[test]
    fn what_was_written_long_ago_is_not_taken_for_new() {
        let mut both = Both::new();
        while both.push() {}
        both.drain();
        // A lap of which half is left out, and the beginning of the next.
        for _ in 0..=SHORT {
            both.push();
            both.drain();
        }
        both.pass(u64::from(u16::MAX) - 2);
        for _ in 0..3 {
            for _ in 0..SHORT {
                both.push();
            }
            both.drain();
        }
    }
}

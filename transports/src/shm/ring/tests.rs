use std::collections::VecDeque;

use doorbell_core::encap::PathId;
use doorbell_core::nic::{Flow, Inbox};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{Bth, Extensions, Headers, Malformed, Opcode, Packet, Psn, Qpn};

use super::layout::*;
use super::*;
use doorbell_core::encap::shm_record;
use doorbell_core::memory::Region;
use std::sync::atomic::Ordering;

/// Twice as long as what is used while the reader keeps up.
const LINES: u32 = 2 * SHORT as u32;

const PLENTY: usize = 1 << 30;

/// A writer and a reader of one ring, in one process.
struct Both {
    memory: Region,
    writer: Writer,
    reader: Reader,
    sent: u32,
    taken: Taken,
}

/// Counts packets, which come in their order, and carry a word again and again.
#[derive(Default)]
struct Taken(u32);

impl Inbox for Taken {
    fn packet<P: Payload>(&mut self, _: Flow<'_>, packet: &Packet<P>) {
        assert_eq!(packet.headers.bth.psn(), Psn::new(self.0), "one after the other");
        let mut payload = vec![0; packet.payload.len()];
        packet.payload.copy_to(&mut payload);
        let word = payload[..payload.len().min(8)].to_vec();
        assert!(payload.chunks(8).all(|other| word.starts_with(other)), "nobody else wrote there");
        self.0 += 1;
    }
    fn malformed(&mut self, why: Malformed) {
        panic!("{why}");
    }
    fn gone(&mut self, _: PathId) {}
}

impl Both {
    fn new(lines: u32, spare: usize) -> Self {
        let memory = Region::new(bytes(lines));
        let [writer, reader] = [memory.clone(), memory.clone()];
        let (mut writer, reader) = (Writer::new(writer, lines), Reader::new(reader, lines));
        writer.may_take(Spare::new(spare));
        Self { memory, writer, reader, sent: 0, taken: Taken::default() }
    }

    /// Writes a record with such a payload, if there is room.
    fn push_with(&mut self, payload: &[u8]) -> bool {
        let bth = Bth::new(Opcode::UcSendOnly, Qpn::GSI, Psn::new(self.sent));
        let headers = Headers { bth, extensions: Extensions::None };
        let pushed = self.writer.push(&headers, payload).is_ok();
        self.sent += u32::from(pushed);
        pushed
    }

    /// Writes a record of a line, if there is room.
    fn push(&mut self) -> bool {
        self.push_with(&[0; 8])
    }

    /// Reads a record, if there is one.
    fn take(&mut self) -> Option<usize> {
        self.reader.take(PathId(0), &mut self.taken).expect("the writer is honest")
    }

    /// Tells the writer that all that was read is answered for.
    fn tell(&mut self) {
        self.reader.settle();
        self.reader.tell(0);
    }

    /// Reads all there is, and says so.
    fn drain(&mut self) {
        while self.take().is_some() {}
        self.tell();
        assert_eq!(self.taken.0, self.sent, "all that was sent, and nothing else");
    }

    /// The lines of the ring in which anything was ever written.
    fn touched(&self) -> usize {
        let lines = self.memory.words()[RING..].chunks(LINE);
        lines.filter(|line| line[0].load(Ordering::Relaxed) != 0).count()
    }

    /// Moves both ends on, as if so many laps had passed.
    fn pass(&mut self, laps: u64) {
        let ahead = laps * u64::from(LINES);
        self.writer.pass(ahead);
        self.reader.pass(ahead);
        self.reader.tell(0);
    }
}

#[test]
fn a_reader_that_keeps_up_is_sent_round_the_same_lines() {
    let mut both = Both::new(LINES, PLENTY);
    for _ in 0..10 * LINES {
        assert!(both.push());
        both.drain();
    }
    // One more line holds the tag that sends the reader back.
    assert_eq!(both.touched(), FIRST as usize + 1);
}

#[test]
fn a_reader_that_is_behind_is_left_the_whole_ring() {
    let mut both = Both::new(LINES, PLENTY);
    while both.push() {}
    assert_eq!(both.touched(), LINES as usize);
    // The writer fills the ring a second time, from the middle on.
    for _ in 0..SHORT {
        both.take().expect("one of the first half");
    }
    both.tell();
    while both.push() {}
    assert_eq!(both.sent, LINES + SHORT as u32);
    both.drain();
}

#[test]
fn a_line_is_claimed_early_only_if_it_is_read() {
    let mut both = Both::new(LINES, PLENTY);
    for _ in 0..3 {
        // Each record fills its line.
        while both.push_with(&[7; LINE * 8 - shm_record::TAG_LEN - Bth::LEN]) {
            both.writer.claim_early();
        }
        both.writer.claim_early();
        both.drain();
    }
    assert_eq!(both.sent, 3 * LINES);
}

#[test]
fn without_more_memory_a_ring_stays_short_and_goes_on() {
    let mut both = Both::new(LINES, SHORT as usize * LINE * 8 - 1);
    for _ in 0..10 {
        let before = both.sent;
        while both.push() {}
        assert_eq!(both.sent - before, SHORT as u32);
        both.drain();
    }
    assert_eq!(both.touched(), SHORT as usize + 1);
}

#[test]
fn rings_share_what_their_device_may_take_and_leave_it_to_the_next() {
    let spare = Spare::new(SHORT as usize * LINE * 8);
    let filled = || {
        let mut both = Both::new(LINES, 0);
        both.writer.may_take(spare.clone());
        while both.push() {}
        (both.sent, both)
    };
    let (first, both) = filled();
    assert_eq!((first, filled().0), (LINES, SHORT as u32));
    drop(both);
    assert_eq!(filled().0, LINES);
}

/// A ring has the promised room however long its records are, and however far the reader has come:
/// room for what may be under way, less what two of the longest records leave unused. All the while
/// payload looks like tags of this lap or the next ones.
#[test]
fn a_ring_always_has_the_room_that_is_promised() {
    let least = SHORT - CLOSE - 2 * lines_for(LONGEST);
    const SOME: usize = 3 * SHORT as usize * LINE * 8;
    let rings = [(1, 0), (2, 0), (2, PLENTY), (16, 0), (16, SOME), (16, PLENTY)];
    for (parts, spare) in rings {
        let mut both = Both::new(parts * SHORT as u32, spare);
        let mut under_way = VecDeque::new();
        let mut dice = Dice(1);
        let (mut full, mut away) = (0, false);
        for _ in 0..50_000 {
            let len = if dice.below(4) == 0 { dice.below(4097) } else { dice.below(64) };
            let lap = (both.writer.lap().wrapping_add(dice.below(4) as u16)).to_ne_bytes();
            let word = [lap[0], lap[1], dice.below(256) as u8, 0, 0, 0, 0, 0];
            let payload: Vec<u8> = word.into_iter().cycle().take(len).collect();
            both.writer.claim_early();
            let pushed = both.push_with(&payload);
            if pushed {
                under_way.push_back(lines_for(shm_record::TAG_LEN + Bth::LEN + len));
            } else {
                full += 1;
                let room = under_way.iter().sum::<u64>();
                assert!(room >= least, "{room} lines of {parts} parts, with {spare} to spare");
            }
            // The reader keeps up, except in phases when it reads nothing.
            away |= dice.below(10_000) == 0;
            let left = match pushed {
                true if away => continue,
                true if dice.below(20) == 0 => dice.below(8),
                true => continue,
                false => dice.below(512),
            };
            away = false;
            while under_way.len() > left {
                both.take().expect("what is under way");
                under_way.pop_front();
            }
            if left == 0 {
                assert_eq!(both.take(), None, "what was never sent");
            }
            both.tell();
        }
        assert!(full > 0, "it was full");
        both.drain();
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((self.0 >> 33) % end) as usize
    }
}

/// Laps are counted to 65,535, and then from the first again.
#[test]
fn what_was_written_long_ago_is_not_taken_for_new() {
    let mut both = Both::new(LINES, PLENTY);
    while both.push() {}
    both.drain();
    // The writer leaves out half of a lap, and begins the next one.
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

//! Writes into memory that is mapped, at the corners that random programs do not come to.

use std::time::Duration;

use doorbell_core::encap::{Full, Path, PathId};
use doorbell_core::memory::{Buf, Region};
use doorbell_core::nic::*;
use doorbell_core::payload::Payload;
use doorbell_core::wire::{Headers, Rkey};

use crate::reliable::common::{Setup, Two, at, lossless, outcomes, pattern, short};

/// Of which more is written than in one turn.
const LONG: usize = 100_000;

/// Two nodes, of which the first has mapped memory of the second's.
struct Mapped {
    two: Two,
    region: Region,
    place: Registration,
    id: MappingId,
}

impl Mapped {
    fn of(setup: &Setup) -> Self {
        let mut two = setup.connected(|_, _| {});
        let (region, place) = two.b.open(&mut two.fabric, 2 * LONG);
        let id = map(&mut two, &region, &place);
        // So that what is posted is taken up at once by who has the NIC in hand.
        two.fabric.turn(two.a.node);
        Self { two, region, place, id }
    }

    fn long(&self, id: u64) -> WorkRequest {
        let data = Memory::Buf(Buf::from(pattern(LONG)));
        WorkRequest::write(id, self.place.address, self.place.rkey, data)
    }

    /// A write of a word to a place of its own.
    fn word(&self, id: u64) -> WorkRequest {
        self.word_by(id, self.place.rkey)
    }

    fn word_by(&self, id: u64, rkey: Rkey) -> WorkRequest {
        let data = Memory::Buf(Buf::from(pattern(8)));
        WorkRequest::write(id, at(&self.place, 8 * id), rkey, data)
    }

    /// Posts a long write with the NIC in hand: the first of it is written.
    fn begin(&mut self, id: u64) {
        let request = self.long(id);
        let Two { a, fabric, .. } = &mut self.two;
        a.send.post(request).unwrap();
        fabric.nic(a.node).posted(&a.send, &mut NoRoom);
        assert!(!self.is_there(), "all of it was written at once");
    }

    fn unmap(&mut self) {
        let nic = self.two.fabric.nic(self.two.a.node);
        nic.unmap(self.id).expect("it was mapped");
    }

    fn is_there(&self) -> bool {
        let mut found = vec![0; LONG];
        self.region.read_at(0, &mut found).unwrap();
        found == pattern(LONG)
    }

    fn written_here(&mut self) -> u64 {
        self.two.counters().0.written_here
    }
}

fn map(two: &mut Two, region: &Region, place: &Registration) -> MappingId {
    let link = PathId(two.b.node as u32);
    two.fabric.nic(two.a.node).map(link, place.rkey, place.address, region.clone())
}

/// A device that takes nothing just now.
struct NoRoom;

impl Outbox for NoRoom {
    fn push(&mut self, _: &Path, _: Headers, _: impl Payload) -> Result<u64, Full> {
        Err(Full)
    }

    fn flush(&mut self) {}

    fn delivered(&mut self, _: PathId) -> u64 {
        0
    }
}

/// What was left of it was once sent as the rest of a message that nobody had begun.
#[test]
fn what_is_unmapped_in_the_middle_of_a_write_is_all_sent() {
    let mut mapped = Mapped::of(&lossless());
    mapped.begin(0);
    mapped.unmap();
    let (at_a, _) = mapped.two.run(1, 0);
    assert_eq!(outcomes(&at_a), [(0, Ok(Done::Written))]);
    assert!(mapped.is_there());
    assert_eq!(mapped.written_here(), 0);
}

#[test]
fn a_receiver_that_is_not_ready_sets_a_write_back_that_is_mapped_or_not_any_more() {
    for unmaps in [false, true] {
        let mut mapped = Mapped::of(&lossless());
        mapped.two.a.post(short(0));
        mapped.two.fabric.turn(mapped.two.a.node);
        mapped.begin(1);
        mapped.two.a.send.post(short(2)).unwrap();
        if unmaps {
            mapped.unmap();
        }
        mapped.two.run_for(Duration::from_micros(50));
        mapped.two.b.receives(8, 8);
        let (at_a, _) = mapped.two.run(3, 2);
        let done = [(0, Ok(Done::Sent)), (1, Ok(Done::Written)), (2, Ok(Done::Sent))];
        assert_eq!(outcomes(&at_a), done);
        assert!(mapped.is_there());
        assert_eq!(mapped.written_here(), u64::from(!unmaps));
        // Each that is begun from here on has a slot for its completion.
        mapped.id = map(&mut mapped.two, &mapped.region, &mapped.place);
        for id in 3..40 {
            mapped.two.a.post(mapped.long(id));
            let (at_a, _) = mapped.two.run(1, 0);
            assert_eq!(outcomes(&at_a), [(id, Ok(Done::Written))]);
        }
    }
}

/// They are behind a send that is refused, and set back with that.
#[test]
fn a_row_that_is_set_back_is_not_written_again() {
    let mut mapped = Mapped::of(&lossless());
    let words = [1, 2, 3].map(|id| mapped.word(id));
    let Mapped { two, region, .. } = &mut mapped;
    two.a.send.post(short(0)).unwrap();
    words.into_iter().for_each(|word| two.a.send.post(word).unwrap());
    two.a.post(short(4));
    two.run_for(Duration::from_micros(50));
    // What is there by now is changed by its owner.
    region.write_at(8, &[7; 24]).unwrap();
    two.b.receives(8, 8);
    let (at_a, _) = two.run(5, 2);
    assert!(outcomes(&at_a).iter().all(|(_, outcome)| outcome.is_ok()));
    let mut there = vec![0; 24];
    region.read_at(8, &mut there).unwrap();
    assert_eq!(there, [7; 24]);
    assert_eq!(mapped.written_here(), 3);
}

#[test]
fn in_a_row_of_writes_one_by_another_key_is_for_the_peer_to_refuse() {
    let mut mapped = Mapped::of(&lossless());
    let wrong = Rkey(mapped.place.rkey.0 ^ 1 << 31);
    let words = [mapped.word(0), mapped.word_by(1, wrong), mapped.word(2)];
    let two = &mut mapped.two;
    words.into_iter().for_each(|word| two.a.send.post(word).unwrap());
    two.a.send.ring();
    let (found, _) = two.run(3, 0);
    let (broke, flushed) = (Failure::Broke(Cause::PeerAccess), Failure::Flushed(Cause::PeerAccess));
    assert_eq!(outcomes(&found), [(0, Ok(Done::Written)), (1, Err(broke)), (2, Err(flushed))]);
    assert_eq!(mapped.region.load(8), Ok(0));
}

/// The peer does not count them, and tells by its count how many receives it has.
#[test]
fn rows_do_not_hold_up_sends_for_which_there_are_receives() {
    const SENDS: u64 = 8;
    let mut mapped = Mapped::of(&lossless());
    mapped.two.b.receives(8, SENDS as usize + 1);
    mapped.two.fabric.turn(mapped.two.b.node);
    // Its answer brings the peer's count of receives.
    let read = mapped.two.a.open(&mut mapped.two.fabric, 8).1.segment(0, 8);
    mapped.two.a.post(WorkRequest::read(0, mapped.place.address, mapped.place.rkey, read));
    mapped.two.run(1, 0);
    let words: Vec<_> = (1..20).map(|id| mapped.word(id)).collect();
    let two = &mut mapped.two;
    words.into_iter().for_each(|word| two.a.send.post(word).unwrap());
    (20..20 + SENDS).for_each(|id| two.a.send.post(short(id)).unwrap());
    let sent = two.counters().0.sent;
    two.a.send.ring();
    two.fabric.turn(two.a.node);
    assert_eq!(two.counters().0.sent, sent + SENDS, "all leave at once");
    two.run(19 + SENDS as usize, SENDS as usize);
}

/// The last that is begun was once told of only when the rest had looked for room and found none.
#[test]
fn unsignalled_ones_do_not_keep_each_other_waiting() {
    const COUNT: u64 = 20;
    let mut mapped = Mapped::of(&Setup { capacity: 4, ..lossless() });
    let Mapped { two, place, .. } = &mut mapped;
    for id in 0..COUNT {
        let data = Memory::Buf(Buf::from(pattern(8)));
        let write = WorkRequest::write(id, at(place, 8 * id), place.rkey, data);
        let last = id + 1 == COUNT;
        two.a.send.post(if last { write } else { write.unsignalled() }).unwrap();
    }
    two.a.send.ring();
    let before = two.fabric.now();
    let (found, _) = two.run(1, 0);
    assert_eq!(outcomes(&found), [(COUNT - 1, Ok(Done::Written))]);
    assert_eq!(two.fabric.now(), before, "nothing is waited for");
    assert_eq!(mapped.written_here(), COUNT);
}

#[test]
fn what_is_begun_ends_before_a_queue_pair_has_drained_and_nothing_begins_then() {
    let mut mapped = Mapped::of(&lossless());
    mapped.begin(1);
    let (node, qpn) = (mapped.two.a.node, mapped.two.a.qpn);
    mapped.two.fabric.nic(node).change(qpn, Change::Drain).unwrap();
    mapped.two.a.post(mapped.long(2));
    let (found, _) = mapped.two.run(1, 0);
    assert_eq!(outcomes(&found), [(1, Ok(Done::Written))]);
    assert_eq!(mapped.two.fabric.nic(node).event(), Some(Event::Drained(qpn)));
    mapped.two.fabric.nic(node).change(qpn, Change::Resume).unwrap();
    let (found, _) = mapped.two.run(1, 0);
    assert_eq!(outcomes(&found), [(2, Ok(Done::Written))]);
}

/// Where packets may be lost, nothing but an acknowledgement says what is complete.
#[test]
fn over_a_device_that_can_lose_everything_is_sent() {
    let mut mapped = Mapped::of(&Setup::default());
    mapped.two.b.receives(1, 8);
    mapped.two.a.post(mapped.long(0));
    mapped.two.a.post(short(1));
    let (found, _) = mapped.two.run(2, 1);
    assert_eq!(outcomes(&found), [(0, Ok(Done::Written)), (1, Ok(Done::Sent))]);
    assert!(mapped.is_there());
    assert_eq!(mapped.written_here(), 0);
}

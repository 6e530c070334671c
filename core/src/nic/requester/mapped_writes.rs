//! Writes into [mapped](crate::nic::Nic::map) memory, which are carried out here, without a packet.
//!
//! Such a write has no sequence numbers, so it is neither acknowledged nor sent again. It is
//! complete when all requests before it are.

use std::ops::Range;

use crate::memory::Region;
use crate::nic::config::queue_pair_state::State;
use crate::nic::protection::key_table::KeyTable;
use crate::nic::protection::mappings::Mapping;
use crate::nic::protection::segment::Domain;
use crate::nic::queues::completion_slots::{CompletionSlots, in_use};
use crate::nic::queues::posted::Posted;
use crate::nic::requests::failure::Cause;
use crate::nic::requests::gather::gather;
use crate::nic::requests::memory::Data;
use crate::nic::requests::plain::Plain;
use crate::nic::requests::work_request::{Attachment, Operation};
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::nic::state::requester::Requester;
use crate::nic::state::turns::{NotSent, RequesterTurn};
use crate::payload::Payload;
use crate::planted::{Bug, planted};
use crate::wire::{PathMtu, Psn, Rkey, Service};

/// How many short writes in a row are worth waiting for.
const SEVERAL: usize = 8;

/// Copies a part of a write's data to its place in a region, where the data begins at `start`.
#[inline(always)]
fn copy(
    data: &Data,
    part: Range<usize>,
    keys: &KeyTable,
    domain: Domain,
    region: &Region,
    start: usize,
) -> Result<(), Cause> {
    let (words, at) = (region.words(), start + part.start);
    match data.bytes() {
        Some(bytes) => (&bytes[part]).copy_to_words(words, at),
        None => gather(keys, domain, data.segments(), part)?.copy_to_words(words, at),
    }
    Ok(())
}

/// Whether the packet before `beyond` is one of those from `oldest` on, before `unsent`. It may be
/// one from so long ago that its number seems to be yet to come.
fn is_among(beyond: Psn, oldest: Psn, top: Psn) -> bool {
    (1..=top.distance_from(oldest)).contains(&beyond.distance_from(oldest))
}

impl Requester {
    /// Whether a request at the cursor was carried out here, in part or wholly.
    #[inline(always)]
    pub(crate) fn is_written_locally(&self, posted: &Posted) -> bool {
        posted.written_locally.get() || self.writes_locally
    }

    /// Whether the request at the cursor is being carried out here.
    fn is_writing_locally(&self) -> bool {
        self.writes_locally && self.cursor + 1 == self.begun
    }

    /// Whether a packet is under way that accesses the peer's memory.
    fn has_memory_access_under_way(&self) -> bool {
        is_among(self.last_memory_psn, self.oldest_psn, self.unsent_psn)
            && !planted(Bug::OvertakesReads)
    }

    /// Whether several plain writes follow each other from the cursor on.
    fn has_writes_at_cursor(&self) -> bool {
        let writes = self.work.seen_range(self.cursor..self.cursor + SEVERAL);
        self.work.seen_behind(self.cursor) >= SEVERAL
            && writes.take(SEVERAL).all(|posted| posted.plain == Some(Plain::Write))
    }

    /// Carries out the plain writes at the cursor that go to one mapping, by its key `rkey`, and
    /// are at most one packet long. The write at the cursor is one of these. Returns how many were
    /// carried out.
    fn write_batch(
        &mut self,
        most: usize,
        promised: &mut usize,
        completions: &mut CompletionSlots,
        mapping: &Mapping,
        rkey: Rkey,
        mtu: usize,
    ) -> Result<usize, RequesterTurn> {
        let most = most.min(self.work.seen_behind(self.cursor));
        if *promised < most {
            *promised += completions.reserve_up_to(most - *promised);
        }
        if *promised == 0 {
            return Err(RequesterTurn::Starved);
        }
        let written = self.copy_batch(most.min(*promised), mapping, rkey, mtu);
        let (ticket, next) = (self.ticket_before(), self.next_psn);
        for posted in self.work.seen_range(self.cursor..self.cursor + written) {
            posted.written_locally.set(true);
            posted.sent(ticket, next);
        }
        *promised -= written;
        self.local_write_done |= self.cursor == 0;
        (self.cursor, self.begun) = (self.cursor + written, self.begun + written);
        // The peer counts no message.
        self.msn_offset = self.msn_offset.wrapping_sub(written as u32);
        Ok(written)
    }

    /// Copies the data of the writes, and returns how many.
    ///
    /// The data goes to cache lines that the peer has read, each of which has to be fetched from
    /// there. The processor fetches many at a time, as long as little else is stored between them:
    /// so nothing is noted here.
    #[inline(always)]
    fn copy_batch(&self, most: usize, mapping: &Mapping, batch_rkey: Rkey, mtu: usize) -> usize {
        let words = mapping.region().words();
        let mut written = 0;
        for posted in self.work.seen_range(self.cursor..self.cursor + most) {
            let (Some(Plain::Write), &Operation::Write { address, rkey }) =
                (posted.plain, &posted.request.operation)
            else {
                break;
            };
            let Some(bytes) = posted.request.data.bytes().filter(|bytes| bytes.len() <= mtu) else {
                break;
            };
            let Some(at) = mapping.place(address, posted.len).filter(|_| rkey == batch_rkey) else {
                break;
            };
            bytes.copy_to_words(words, at);
            written += 1;
        }
        written
    }

    /// The ticket of the request before the cursor: when that is delivered, a write that is carried
    /// out at the cursor is complete.
    #[inline]
    fn ticket_before(&self) -> u64 {
        let before = self.cursor.checked_sub(1).and_then(|at| self.work.seen(at));
        before.map_or(0, |posted| posted.ticket.get())
    }

    /// Copies at most so many packets' worth of the write at the cursor to its place in a region,
    /// where the write begins at `start`. Returns how many packets' worth.
    fn copy_at_cursor(
        &self,
        most: usize,
        mtu: PathMtu,
        keys: &KeyTable,
        domain: Domain,
        region: &Region,
        start: usize,
    ) -> Result<u32, Cause> {
        let Some(posted) = self.work.seen(self.cursor) else { return Ok(0) };
        let (packet, bytes, len) = (self.cursor_packet, mtu.bytes() as u32, posted.len);
        let packets = (mtu.packets(len) - packet).min(most as u32);
        let part = (packet * bytes) as usize..((packet + packets) * bytes).min(len) as usize;
        copy(&posted.request.data, part, keys, domain, region, start)?;
        Ok(packets)
    }

    /// Notes that the write at the cursor was carried out.
    fn finish_local_write(&mut self) {
        let ticket = self.ticket_before();
        if let Some(posted) = self.work.seen(self.cursor) {
            posted.written_locally.set(true);
            posted.sent(ticket, self.next_psn);
        }
        (self.cursor, self.cursor_packet, self.writes_locally) = (self.cursor + 1, 0, false);
        self.local_write_done |= self.cursor == 1;
        // The peer counts no message.
        self.msn_offset = self.msn_offset.wrapping_sub(1);
    }
}

impl QueuePair {
    /// Carries out the write at the cursor, and others behind it if they are short, or as many
    /// packets' worth of it as may be now. Returns how many packets' worth, or 0 if the write is to
    /// be sent.
    ///
    /// The write must not overtake anything that accesses memory. It waits for that if it is worth
    /// it: if it is long, or more writes stand behind it. Otherwise it is sent behind that.
    #[inline(never)]
    pub(crate) fn write_mapped(
        &mut self,
        most: usize,
        promised: &mut usize,
        common: &mut Common,
    ) -> Result<usize, RequesterTurn> {
        let (r, mtu) = (&mut self.requester, self.mtu);
        let (Some(path), Some(posted)) = (&self.path, r.work.seen(r.cursor)) else {
            return Err(RequesterTurn::Idle);
        };
        if posted.written_locally.get() {
            // A write that was carried out is not sent again.
            (r.cursor, r.cursor_packet) = (r.cursor + 1, 0);
            return Ok(1);
        }
        let (request, len, writing) = (&posted.request, posted.len, r.is_writing_locally());
        let Operation::Write { address, rkey } = request.operation else { return Ok(0) };
        let was_sent = r.cursor < r.begun && !writing;
        // Only on a lossless device do tickets say when the write is complete.
        let plain = request.attached == Attachment::Nothing
            && self.shared.service == Service::Rc
            && r.lossless;
        if was_sent || !plain {
            return Ok(0);
        }
        let mapping = common.mapped.find(path.id(), rkey);
        let target = mapping.and_then(|mapping| Some((mapping, mapping.place(address, len)?)));
        let Some((mapping, start)) = target else {
            // The memory was mapped when the write began, and is not any more: all of it is sent.
            if writing {
                (r.writes_locally, r.cursor_packet) = (false, 0);
            }
            return Ok(0);
        };
        if !writing {
            if r.has_memory_access_under_way() {
                let worth_it = len > mtu.bytes() as u32 || r.has_writes_at_cursor();
                return if worth_it { Err(RequesterTurn::Idle) } else { Ok(0) };
            }
            if self.state == State::Draining {
                return Err(RequesterTurn::Idle);
            }
            let completions = in_use(&mut common.completions, self.send_completions);
            if posted.plain == Some(Plain::Write) && len <= mtu.bytes() as u32 {
                let mtu = mtu.bytes();
                let written = r.write_batch(most, promised, completions, mapping, rkey, mtu)?;
                common.counters.written_here += written as u64;
                return Ok(written);
            }
            r.take_completion_slot(promised, completions)?;
            (r.begun, r.writes_locally) = (r.begun + 1, true);
        }
        let (keys, region) = (&common.keys, mapping.region());
        let packets = match r.copy_at_cursor(most, mtu, keys, self.domain, region, start) {
            Ok(packets) => packets,
            Err(cause) => return Err(self.end_turn(NotSent::Invalid(cause), common)),
        };
        r.cursor_packet += packets;
        if r.cursor_packet == mtu.packets(len) || planted(Bug::EndsMappedWritesEarly) {
            r.finish_local_write();
            common.counters.written_here += 1;
        }
        Ok(packets as usize)
    }

    /// Completes the writes that were carried out in a turn with no request before them, and
    /// returns how the turn ends.
    #[inline(never)]
    pub(crate) fn complete_local_writes(
        &mut self,
        turn: RequesterTurn,
        common: &mut Common,
    ) -> RequesterTurn {
        self.requester.local_write_done = false;
        self.complete_delivered(0, common);
        self.continue_after_progress(common);
        // The requests behind may have waited for just these writes, or for room in the completion
        // queue.
        match turn {
            RequesterTurn::Starved => RequesterTurn::More,
            RequesterTurn::Idle if self.requester.at_cursor().1.is_some() => RequesterTurn::More,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_number_of_long_ago_is_not_taken_for_one_under_way() {
        let psn = |number: i64| Psn::new(number.rem_euclid(1 << 24) as u32);
        for oldest in [0, 5, 1 << 23, (1 << 24) - 1] {
            let is = |beyond: i64| is_among(psn(oldest + beyond), psn(oldest), psn(oldest + 10));
            assert_eq!([0, 1, 10, 11].map(is), [false, true, true, false], "{oldest}");
            // All that went before, up to as much as numbers can tell, and beyond.
            assert!(!(11..1 << 24).step_by(4093).any(is), "{oldest}");
        }
    }
}

//! Writes into memory that is [mapped](crate::nic::mapped): they are carried out here, and done.
//!
//! Such a write has no packets, so it is no part of what is acknowledged or sent again. But it is
//! complete when all before it is, as anything is.

use std::ops::Range;

use crate::memory::Region;
use crate::nic::config::state::State;
use crate::nic::protection::key_table::KeyTable;
use crate::nic::protection::mappings::Mapping;
use crate::nic::protection::segment::Domain;
use crate::nic::queues::completions::{Completions, in_use};
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
use crate::wire::{Psn, Rkey, Service};

/// So many short ones in a row are worth waiting for.
const SEVERAL: usize = 8;

/// Copies a part of what is written, to where that begins in a region.
#[inline(always)]
fn copy(
    data: &Data,
    part: Range<usize>,
    (keys, domain): (&KeyTable, Domain),
    (region, start): (&Region, usize),
) -> Result<(), Cause> {
    let (words, at) = (region.words(), start + part.start);
    match data.bytes() {
        Some(bytes) => (&bytes[part]).copy_to_words(words, at),
        None => gather(keys, domain, data.segments(), part)?.copy_to_words(words, at),
    }
    Ok(())
}

/// Whether the packet before `beyond` is among those from `oldest` on, before `top`. It may be one
/// from so long ago that its number seems to be yet to come.
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

    /// Whether something is under way that is about the peer's memory.
    fn has_memory_access_under_way(&self) -> bool {
        is_among(self.last_memory_psn, self.oldest_psn, self.unsent_psn)
            && !planted(Bug::OvertakesReads)
    }

    /// Whether several plain writes follow each other from the cursor on.
    fn has_writes_at_cursor(&self) -> bool {
        let writes = self.work.seen_part(self.cursor..self.cursor + SEVERAL);
        self.work.seen_behind(self.cursor) >= SEVERAL
            && writes.take(SEVERAL).all(|posted| posted.plain == Some(Plain::Write))
    }

    /// Carries out the plain writes at the cursor that are about one mapping, the key of which is
    /// given, and a packet each at the most: the first is one. How many were.
    fn write_batch(
        &mut self,
        most: usize,
        promised: &mut usize,
        completions: &mut Completions,
        (mapping, rkey, mtu): (&Mapping, Rkey, usize),
    ) -> Result<usize, RequesterTurn> {
        let most = most.min(self.work.seen_behind(self.cursor));
        if *promised < most {
            *promised += completions.reserve_up_to(most - *promised);
        }
        if *promised == 0 {
            return Err(RequesterTurn::Starved);
        }
        let written = self.copy_batch(most.min(*promised), (mapping, rkey, mtu));
        let (ticket, next) = (self.ticket_before(), self.next_psn);
        for posted in self.work.seen_part(self.cursor..self.cursor + written) {
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

    /// Copies what they write.
    ///
    /// It goes to lines that the peer has read, and each has to be got from there. The processor
    /// does so with many at a time, as long as little else is stored between them: so nothing is
    /// noted here.
    #[inline(always)]
    fn copy_batch(&self, most: usize, (mapping, of_all, mtu): (&Mapping, Rkey, usize)) -> usize {
        let words = mapping.region().words();
        let mut written = 0;
        for posted in self.work.seen_part(self.cursor..self.cursor + most) {
            let (Some(Plain::Write), &Operation::Write { address, rkey }) =
                (posted.plain, &posted.request.operation)
            else {
                break;
            };
            let Some(bytes) = posted.request.data.bytes().filter(|bytes| bytes.len() <= mtu) else {
                break;
            };
            let Some(at) = mapping.place(address, posted.len).filter(|_| rkey == of_all) else {
                break;
            };
            bytes.copy_to_words(words, at);
            written += 1;
        }
        written
    }

    /// The ticket of the request before the cursor, with which what is carried out there is
    /// complete.
    #[inline]
    fn ticket_before(&self) -> u64 {
        let before = self.cursor.checked_sub(1).and_then(|at| self.work.seen(at));
        before.map_or(0, |posted| posted.ticket.get())
    }

    /// The write at the cursor is carried out.
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
    /// packets' worth of it as may be now. How many; none, if it is to be sent.
    ///
    /// It must not overtake anything that is about memory, and waits for that if it is worth it: if
    /// it is long, or more of them stand behind it. Else it is sent behind it.
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
            // It is not sent again.
            (r.cursor, r.cursor_packet) = (r.cursor + 1, 0);
            return Ok(1);
        }
        let (request, len, placing) = (&posted.request, posted.len, r.is_writing_locally());
        let Operation::Write { address, rkey } = request.operation else { return Ok(0) };
        let was_sent = r.cursor < r.begun && !placing;
        // Tickets say when it is complete.
        let plain = request.attached == Attachment::Nothing
            && self.shared.service == Service::Rc
            && r.lossless;
        if was_sent || !plain {
            return Ok(0);
        }
        let mapping = common.mapped.find(path.id(), rkey);
        let place = mapping.and_then(|mapping| Some((mapping, mapping.place(address, len)?)));
        let Some((mapping, start)) = place else {
            // What was mapped when it began is not any more: all of it is sent.
            if placing {
                (r.writes_locally, r.cursor_packet) = (false, 0);
            }
            return Ok(0);
        };
        if !placing {
            if r.has_memory_access_under_way() {
                let worth_it = len > mtu.bytes() as u32 || r.has_writes_at_cursor();
                return if worth_it { Err(RequesterTurn::Idle) } else { Ok(0) };
            }
            if self.state == State::Draining {
                return Err(RequesterTurn::Idle);
            }
            let completions = in_use(&mut common.completions, self.send_completions);
            if posted.plain == Some(Plain::Write) && len <= mtu.bytes() as u32 {
                let row = (mapping, rkey, mtu.bytes());
                let written = r.write_batch(most, promised, completions, row)?;
                common.counters.written_here += written as u64;
                return Ok(written);
            }
            r.take_completion_slot(promised, completions)?;
            (r.begun, r.writes_locally) = (r.begun + 1, true);
        }
        let (packet, bytes) = (r.cursor_packet, mtu.bytes() as u32);
        let packets = (mtu.packets(len) - packet).min(most as u32);
        let part = (packet * bytes) as usize..((packet + packets) * bytes).min(len) as usize;
        let copied =
            copy(&request.data, part, (&common.keys, self.domain), (mapping.region(), start));
        if let Err(cause) = copied {
            return Err(self.end_turn(NotSent::Invalid(cause), common));
        }
        r.cursor_packet += packets;
        if r.cursor_packet == mtu.packets(len) || planted(Bug::EndsMappedWritesEarly) {
            r.finish_local_write();
            common.counters.written_here += 1;
        }
        Ok(packets as usize)
    }

    /// Completes what was carried out in a turn with nothing before it, and says how the turn ends.
    #[inline(never)]
    pub(crate) fn complete_local_writes(
        &mut self,
        turn: RequesterTurn,
        common: &mut Common,
    ) -> RequesterTurn {
        self.requester.local_write_done = false;
        self.complete_delivered(0, common);
        self.continue_after_progress(common);
        // What stands behind may have waited for just that, or for room where it is told of.
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
    fn a_number_of_long_ago_is_not_taken_for_one_under_way() {
        let psn = |number: i64| Psn::new(number.rem_euclid(1 << 24) as u32);
        for oldest in [0, 5, 1 << 23, (1 << 24) - 1] {
            let is = |beyond: i64| is_among(psn(oldest + beyond), psn(oldest), psn(oldest + 10));
            assert_eq!([0, 1, 10, 11].map(is), [false, true, true, false], "{oldest}");
            // All that went before, up to as much as numbers can tell, and beyond.
            assert!(!(11..1 << 24).step_by(4093).any(is), "{oldest}");
        }
    }
}

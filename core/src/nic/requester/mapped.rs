//! Writes into memory that is [mapped](crate::nic::mapped): they are carried out here, and done.
//!
//! Such a write has no packets, so it is no part of what is acknowledged or sent again. But it is
//! complete when all before it is, as anything is.

use crate::nic::common::{Common, in_use};
use crate::nic::gather::gather;
use crate::nic::pair::QueuePair;
use crate::nic::states::State;
use crate::nic::work::{Attachment, Operation, Plain, WorkRequest};
use crate::payload::Payload;
use crate::planted::{Bug, planted};
use crate::wire::Service;

use super::{Requester, Stop, Turn};

/// So many short ones in a row are worth waiting for.
const SEVERAL: usize = 8;

impl WorkRequest {
    /// Whether it is about the peer's memory, and not its receives alone.
    #[inline(always)]
    pub(super) fn reaches_memory(&self) -> bool {
        !matches!(self.operation, Operation::Send)
            || matches!(self.attached, Attachment::Invalidate(_))
    }
}

impl Requester {
    /// Whether something is under way that is about the peer's memory.
    fn reaches_memory(&self) -> bool {
        self.reaches.distance_from(self.oldest) > 0 && !planted(Bug::OvertakesReads)
    }

    /// Whether several plain writes follow each other from the cursor on.
    fn has_writes_at_cursor(&self) -> bool {
        let writes = self.work.seen_part(self.at..self.at + SEVERAL);
        self.work.seen_behind(self.at) >= SEVERAL
            && writes.take(SEVERAL).all(|posted| posted.plain == Some(Plain::Write))
    }

    /// The write at the cursor is carried out.
    fn placed(&mut self) {
        // It is complete with the one before it.
        let before = self.at.checked_sub(1).and_then(|at| self.work.seen(at));
        let ticket = before.map_or(0, |posted| posted.ticket.get());
        if let Some(posted) = self.work.seen(self.at) {
            posted.placed.set(true);
            posted.sent(ticket, self.next);
        }
        (self.at, self.packet, self.places) = (self.at + 1, 0, false);
        self.ready |= self.at == 1;
        // The peer counts no message.
        self.parts = self.parts.wrapping_sub(1);
    }
}

impl QueuePair {
    /// Carries out the write at the cursor, or as many packets' worth of it as may be now. How many; none,
    /// if it is to be sent.
    ///
    /// It must not overtake anything that is about memory, and waits for that if it is worth it: if it is
    /// long, or more of them stand behind it. Else it is sent behind it.
    #[inline(never)]
    pub(super) fn write_mapped(
        &mut self,
        most: usize,
        promised: &mut usize,
        common: &mut Common,
    ) -> Result<usize, Turn> {
        let (r, mtu) = (&mut self.requester, self.mtu);
        let (Some(path), Some(posted)) = (&self.path, r.work.seen(r.at)) else {
            return Err(Turn::Idle);
        };
        if posted.placed.get() {
            // It is not sent again.
            (r.at, r.packet) = (r.at + 1, 0);
            return Ok(1);
        }
        let (request, len) = (&posted.request, posted.len);
        let Operation::Write { address, rkey } = request.operation else { return Ok(0) };
        let was_sent = r.at < r.begun && !r.places;
        let plain = request.attached == Attachment::Nothing && self.shared.service == Service::Rc;
        if was_sent || !plain {
            return Ok(0);
        }
        let Some((region, start)) = common.mapped.find(path.id(), rkey, address, len) else {
            // What was mapped when it began is not any more: all of it is sent.
            if std::mem::take(&mut r.places) {
                r.packet = 0;
            }
            return Ok(0);
        };
        if !r.places {
            if r.reaches_memory() {
                let worth_it = len > mtu.bytes() as u32 || r.has_writes_at_cursor();
                return if worth_it { Err(Turn::Idle) } else { Ok(0) };
            }
            if self.state == State::Draining {
                return Err(Turn::Idle);
            }
            r.begin(promised, in_use(&mut common.completions, self.send_completions))?;
            (r.begun, r.places) = (r.begun + 1, true);
        }
        let (packet, bytes) = (r.packet, mtu.bytes() as u32);
        let packets = (mtu.packets(len) - packet).min(most as u32);
        let from = (packet * bytes) as usize;
        let range = from..((packet + packets) * bytes).min(len) as usize;
        let (words, at) = (region.words(), start + from);
        match request.data.bytes() {
            Some(bytes) => (&bytes[range]).copy_to_words(words, at),
            None => match gather(&common.keys, self.domain, request.data.segments(), range) {
                Ok(payload) => payload.copy_to_words(words, at),
                Err(cause) => return Err(self.stopped(Stop::Refused(cause), common)),
            },
        }
        r.packet += packets;
        if r.packet == mtu.packets(len) || planted(Bug::EndsMappedWritesEarly) {
            r.placed();
            common.counters.written_here += 1;
        }
        Ok(packets as usize)
    }

    /// Completes what was carried out in a turn with nothing before it, and says how the turn ends.
    #[inline(never)]
    pub(super) fn complete_placed(&mut self, turn: Turn, common: &mut Common) -> Turn {
        self.requester.ready = false;
        self.complete_delivered(0, common);
        self.progressed(common);
        // What stands behind may have waited for just that.
        match turn {
            Turn::Idle if self.requester.at_cursor().1.is_some() => Turn::More,
            other => other,
        }
    }
}

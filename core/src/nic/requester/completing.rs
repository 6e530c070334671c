//! Completing: how requests leave the work queue, and their completions are made.

use crate::nic::queues::completion_slots::in_use;
use crate::nic::queues::posted::Posted;
use crate::nic::requests::completion::{Completion, Done};
use crate::nic::requests::memory::{Data, Memory};
use crate::nic::requests::plain::Plain;
use crate::nic::requests::work_request::Attachment;
use crate::nic::ring::{Next, WriteBatch};
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::wire::Qpn;

impl Posted {
    /// Makes the completion of a request that succeeded, and brought so many bytes.
    #[inline(always)]
    fn completion(&self, qpn: Qpn, done: Done, len: u32, memory: Memory) -> Completion {
        let (id, attached) = (self.request.id, Attachment::Nothing);
        Completion { id, qpn, outcome: Ok(done), len, attached, memory }
    }

    /// Makes the completion of a request whose memory goes back; `before` is what an atomic
    /// operation found.
    #[inline(never)]
    fn complete(&mut self, qpn: Qpn, before: u64) -> Completion {
        let done = self.request.operation.done(before);
        let len = if done == Done::Read { self.len } else { 0 };
        let mut memory = self.request.data.take_memory();
        if let (Memory::Buf(buf), Done::Read) = (&mut memory, done) {
            // The buffer was filled, so there is room.
            let _ = buf.set_len(len as usize);
        }
        self.completion(qpn, done, len, memory)
    }
}

impl QueuePair {
    /// Completes the request at the head of the work queue; `before` is what an atomic operation
    /// found.
    pub(crate) fn complete_head(&mut self, before: u64, common: &mut Common) {
        let (qpn, r) = (self.number(), &mut self.requester);
        let queue = in_use(&mut common.completions, self.send_completions);
        let (mut slots, mut work) = (queue.redeem_several(), r.work.read_batch(1));
        let Some(posted) = work.next() else { return };
        complete::<true>(posted, qpn, before, &mut slots);
        let (count, filled) = (work.finish(), slots.finish());
        queue.redeemed(count, filled);
        r.count_completed(count);
        common.counters.completed += 1;
        if queue.needs_settling() {
            common.settle(self.send_completions);
        }
    }
}

/// Completes a request that needs no response, and goes past it. Its memory is taken out before.
/// The caller then calls [`Requester::count_completed`](crate::nic::state::requester::Requester::count_completed) and
/// [`CompletionSlots::redeemed`](crate::nic::queues::completion_slots::CompletionSlots::redeemed), and settles
/// the completion queue.
#[inline(always)]
pub(crate) fn complete_next(
    posted: Next<'_, Posted>,
    qpn: Qpn,
    slots: &mut WriteBatch<'_, Completion>,
) {
    complete::<false>(posted, qpn, 0, slots);
}

/// Completes a request, and goes past it. `ASKED` says whether it may be one that needs a response.
#[inline(always)]
fn complete<const ASKED: bool>(
    mut posted: Next<'_, Posted>,
    qpn: Qpn,
    before: u64,
    slots: &mut WriteBatch<'_, Completion>,
) {
    if posted.simple {
        let slot = slots.slot();
        let written = posted.plain == Some(Plain::Write);
        let done = if written { Done::Written } else { Done::Sent };
        if let Data::Memory(memory) = &mut posted.request.data {
            let memory = std::mem::take(memory);
            slot.fill(posted.completion(qpn, done, 0, memory));
        } else {
            slot.fill(posted.completion(qpn, done, 0, Memory::None));
        }
        return posted.pass();
    }
    if !posted.request.signalled {
        drop(posted.request.data.take_memory());
        return posted.pass();
    }
    let slot = slots.slot();
    match (posted.plain, &posted.request.data) {
        (Some(Plain::Read), &Data::Memory(Memory::Segment(segment))) if ASKED => {
            let memory = Memory::Segment(segment);
            slot.fill(posted.completion(qpn, Done::Read, posted.len, memory));
        }
        (Some(Plain::Atomic), _) if ASKED => {
            slot.fill(posted.completion(qpn, Done::Atomic { before }, 0, Memory::None));
        }
        _ => slot.fill(posted.complete(qpn, before)),
    }
    posted.pass();
}

//! Sending: which requests are sent in a turn, and in which packets.

use crate::nic::config::queue_pair_state::State;
use crate::nic::device::outbox::Outbox;
use crate::nic::queues::completion_slots::in_use;
use crate::nic::requester::packets::{
    Any, OutgoingRequest, PlainAtomic, PlainRead, PlainWrite, PushedPacket, Shape, push,
};
use crate::nic::requests::failure::Cause;
use crate::nic::requests::plain::Plain;
use crate::nic::requests::work_request::WorkRequest;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::{Blamed, QueuePair};
use crate::nic::state::requester::Requester;
use crate::nic::state::turns::{NotSent, RequesterTurn};
use crate::planted::{Bug, planted};
use crate::wire::{Bth, Opcode, Service};

impl Requester {
    /// Whether the request at the cursor has to wait until the peer has a receive for it. A request
    /// that was begun before the peer said how many receives it has, and was then refused, has to
    /// wait as well. But with nothing under way, a request may always be sent to ask.
    #[inline(always)]
    fn must_wait_for_receive(&self, request: &WorkRequest) -> bool {
        self.credit.is_some()
            && self.cursor_packet == 0
            && request.takes_receive()
            && self.is_out_of_receives()
    }
}

impl QueuePair {
    /// Takes a turn of sending: at `most` so many packets of what may be sent.
    #[inline(always)]
    pub fn send<O: Outbox>(
        &mut self,
        common: &mut Common,
        outbox: &mut O,
        most: u32,
    ) -> RequesterTurn {
        if !self.state.requests() || self.requester.resume_at.is_some() {
            return RequesterTurn::Idle;
        }
        if self.waits_for_pace(common) {
            return RequesterTurn::Idle;
        }
        let datagrams = self.service() == Service::Ud;
        self.turn_to_path(common.now);
        // Once a turn is enough, since a request that is posted meanwhile rings the doorbell.
        self.requester.work.refresh();
        let (mut turn, mut promised, mut left) = (RequesterTurn::More, 0, most as usize);
        if self.requester.is_spaced() {
            left = 1;
        } else if let Some(paths) = &self.requester.paths {
            left = left.min(paths.packets_left(self.mtu));
        }
        if self.requester.is_repairing() {
            match self.send_lost(left, common, outbox) {
                Ok(sent) => left -= sent,
                Err(stopped) => return stopped,
            }
        }
        while left > 0 {
            let sent = match datagrams {
                true => self.send_datagram(common, outbox).map(|()| 1),
                false => self.send_next(left, &mut promised, common, outbox),
            };
            match sent {
                Ok(sent) => left -= sent,
                Err(stopped) => {
                    turn = stopped;
                    break;
                }
            }
        }
        if promised > 0 {
            common.release_sends(self.send_completions, promised);
        }
        match self.requester.local_write_done {
            true => self.complete_local_writes(turn, common),
            false => turn,
        }
    }

    /// Returns how the turn ends in which a packet was not sent. A request that can't be carried
    /// out breaks the queue pair.
    #[cold]
    pub(crate) fn end_turn(&mut self, stop: NotSent, common: &mut Common) -> RequesterTurn {
        match stop {
            NotSent::TurnEnded(turn) => turn,
            // The requests before it come first. It is looked at again when they are complete.
            NotSent::Invalid(_) if self.requester.cursor > 0 => RequesterTurn::Idle,
            NotSent::Invalid(cause) => {
                self.break_with(cause, Blamed::Request(0), common);
                RequesterTurn::More
            }
        }
    }

    /// Sends what is at the cursor, if it may be sent: a packet, or several plain sends, at `most`
    /// so many. `promised` counts completion slots that are reserved for requests that wait, and
    /// are used as these are begun. Returns how many packets were sent.
    #[inline(always)]
    fn send_next<O: Outbox>(
        &mut self,
        most: usize,
        promised: &mut usize,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<usize, RequesterTurn> {
        let r = &mut self.requester;
        let Some(posted) = r.work.seen(r.cursor) else { return Err(RequesterTurn::Idle) };
        let sent = match posted.plain {
            Some(Plain::Send | Plain::SendImm) => {
                let sent = match common.lossless {
                    true => self.send_fast_path::<true, O>(most, promised, common, outbox),
                    false => self.send_fast_path::<false, O>(most, promised, common, outbox),
                }?;
                if sent > 0 {
                    return Ok(sent);
                }
                self.send_kind_out_of_line::<Any, O>(promised, common, outbox)
            }
            Some(Plain::Write)
                if r.is_first_and_only_packet(posted.len, self.mtu)
                    && common.mapped.is_empty()
                    && !r.is_written_locally(posted) =>
            {
                self.send_kind_out_of_line::<PlainWrite, O>(promised, common, outbox)
            }
            _ => return self.send_next_uncommon(most, promised, common, outbox),
        };
        sent.map(|()| 1)
    }

    /// Sends what is at the cursor if it is of a less common kind. This is a function of its own,
    /// so that the common path stays short.
    #[inline(never)]
    fn send_next_uncommon<O: Outbox>(
        &mut self,
        most: usize,
        promised: &mut usize,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<usize, RequesterTurn> {
        let r = &mut self.requester;
        let Some(posted) = r.work.seen(r.cursor) else { return Err(RequesterTurn::Idle) };
        if r.is_written_locally(posted) || !common.mapped.is_empty() {
            let written = self.write_mapped(most, promised, common)?;
            if written > 0 {
                return Ok(written);
            }
        }
        let r = &mut self.requester;
        let Some(posted) = r.work.seen(r.cursor) else { return Err(RequesterTurn::Idle) };
        let single = r.is_first_and_only_packet(posted.len, self.mtu);
        let sent = match posted.plain {
            Some(Plain::Write) if single => {
                self.send_kind::<PlainWrite, O>(promised, common, outbox)
            }
            Some(Plain::Read) if single => self.send_kind::<PlainRead, O>(promised, common, outbox),
            Some(Plain::Atomic) if single => {
                self.send_kind::<PlainAtomic, O>(promised, common, outbox)
            }
            _ => self.send_kind_out_of_line::<Any, O>(promised, common, outbox),
        };
        sent.map(|()| 1)
    }

    /// Does what [`send_kind`](Self::send_kind) does. This is a function of its own, so that the
    /// common path stays short.
    #[inline(never)]
    fn send_kind_out_of_line<S: Shape, O: Outbox>(
        &mut self,
        promised: &mut usize,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<(), RequesterTurn> {
        self.send_kind::<S, O>(promised, common, outbox)
    }

    /// Sends a packet of the request at the cursor, which is of the kind `S`. Most packets are
    /// plain: all of a [plain](crate::nic::WorkRequest) request, sent for the first time. Then much
    /// need not be checked.
    #[inline(always)]
    fn send_kind<S: Shape, O: Outbox>(
        &mut self,
        promised: &mut usize,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<(), RequesterTurn> {
        let plain = S::PLAIN.is_some();
        let (r, mtu) = (&mut self.requester, self.mtu.bytes() as u32);
        let under_way = match plain {
            // On a first transmission the cursor is not behind what is acknowledged.
            true => r.next_psn.distance_from(r.oldest_psn) as u32,
            false => r.under_way(),
        };
        if r.window_left(under_way) == 0 {
            return Err(RequesterTurn::Idle);
        }
        let (cursor, again) = (r.cursor, !plain && r.next_psn != r.unsent_psn);
        let (Some(path), Some(posted)) = (&self.path, r.work.seen(cursor)) else {
            return Err(RequesterTurn::Idle);
        };
        let request = &posted.request;
        let needs_response =
            S::PLAIN.map_or_else(|| posted.needs_response(), Plain::needs_response);
        let begins = cursor == r.begun;
        if !(plain && needs_response) && (begins || again) && r.must_wait_for_receive(request) {
            return Err(RequesterTurn::Idle);
        }
        if begins {
            let fenced = !plain && request.fenced && !planted(Bug::IgnoresFences);
            if self.state == State::Draining || fenced && r.reads_outstanding > 0 {
                return Err(RequesterTurn::Idle);
            }
            if needs_response && r.reads_outstanding >= r.policy.reads.into() {
                return Err(match r.policy.reads {
                    0 => self.end_turn(NotSent::Invalid(Cause::NoReads), common),
                    _ => RequesterTurn::Idle,
                });
            }
            r.take_completion_slot(
                promised,
                in_use(&mut common.completions, self.send_completions),
            )?;
        }
        if needs_response {
            r.begun += usize::from(begins);
            let asked = match plain {
                true => self.send_read_or_atomic::<S, O>(common, outbox),
                false => self.send_any_read_or_atomic(common, outbox),
            };
            return asked.map_err(|stop| self.end_turn(stop, common));
        }
        let service = if plain { Service::Rc } else { self.shared.service };
        let bth = Bth::new(Opcode::RcSendOnly, self.peer_qpn, r.next_psn).with_pkey(self.pkey);
        let (offset, len) = if plain { (0, posted.len) } else { r.part_at_cursor(posted.len, mtu) };
        let splits = !plain && common.splits_write(request, service);
        let accesses_memory = request.accesses_memory();
        let began = r.begins_to_send(outbox, common.now);
        let request = OutgoingRequest { r, common, posted, domain: self.domain };
        let pushed = push::<S, O>(request, offset, len, path, service, bth, outbox);
        r.begun += usize::from(begins);
        let PushedPacket { ticket, asked, ends } = match pushed {
            Ok(pushed) => pushed,
            Err(stop) => return Err(self.end_turn(stop, common)),
        };
        common.counters.sent += 1;
        common.counters.retransmitted += u64::from(again);
        if !again {
            r.note_sent(r.next_psn, len as usize, began);
        }
        r.advance_cursor(1, asked, ends, ticket, common.now);
        if plain || accesses_memory {
            r.last_memory_psn = r.next_psn;
        }
        r.msn_offset = r.msn_offset.wrapping_add(u32::from(splits && !again && !ends));
        match service == Service::Rc {
            true => self.start_response_timer(common),
            false => self.complete_unreliable(ends, common),
        }
        Ok(())
    }

    /// Takes what was sent on an unreliable service for complete, since no acknowledgement comes.
    #[inline(never)]
    pub(crate) fn complete_unreliable(&mut self, ends: bool, common: &mut Common) {
        let r = &mut self.requester;
        (r.oldest_psn, r.head_acknowledged) = (r.next_psn, r.cursor_packet);
        if ends {
            self.complete_head(0, common);
            self.continue_after_progress(common);
        }
    }
}

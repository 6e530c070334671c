//! Repairing: between peers that share selective repeat, only what is missing is sent again.
//!
//! As long as nothing is missing, acknowledgements and responses are taken in the general way. What
//! is known of packets beyond a gap is kept in a [`Repair`], and the cursor is never set back:
//! packets that are sent again are sent beside it. Requests complete in order all the same, since
//! only what the peer has carried out counts, and what it keeps does not.

use crate::encap::Path;
use crate::nic::device::outbox::Outbox;
use crate::nic::requester::packets::{Any, OutgoingRequest, push};
use crate::nic::requester::reads_and_atomics::{atomic, read_part};
use crate::nic::requester::responses::put_read;
use crate::nic::requests::memory::Data;
use crate::nic::requests::work_request::Operation;
use crate::nic::selective::REACH;
use crate::nic::selective::repair::{Repair, Verdict};
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::{Blamed, QueuePair};
use crate::nic::state::requester::Requester;
use crate::nic::state::turns::{NotSent, RequesterTurn};
use crate::payload::Payload;
use crate::planted::{Bug, planted};
use crate::wire::{Aeth, Bth, Extensions, Headers, Msn, Opcode, PathMtu, Psn, Report, Service};

impl Requester {
    /// Begins to repair what is missing.
    fn repair(&mut self) -> &mut Repair {
        let oldest = self.oldest_psn;
        let repair = self.repair.get_or_insert_with(|| Box::new(Repair::new()));
        repair.begin(oldest);
        repair
    }

    /// Judges everything that is missing by what has arrived.
    fn judge_missing(&mut self, verdict: Verdict, mtu: PathMtu) {
        let Some(mut repair) = self.repair.take() else { return };
        self.judge_with(&mut repair, verdict, mtu);
        self.repair = Some(repair);
    }

    fn judge_with(&self, repair: &mut Repair, verdict: Verdict, mtu: PathMtu) {
        let (oldest, mut packet) = (self.oldest_psn, self.head_acknowledged);
        let mut psn = oldest;
        for index in 0..self.begun {
            let Some(posted) = self.work.seen(index) else { return };
            let (packets, asks) = (mtu.packets(posted.len), posted.needs_response());
            while packet < packets {
                if verdict.ends_before(psn) {
                    return;
                }
                let unsent = self.unsent_psn.distance_from(psn).max(0) as u32;
                let len =
                    if asks { self.requested_with(psn, packet, packets).min(unsent) } else { 1 };
                if len == 0 || psn.distance_from(oldest) as u32 + len > REACH {
                    return;
                }
                repair.judge(psn, len, verdict);
                if asks && repair.has_arrived(psn) {
                    repair.judge_responses(psn, len, verdict);
                }
                (psn, packet) = (psn.add(len), packet + len);
            }
            packet = 0;
        }
    }

    /// How many packets on from the oldest are sent, or requested, together.
    fn oldest_part(&mut self, mtu: PathMtu) -> u32 {
        let (oldest, packet) = (self.oldest_psn, self.head_acknowledged);
        let read = self.work.front().filter(|posted| posted.needs_response());
        let packets = read.map(|posted| mtu.packets(posted.len));
        packets.map_or(1, |packets| {
            let unsent = self.unsent_psn.distance_from(oldest).max(1) as u32;
            self.requested_with(oldest, packet, packets).min(unsent)
        })
    }
}

impl QueuePair {
    /// Takes an acknowledgement of packet `psn` that names the packets beyond, which the peer
    /// keeps, too. `last` is the last message that the peer has a receive for, if it said so.
    pub(crate) fn receive_report<P: Payload>(
        &mut self,
        psn: Psn,
        last: Option<Msn>,
        report: Report,
        bits: P,
        common: &mut Common,
    ) {
        let beyond = psn.add(1);
        let r = &self.requester;
        let was_sent = beyond.distance_from(r.oldest_psn) >= 0
            && beyond.distance_from(r.unsent_psn) <= 0
            && bits.len() <= Report::MOST_BITS / 8;
        let is_calm = !r.is_repairing() && bits.is_empty();
        if !r.selective || !was_sent || is_calm {
            self.receive_ack(psn, last, common);
            return self.learn_from_report(report, common);
        }
        common.counters.acks_received += 1;
        self.set_credit(last);
        let (oldest, unsent) = (self.requester.oldest_psn, self.requester.unsent_psn);
        let mut bytes = [0; Report::MOST_BITS / 8];
        bits.copy_to(&mut bytes);
        let repair = self.requester.repair();
        let before = repair.acked;
        repair.came_twice(report.repeated);
        repair.carried_out(beyond);
        let mut news = repair.acked != before;
        for (byte, bits) in bytes.into_iter().enumerate().filter(|(_, bits)| *bits != 0) {
            for bit in (0..8).filter(|bit| bits & 1 << bit != 0) {
                let kept = beyond.add(1 + 8 * byte as u32 + bit);
                // What was never sent can't be kept.
                let (ahead, sent) = (kept.distance_from(oldest), kept.distance_from(unsent) < 0);
                if sent && (0..REACH as i32).contains(&ahead) {
                    news |= repair.is_there(kept);
                    if planted(Bug::CompletesWhatIsKept) {
                        repair.carried_out(kept.add(1));
                    }
                }
            }
        }
        repair.came_last(report.newest);
        let acked = repair.acked;
        self.requester.rto.take_exact_sample(report.newest, acked, common.now, &common.clock_jumps);
        self.goes_on_repairing(oldest, news, common);
        self.learn_from_report(report, common);
    }

    /// Takes everything up to packet `psn` as carried out by the peer, while something is missing.
    #[cold]
    pub(crate) fn acknowledge_repaired(&mut self, psn: Psn, common: &mut Common) {
        let oldest = self.requester.oldest_psn;
        let repair = self.requester.repair();
        let before = repair.acked;
        repair.carried_out(psn.add(1));
        let news = repair.acked != before;
        self.requester.rto.discard_sample();
        self.goes_on_repairing(oldest, news, common);
    }

    /// Begins to repair, since everything up to packet `psn` was carried out, but a response from
    /// before is missing.
    pub(crate) fn repair_responses(&mut self, psn: Psn, common: &mut Common) {
        common.counters.answers_missed += 1;
        let oldest = self.requester.oldest_psn;
        self.requester.repair().carried_out(psn.add(1));
        self.goes_on_repairing(oldest, true, common);
    }

    /// Whether a response is to be taken by [`repair_response`](Self::repair_response).
    #[inline]
    pub(crate) fn repairs_response(&self, psn: Psn) -> bool {
        let r = &self.requester;
        r.selective && (psn != r.oldest_psn || r.is_repairing())
    }

    /// Takes a response from wherever it belongs: a packet of a read, which is put in its place, or
    /// the result of an atomic operation, which is kept.
    pub(crate) fn repair_response<P: Payload>(
        &mut self,
        psn: Psn,
        aeth: Option<Aeth>,
        result: Option<u64>,
        payload: P,
        common: &mut Common,
    ) {
        let (mtu, domain, oldest) = (self.mtu, self.domain, self.requester.oldest_psn);
        let ahead = psn.distance_from(oldest);
        if !self.is_under_way(psn) || ahead >= REACH as i32 {
            common.counters.stray_answers += 1;
            return;
        }
        // What was requested before was carried out before, and completes first.
        self.requester.repair().carried_out(psn);
        self.complete_repaired(common);
        let r = &mut self.requester;
        let (index, packet) = r.position_of(psn, mtu);
        let known = r.repair().has_answer(psn);
        let Some(posted) = r.work.seen_mut(index).filter(|_| !known) else {
            common.counters.stray_answers += 1;
            return self.goes_on_repairing(oldest, false, common);
        };
        let (len, request) = (posted.len as usize, &mut posted.request);
        match (request.operation, result, &mut request.data) {
            (Operation::Read { .. }, None, Data::Memory(memory)) => {
                let at = packet as usize * mtu.bytes();
                let part = at..len.min(at + mtu.bytes());
                if let Err(cause) = put_read(memory, part, payload, &common.keys, domain) {
                    return self.break_with(cause, Blamed::Request(index), common);
                }
            }
            (Operation::CompareSwap { .. } | Operation::FetchAdd { .. }, Some(before), _) => {
                r.repair().keep_result(psn, before);
            }
            _ => {
                common.counters.stray_answers += 1;
                self.requester.rto.was_early();
                return self.goes_on_repairing(oldest, false, common);
            }
        }
        common.counters.answers_received += 1;
        common.counters.answers_missed += u64::from(ahead > 0);
        if let Some(aeth) = aeth {
            self.take_credits(aeth);
        }
        self.requester.rto.take_exact_sample(psn, psn, common.now, &common.clock_jumps);
        let repair = self.requester.repair();
        repair.carried_out(psn.add(1));
        repair.is_answered(psn);
        self.goes_on_repairing(oldest, true, common);
        self.learn_from_response(psn, common);
    }

    /// Completes what is complete, looks for what is lost, and sets the timers anew. `news` says
    /// whether anything has come that was not known, and `before` which packet was the oldest then.
    fn goes_on_repairing(&mut self, before: Psn, news: bool, common: &mut Common) {
        self.complete_repaired(common);
        let r = &mut self.requester;
        let oldest = r.oldest_psn;
        let beyond = r.repair.as_ref().map_or(oldest, |repair| repair.acked);
        if oldest != before {
            self.restart_response_timer(beyond.before(), common);
        } else if news {
            self.start_response_timer_anew(common);
        }
        self.look_for_lost(common);
        let r = &mut self.requester;
        if let Some(repair) = &mut r.repair
            && repair.is_over(r.oldest_psn)
        {
            repair.end();
        }
        r.arrived_ahead = r.repair.as_ref().map_or(0, |repair| repair.arrived());
        common.activate(self);
    }

    /// Has sent again what is lost, if it is time to say so.
    fn look_for_lost(&mut self, common: &mut Common) {
        let r = &mut self.requester;
        let round_trip = r.rto.shortest_round_trip();
        let Some(repair) = &mut r.repair else { return };
        if let Some(verdict) = repair.suspects(round_trip, common.now) {
            r.judge_missing(verdict, self.mtu);
        }
        let r = &self.requester;
        if let Some(repair) = &r.repair {
            if let Some(at) = repair.suspects_at() {
                self.arm_by(at, common);
            }
            if repair.has_lost() {
                common.activate(self);
            }
        }
    }

    /// Looks for what is lost once the time has come.
    pub(crate) fn repair_timer_expired(&mut self, common: &mut Common) {
        let r = &self.requester;
        let due = r.repair.as_ref().and_then(|repair| repair.suspects_at());
        if r.is_repairing() && due.is_some_and(|at| at <= common.now) && self.state.requests() {
            self.look_for_lost(common);
        }
    }

    /// Completes the requests at the head whose packets were carried out, and whose responses have
    /// come.
    fn complete_repaired(&mut self, common: &mut Common) {
        let mtu = self.mtu;
        loop {
            let r = &mut self.requester;
            let Some(repair) = r.repair.as_mut().filter(|_| r.begun > 0) else { return };
            let Some(posted) = r.work.seen(0) else { return };
            let (len, asks) = (posted.len, posted.needs_response());
            if asks {
                let psn = r.oldest_psn;
                if !repair.has_answer(psn) {
                    return;
                }
                let result = repair.take_result(psn);
                repair.moves_on(psn, psn.add(1));
                if self.oldest_response_received(len) {
                    self.complete_head(result.unwrap_or(0), common);
                }
                continue;
            }
            let carried_out = repair.acked.distance_from(r.oldest_psn);
            let left = mtu.packets(len) - r.head_acknowledged;
            let step = left.min(carried_out.max(0) as u32);
            if step == 0 {
                return;
            }
            let from = r.oldest_psn;
            r.oldest_psn = from.add(step);
            repair.moves_on(from, from.add(step));
            r.head_acknowledged += step;
            if step == left {
                r.head_acknowledged = 0;
                self.complete_head(0, common);
            }
        }
    }

    /// Has the oldest packet sent again, since nothing has come for a while.
    pub(crate) fn lose_oldest(&mut self, common: &mut Common) {
        let (oldest, mtu) = (self.requester.oldest_psn, self.mtu);
        let len = self.requester.oldest_part(mtu);
        self.requester.repair().lose_oldest(oldest, len);
        common.activate(self);
    }

    /// Has the oldest packet sent again after a time-out, and then what was sent again before.
    pub(crate) fn lose_all_again(&mut self, common: &mut Common) {
        let oldest = self.requester.oldest_psn;
        self.requester.repair().forget_again(oldest);
        self.lose_oldest(common);
    }

    /// Has packet `psn` sent again, which the peer has refused.
    pub(crate) fn lose_refused(&mut self, psn: Psn, common: &mut Common) {
        if psn.distance_from(self.requester.oldest_psn) < REACH as i32 {
            self.requester.repair().refused(psn);
        }
        common.activate(self);
    }

    /// Sends again some of what is lost: at `most` so many packets. Returns how many.
    #[cold]
    pub(crate) fn send_lost<O: Outbox>(
        &mut self,
        most: usize,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<usize, RequesterTurn> {
        for sent in 0..most {
            let r = &self.requester;
            let Some(repair) = &r.repair else { return Ok(sent) };
            let Some(psn) = repair.next_lost(r.oldest_psn) else { return Ok(sent) };
            // What is beyond the window waits, but for the oldest packet, by which the peer is asked
            // what it has.
            if psn != r.oldest_psn && repair.again_under_way() >= r.open_window as usize {
                self.start_response_timer(common);
                return Ok(sent);
            }
            match self.send_again(psn, common, outbox) {
                Ok(()) => {}
                Err(NotSent::TurnEnded(turn)) => return Err(turn),
                Err(NotSent::Invalid(cause)) => {
                    let blamed = self.blamed_request(psn);
                    self.break_with(cause, blamed, common);
                    return Err(RequesterTurn::More);
                }
            }
        }
        Ok(most)
    }

    /// Sends again the packet `psn`, or requests again the responses from there on that are lost.
    fn send_again<O: Outbox>(
        &mut self,
        psn: Psn,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<(), NotSent> {
        self.leave_path_of(psn, common.now);
        let mtu = self.mtu;
        let (index, packet) = self.requester.position_of(psn, mtu);
        let r = &self.requester;
        let (Some(path), Some(posted), Some(repair)) = (&self.path, r.work.seen(index), &r.repair)
        else {
            return Err(NotSent::TurnEnded(RequesterTurn::Idle));
        };
        let bth = Bth::new(Opcode::RcSendOnly, self.peer_qpn, psn).with_pkey(self.pkey);
        let asks = posted.needs_response();
        let len = if asks {
            let most = r.requested_with(psn, packet, mtu.packets(posted.len));
            let len = repair.lost_from(psn, most);
            request_again(
                &posted.request.operation,
                (posted.len, packet, len),
                mtu,
                path,
                bth,
                outbox,
            )?;
            len
        } else {
            let at = packet * mtu.bytes() as u32;
            let long = (posted.len - at).min(mtu.bytes() as u32);
            let request = OutgoingRequest { r, common, posted, domain: self.domain };
            push::<Any, O>(request, at, long, path, Service::Rc, bth, outbox)?;
            1
        };
        common.counters.sent += 1;
        common.counters.retransmitted += 1;
        let r = &mut self.requester;
        r.rto.discard_sample_of(psn);
        if let Some(control) = &mut r.control {
            control.sent_again(psn, len, common.now);
        }
        let unsent = r.unsent_psn;
        r.repair().sent_again(psn, len, asks, unsent);
        self.start_response_timer(common);
        Ok(())
    }
}

/// Requests an atomic operation again, or `packets` of a read from one of them on.
fn request_again<O: Outbox>(
    operation: &Operation,
    (len, packet, packets): (u32, u32, u32),
    mtu: PathMtu,
    path: &Path,
    bth: Bth,
    outbox: &mut O,
) -> Result<(), NotSent> {
    let (opcode, extensions) = match *operation {
        Operation::Read { address, rkey } => {
            let reth = read_part((address, rkey), len, packet, packets, mtu);
            (Opcode::RcReadRequest, Extensions::Reth(reth))
        }
        operation => {
            let found = atomic(operation);
            let (opcode, atomic) = found.ok_or(NotSent::TurnEnded(RequesterTurn::Idle))?;
            (opcode, Extensions::Atomic(atomic))
        }
    };
    let headers = Headers { bth: bth.with_opcode(opcode), extensions };
    let sent = outbox.push(path, headers, &[][..]);
    sent.map(drop).map_err(|_| NotSent::TurnEnded(RequesterTurn::DeviceFull))
}

//! The requester: what is sent, in which packets, and what is sent again.
//!
//! Requests stay in the work queue until they are complete, those sent at its head. A cursor says
//! which packet of which request is next; to send again is to set it back. No request's sequence
//! numbers are kept: they follow from the lengths, and from how many packets of the head are
//! acknowledged.

use crate::time::Time;
use crate::wire::{Bth, DmaLength, Extensions, Headers, Msn, Opcode, PathMtu, Psn, Reth, RnrTimer};

use super::common::{Common, Event};
use super::completion::Cause;
use super::device::Outbox;
use super::gather::gather;
use super::pair::{Blamed, QueuePair};
use super::planted::{Bug, planted};
use super::queues::{Posted, Purpose};
use super::ring::Consumer;
use super::rto::Rto;
use super::states::{Sending, State};
use super::work::Operation;

/// How a turn of sending ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// There is nothing to send until something happens.
    Idle,
    /// There is more.
    More,
    /// A completion queue has no room.
    Starved,
    /// The device has no room.
    DeviceFull,
}

pub(super) struct Requester {
    work: Consumer<Posted>,
    /// The first packet that is not acknowledged, and how many of the same request stand before it.
    oldest: Psn,
    acknowledged: u32,
    /// The packet at the cursor: the next to be sent.
    next: Psn,
    /// The packet that was never sent yet.
    top: Psn,
    /// The cursor: how many requests stand before it, and how many packets of its own.
    at: usize,
    packet: u32,
    /// Requests at the head that were begun: their completions have a slot.
    pub begun: usize,
    /// Messages completed before the head.
    pub completed: Msn,
    /// The last message that the peer has a receive for, as far as it said.
    credit: Option<Msn>,
    sending: Sending,
    /// How much of the window is open: all of it, but for a while after a time-out.
    open: u32,
    /// Packets since an acknowledgement was last asked for.
    unasked: u32,
    tries: u8,
    rnr_tries: u8,
    pub rto: Rto,
    pub retry_at: Option<Time>,
    /// When to come back to a peer that had no receive.
    pub resume_at: Option<Time>,
    /// The device's ticket of each request's last packet, by its place in a ring as long as the
    /// queue, on a lossless device.
    tickets: Box<[u64]>,
    /// There, the last ticket that is known to be delivered.
    delivered: u64,
    /// There, a packet in the middle of a message, and its ticket: a message longer than the window
    /// could not go on before all of it had arrived.
    mark: Option<(u64, Psn)>,
    flying: bool,
}

impl Requester {
    pub fn new(work: Consumer<Posted>) -> Self {
        let zero = Psn::new(0);
        let sending = Sending::new(zero);
        Self {
            work,
            oldest: zero,
            acknowledged: 0,
            next: zero,
            top: zero,
            at: 0,
            packet: 0,
            begun: 0,
            completed: Msn::new(0),
            credit: None,
            rto: Rto::new(sending.timeout, sending.peer_delay),
            open: sending.window,
            sending,
            unasked: 0,
            tries: 0,
            rnr_tries: 0,
            retry_at: None,
            resume_at: None,
            tickets: Box::default(),
            delivered: 0,
            mark: None,
            flying: false,
        }
    }

    pub fn start(&mut self, sending: Sending, lossless: bool) {
        let first = sending.first;
        (self.oldest, self.next, self.top) = (first, first, first);
        self.rto = Rto::new(sending.timeout, sending.peer_delay);
        (self.sending, self.open) = (sending, sending.window);
        // Another path has other tickets.
        self.delivered = 0;
        if lossless && self.tickets.is_empty() {
            self.tickets = vec![0; self.work.slots()].into();
        }
    }

    pub fn forget(&mut self) {
        self.stop();
        (self.acknowledged, self.at, self.packet, self.unasked) = (0, 0, 0, 0);
        (self.completed, self.credit) = (Msn::new(0), None);
        (self.tries, self.rnr_tries) = (0, 0);
    }

    pub fn stop(&mut self) {
        (self.retry_at, self.resume_at, self.mark) = (None, None, None);
        self.rto.abandon();
    }

    pub fn outstanding(&self) -> usize {
        self.work.waiting()
    }

    pub fn is_deserted(&self) -> bool {
        self.work.is_deserted()
    }

    /// Takes the request at the head out of the queue: what `part` takes of it.
    #[inline]
    pub fn pop<R>(&mut self, part: impl FnOnce(&mut Posted) -> R) -> Option<R> {
        let taken = self.work.pop_part(part)?;
        self.begun = self.begun.saturating_sub(1);
        self.at = self.at.saturating_sub(1);
        Some(taken)
    }

    /// How many packets are unacknowledged.
    #[inline]
    fn under_way(&self) -> u32 {
        self.next.distance_from(self.oldest).max(0) as u32
    }

    /// Whether anything is sent and not acknowledged, or was and is to be sent again.
    #[inline]
    fn waits(&self) -> bool {
        self.begun > 0
    }

    /// Sets the cursor back, or forth, to a packet of a request that was begun.
    fn seek(&mut self, psn: Psn, mtu: PathMtu) {
        (self.next, self.packet, self.at) = (psn, 0, self.begun);
        self.mark = None;
        let mut left = self.acknowledged + psn.distance_from(self.oldest).max(0) as u32;
        for index in 0..self.begun {
            let packets = self.packets(index, mtu);
            if left < packets {
                (self.at, self.packet) = (index, left);
                return;
            }
            left -= packets;
        }
    }

    /// How many packets the request behind `index` others takes.
    #[inline]
    fn packets(&mut self, index: usize, mtu: PathMtu) -> u32 {
        self.work.peek(index).map_or(1, |posted| mtu.packets(posted.len))
    }

    /// Whether the peer may have no receive for messages behind the one at `index`.
    #[inline]
    fn reaches_credit(&self, index: usize) -> bool {
        let message = Psn::new(self.completed.get()).add(index as u32 + 1);
        self.credit.is_some_and(|last| message.distance_from(Psn::new(last.get())) >= 0)
    }

    #[inline]
    fn slot(&self, index: usize) -> usize {
        (self.completed.get() as usize + index) & self.tickets.len().wrapping_sub(1)
    }
}

impl QueuePair {
    /// Sends some of what may be sent.
    #[inline]
    pub fn send<O: Outbox>(&mut self, common: &mut Common, outbox: &mut O, most: u32) -> Turn {
        for _ in 0..most {
            if !self.state.requests() || self.requester.resume_at.is_some() {
                return Turn::Idle;
            }
            let r = &mut self.requester;
            let waiting = if r.at < r.begun { r.begun } else { r.work.len() };
            if r.at == waiting || r.under_way() >= r.open {
                return Turn::Idle;
            }
            if r.at == r.begun {
                if self.state == State::Draining || !self.may_begin() {
                    return Turn::Idle;
                }
                if !common.reserve(self.send_completions, Purpose::Send) {
                    return Turn::Starved;
                }
                self.requester.begun += 1;
            } else if r.packet == 0 && r.next != r.top && !self.may_begin() {
                // What was begun before the peer said how many receives it has, and then refused.
                return Turn::Idle;
            }
            match self.send_packet(common, outbox) {
                Ok(()) => {}
                Err(Stop::DeviceFull) => return Turn::DeviceFull,
                // Those before it come first, and it is looked at again when they are complete.
                Err(Stop::Refused(_)) if self.requester.at > 0 => return Turn::Idle,
                Err(Stop::Refused(cause)) => {
                    self.break_with(cause, Blamed::Request, common);
                    return Turn::More;
                }
            }
        }
        Turn::More
    }

    /// Whether the request at the cursor may be begun, or begun again: fences and credits allow it.
    #[inline]
    fn may_begin(&mut self) -> bool {
        let r = &mut self.requester;
        if r.at == 0 {
            // With nothing under way, a request may always go and ask.
            return true;
        }
        let uncovered = r.reaches_credit(r.at - 1);
        let Some(posted) = r.work.peek(r.at) else { return false };
        let request = &posted.request;
        let takes_receive = request.operation == Operation::Send || request.imm.is_some();
        !(uncovered && takes_receive || request.fenced)
    }

    /// Sends the packet at the cursor.
    #[inline]
    fn send_packet<O: Outbox>(&mut self, common: &mut Common, outbox: &mut O) -> Result<(), Stop> {
        let (r, mtu) = (&mut self.requester, self.mtu.bytes() as u32);
        let Some(path) = &self.path else { return Err(Stop::DeviceFull) };
        let reaches_credit = r.reaches_credit(r.at);
        let Some(posted) = r.work.peek(r.at) else { return Err(Stop::DeviceFull) };
        let request = &posted.request;

        let offset = r.packet * mtu;
        let len = (posted.len - offset).min(mtu);
        let ends = offset + len == posted.len;
        let payload =
            gather(&common.keys, self.domain, &request.data, offset as usize, len as usize)
                .map_err(Stop::Refused)?;

        let again = r.next != r.top;
        let ask = !common.lossless
            && (ends && (request.awaited || r.sending.ask_each || again)
                || r.unasked + 1 >= r.open.div_ceil(2)
                || ends && reaches_credit);
        let (opcode, extensions) = headers(posted, r.packet == 0, ends);
        let solicited = ends && request.solicited;
        let bth = Bth::new(opcode, self.peer, r.next)
            .with_pkey(self.pkey)
            .with_ack_request(ask)
            .with_solicited(solicited);
        let ticket = outbox
            .push(path, Headers { bth, extensions }, payload)
            .map_err(|_| Stop::DeviceFull)?;

        common.counters.sent += 1;
        common.counters.retransmitted += u64::from(again);
        self.requester.sent(again, ask, ends, ticket, common.now);
        self.watch(common);
        Ok(())
    }

    /// Sees to it that what was sent is not forgotten.
    #[inline]
    fn watch(&mut self, common: &mut Common) {
        let r = &mut self.requester;
        if common.lossless {
            if !r.flying {
                r.flying = true;
                common.flying.push(self.shared.place);
            }
        } else if r.retry_at.is_none() {
            let at = common.now + r.rto.time();
            r.retry_at = Some(at);
            self.arm_by(at, common);
        }
    }

    /// Notes what a lossless device says was delivered.
    pub fn look<O: Outbox>(&mut self, outbox: &mut O) {
        if let Some(path) = &self.path {
            self.requester.delivered = outbox.delivered(path.id());
        }
    }

    /// Completes what was delivered. Whether anything is still under way.
    pub fn collect(&mut self, common: &mut Common) -> bool {
        if !self.state.requests() {
            // What is broken is flushed, whatever was delivered of it.
            self.requester.flying = false;
            return false;
        }
        let delivered = self.requester.delivered;
        // A request is there when its last packet is, and that was sent.
        let before = self.requester.completed;
        while let r = &mut self.requester
            && r.at > 0
            && r.tickets[r.slot(0)] <= delivered
        {
            let rest = r.packets(0, self.mtu) - r.acknowledged;
            (r.oldest, r.acknowledged) = (r.oldest.add(rest), 0);
            self.complete_front(common);
        }
        let mark = self.requester.mark.take_if(|(ticket, _)| *ticket <= delivered);
        if let Some((_, psn)) = mark.filter(|(_, psn)| self.is_under_way(*psn)) {
            // The messages before it are complete, so it is of the one at the head.
            let r = &mut self.requester;
            let beyond = psn.add(1);
            r.acknowledged += beyond.distance_from(r.oldest) as u32;
            r.oldest = beyond;
        }
        if self.requester.completed != before || mark.is_some() {
            self.progressed(common);
        }
        self.requester.flying = self.requester.waits() && self.state.requests();
        self.requester.flying
    }

    /// Sends again from `psn` on.
    pub(super) fn go_back(&mut self, psn: Psn, common: &mut Common) {
        if planted(Bug::GoesBackToTheNewest) {
            return self.requester.seek(self.requester.top, self.mtu);
        }
        self.requester.seek(psn, self.mtu);
        self.requester.rto.abandon();
        common.activate(self);
    }

    /// Counts a try that failed. Whether it was the last.
    pub(super) fn gave_up(&mut self, common: &mut Common) -> bool {
        let r = &mut self.requester;
        if r.tries < r.sending.retries {
            r.tries += 1;
            return false;
        }
        let cause = Cause::NoAnswer { tries: r.tries.saturating_add(1) };
        self.break_with(cause, Blamed::Request, common);
        true
    }

    /// Waits as a peer without receives asked for, unless that was once too often.
    pub(super) fn wait_for_receiver(&mut self, psn: Psn, wait: RnrTimer, common: &mut Common) {
        let r = &mut self.requester;
        if r.sending.rnr_retries < 7 && r.rnr_tries >= r.sending.rnr_retries {
            let cause = Cause::ReceiverNotReady { tries: r.rnr_tries + 1, wait };
            return self.break_with(cause, Blamed::Request, common);
        }
        r.rnr_tries = r.rnr_tries.saturating_add(1);
        // It is a refusal, but an answer: the peer is there.
        r.tries = 0;
        r.rto.answered();
        let at = common.now + wait.delay();
        (r.resume_at, r.retry_at) = (Some(at), None);
        self.go_back(psn, common);
        self.arm_by(at, common);
    }

    pub fn requester_expire(&mut self, common: &mut Common) {
        if self.requester.resume_at.is_some_and(|at| at <= common.now) {
            self.requester.resume_at = None;
            common.activate(self);
        }
        if self.requester.retry_at.is_some_and(|at| at <= common.now) {
            self.requester.retry_at = None;
            if self.requester.waits() && self.state.requests() {
                common.counters.timeouts += 1;
                tracing::debug!(qpn = self.number().get(), tries = self.requester.tries, "timeout");
                if !self.gave_up(common) {
                    // One packet asks whether the peer is there, and what it has: to send all of
                    // the window again at once would often be for nothing.
                    self.requester.open = 1;
                    self.requester.rto.back_off();
                    // The timer is set again when that is sent.
                    self.go_back(self.requester.oldest, common);
                }
            }
        }
    }

    /// Takes everything up to and with `psn` as received by the peer, and completes what is
    /// complete. It must be a packet that was sent.
    pub(super) fn acknowledged(&mut self, psn: Psn, common: &mut Common) {
        let (beyond, mtu) = (psn.add(1), self.mtu);
        let r = &mut self.requester;
        r.acknowledged += beyond.distance_from(r.oldest).max(0) as u32;
        r.oldest = beyond;
        while self.requester.waits() {
            let packets = self.requester.packets(0, mtu);
            if self.requester.acknowledged < packets {
                break;
            }
            self.requester.acknowledged -= packets;
            self.complete_front(common);
        }
        let r = &mut self.requester;
        // What is sent again may be acknowledged before it is reached.
        if r.next.distance_from(beyond) < 0 {
            r.seek(beyond, mtu);
        }
        r.rto.acknowledged(psn, common.now);
        // What came from the peer ends the wait that it asked for.
        r.resume_at = None;
        r.retry_at = (r.under_way() > 0).then(|| common.now + r.rto.time());
        if let Some(at) = r.retry_at {
            self.arm_by(at, common);
        }
        self.progressed(common);
    }

    /// The peer has taken something: whatever waited for that may go on.
    fn progressed(&mut self, common: &mut Common) {
        let r = &mut self.requester;
        (r.tries, r.rnr_tries) = (0, 0);
        r.open = r.sending.window.min(r.open * 2);
        if self.state == State::Draining && !self.requester.waits() {
            common.tell(Event::Drained(self.number()), &mut self.told_drained);
        }
        common.activate(self);
    }

    /// What the peer said of its receives.
    #[inline]
    pub(super) fn credited(&mut self, last: Option<Msn>) {
        self.requester.credit = last;
    }

    /// Whether `psn` was sent and is not acknowledged.
    #[inline]
    pub(super) fn is_under_way(&self, psn: Psn) -> bool {
        let r = &self.requester;
        psn.distance_from(r.oldest) >= 0 && psn.distance_from(r.top) < 0
    }

    /// Whether the peer asked to be given time to post a receive.
    pub(super) fn waits_for_receiver(&self) -> bool {
        self.requester.resume_at.is_some()
    }

    /// The packet that comes after all that were acknowledged.
    #[inline]
    pub(super) fn oldest(&self) -> Psn {
        self.requester.oldest
    }
}

impl Requester {
    /// Moves the cursor behind the packet that was sent.
    #[inline]
    fn sent(&mut self, again: bool, ask: bool, ends: bool, ticket: u64, now: Time) {
        if !again {
            self.top = self.next.add(1);
            if ask {
                self.rto.sample(self.next, now);
            }
        }
        self.next = self.next.add(1);
        self.unasked = if ask { 0 } else { self.unasked + 1 };
        self.packet += 1;
        if ends {
            if !self.tickets.is_empty() {
                let slot = self.slot(self.at);
                self.tickets[slot] = ticket;
            }
            (self.at, self.packet) = (self.at + 1, 0);
        } else if !self.tickets.is_empty() && self.mark.is_none() {
            self.mark = Some((ticket, self.next.add(Psn::MAX.get())));
        }
    }
}

/// Why a packet was not sent.
enum Stop {
    DeviceFull,
    Refused(Cause),
}

/// The opcode and extension headers of a request's packet.
#[inline]
fn headers(posted: &Posted, begins: bool, ends: bool) -> (Opcode, Extensions) {
    let request = &posted.request;
    let imm = request.imm.filter(|_| ends);
    let Operation::Write { address, rkey } = request.operation else {
        let opcode = match (begins, ends, imm) {
            (true, true, None) => Opcode::RcSendOnly,
            (true, true, Some(_)) => Opcode::RcSendOnlyImmediate,
            (true, false, _) => Opcode::RcSendFirst,
            (false, false, _) => Opcode::RcSendMiddle,
            (false, true, None) => Opcode::RcSendLast,
            (false, true, Some(_)) => Opcode::RcSendLastImmediate,
        };
        return (opcode, imm.map_or(Extensions::None, Extensions::Imm));
    };
    let reth = Reth { address, rkey, length: DmaLength(posted.len) };
    match (begins, ends, imm) {
        (true, true, None) => (Opcode::RcWriteOnly, Extensions::Reth(reth)),
        (true, true, Some(imm)) => (Opcode::RcWriteOnlyImmediate, Extensions::RethImm(reth, imm)),
        (true, false, _) => (Opcode::RcWriteFirst, Extensions::Reth(reth)),
        (false, false, _) => (Opcode::RcWriteMiddle, Extensions::None),
        (false, true, None) => (Opcode::RcWriteLast, Extensions::None),
        (false, true, Some(imm)) => (Opcode::RcWriteLastImmediate, Extensions::Imm(imm)),
    }
}

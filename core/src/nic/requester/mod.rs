//! The requester: what is sent, in which packets, and what is sent again.
//!
//! Requests stay in the work queue until they are complete, those sent at its head. A cursor says
//! which packet of which request is next; to send again is to set it back. No request's sequence
//! numbers are kept: they follow from the lengths, and from how many packets of the head are
//! acknowledged.

mod copied;
mod delivery;
mod headers;
mod mapped;
mod packets;
mod proved;
mod questions;
mod retries;
mod stretch;

use std::time::Duration;

use crate::time::{Time, nanos};
use crate::wire::{Bth, Msn, Opcode, PathMtu, Psn, Service};

use super::QUANTUM;
use super::common::{Common, in_use};
use super::completion::Cause;
use super::device::Outbox;
use super::hosts::LEAST_ASKED;
use super::pair::{Blamed, QueuePair};
use super::queues::{Completions, Posted};
use super::ring::Consumer;
use super::rto::Rto;
use super::states::{Sending, State};
use super::work::Plain;
use crate::planted::{Bug, planted};

use packets::{Any, Outgoing, PlainAtomic, PlainRead, PlainWrite, Pushed, Shape, push};

/// The most packets, there and back, that may be unacknowledged: half of all sequence numbers, or
/// those before could not be told from those behind.
pub(super) const MOST_UNDER_WAY: u32 = (1 << 23) - 1;

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
    pub work: Consumer<Posted>,
    /// How many requests it holds.
    depth: usize,
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
    /// How many reads, parts of reads, and atomic operations are under way.
    asking: u32,
    /// How many parts of reads were ever asked for beside the last of each, and packets of writes
    /// sent apart, each of which the peer counts as a message; less the writes that were carried
    /// out here, which it does not. Modulo 2³², as message numbers are modulo 2²⁴.
    parts: u32,
    /// The answer that was found missing, and asked for again.
    chased: Option<Psn>,
    /// Messages completed before the head.
    pub completed: Msn,
    /// The last message that the peer has a receive for, as far as it said.
    credit: Option<Msn>,
    insists: Insistence,
    /// How much of the window is open: all of it, but for a while after a time-out.
    open: u32,
    /// After a time-out, the one packet that is sent again to see what the peer has, and how much
    /// of the window was open before.
    probe: Option<(Psn, u32)>,
    /// Packets since an acknowledgement was last asked for.
    unasked: u32,
    tries: u8,
    rnr_tries: u8,
    /// When the peer last took something, or else the oldest packet was sent first.
    since: Time,
    pub rto: Rto,
    /// When to take what is under way for lost, and when that was decided.
    pub retry_at: Option<Time>,
    watched: Time,
    /// When to come back to a peer that had no receive.
    pub resume_at: Option<Time>,
    /// Whether the device can't lose, and its tickets say what was delivered.
    by_ticket: bool,
    /// There, a packet in the middle of a message, and its ticket: a message longer than the window
    /// could not go on before all of it had arrived.
    mark: Option<(u64, Psn)>,
    flying: bool,
    /// Whether the last request that was begun is a write that is being [carried out here](mapped).
    places: bool,
    /// Whether one that was carried out has nothing before it.
    ready: bool,
    /// The number behind the last packet that was sent about the peer's memory.
    reaches: Psn,
}

/// What stays of [`Sending`] once it has begun.
struct Insistence {
    /// In nanoseconds.
    patience: u64,
    window: u32,
    retries: u8,
    rnr_retries: u8,
    reads: u8,
    ask_each: bool,
    metadata: bool,
}

impl Insistence {
    fn of(sending: &Sending) -> Self {
        let &Sending { patience, window, retries, rnr_retries, reads, ask_each, metadata, .. } =
            sending;
        Self { patience: nanos(patience), window, retries, rnr_retries, reads, ask_each, metadata }
    }
}

impl Requester {
    pub fn new(work: Consumer<Posted>, depth: usize) -> Self {
        let zero = Psn::new(0);
        let sending = Sending::new(zero);
        Self {
            work,
            depth,
            oldest: zero,
            acknowledged: 0,
            next: zero,
            top: zero,
            at: 0,
            packet: 0,
            begun: 0,
            asking: 0,
            parts: 0,
            chased: None,
            completed: Msn::new(0),
            credit: None,
            rto: Rto::new(sending.timeout, sending.peer_delay),
            open: sending.window,
            probe: None,
            insists: Insistence::of(&sending),
            unasked: 0,
            tries: 0,
            rnr_tries: 0,
            since: Time::ZERO,
            retry_at: None,
            watched: Time::ZERO,
            resume_at: None,
            by_ticket: false,
            mark: None,
            flying: false,
            places: false,
            ready: false,
            reaches: zero,
        }
    }

    pub fn start(&mut self, sending: Sending, lossless: bool) {
        let first = sending.first;
        (self.oldest, self.next, self.top, self.reaches) = (first, first, first, first);
        self.rto = Rto::new(sending.timeout, sending.peer_delay);
        (self.insists, self.open) = (Insistence::of(&sending), sending.window);
        self.by_ticket = lossless;
    }

    pub fn forget(&mut self) {
        self.stop();
        (self.acknowledged, self.at, self.packet, self.unasked) = (0, 0, 0, 0);
        (self.asking, self.parts, self.chased) = (0, 0, None);
        (self.places, self.ready) = (false, false);
        self.probe = None;
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

    /// Whether a packet with this number may be under way: one that is not acknowledged, or a
    /// question whether the peer is there, which has the number before those.
    pub fn may_be_under_way(&self, psn: Psn) -> bool {
        psn.distance_from(self.oldest.before()) >= 0 && psn.distance_from(self.top) < 0
    }

    pub fn is_deserted(&self) -> bool {
        self.work.is_deserted()
    }

    /// The request at the head of the queue.
    #[inline]
    pub fn front(&mut self) -> Option<&mut Posted> {
        self.work.front()
    }

    /// Drops it, with what is left in it.
    #[inline]
    pub fn drop_front(&mut self) {
        self.work.drop_front();
        self.left(1);
    }

    /// Counts so many requests as complete, which they were when they were dropped.
    #[inline(always)]
    pub fn passed(&mut self, count: usize) {
        self.completed = self.completed.add(count as u32);
        self.left(count);
    }

    #[inline(always)]
    fn left(&mut self, count: usize) {
        self.begun = self.begun.saturating_sub(count);
        self.at = self.at.saturating_sub(count);
    }

    /// Whether no packet is marked that is still under way: that of one which an answer told of is
    /// not waited for.
    fn is_unmarked(&self) -> bool {
        self.mark.is_none_or(|(_, psn)| psn.distance_from(self.oldest) < 0)
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
        (self.mark, self.probe) = (None, None);
        (self.next, (self.at, self.packet)) = (psn, self.place_of(psn, mtu));
    }

    /// How many requests stand before a packet, of those that were begun, and how many packets of
    /// its own.
    fn place_of(&mut self, psn: Psn, mtu: PathMtu) -> (usize, u32) {
        let mut left = self.acknowledged + psn.distance_from(self.oldest).max(0) as u32;
        for index in 0..self.begun {
            let packets = self.packets(index, mtu);
            if left < packets {
                return (index, left);
            }
            left -= packets;
        }
        (self.begun, 0)
    }

    /// How many packets the request behind `index` others takes.
    #[inline]
    fn packets(&mut self, index: usize, mtu: PathMtu) -> u32 {
        self.work.peek(index).map_or(1, |posted| match posted.placed.get() {
            true => 0,
            false => mtu.packets(posted.len),
        })
    }

    /// How long to wait for an answer: not so long that the peer is taken for gone before several
    /// tries were made.
    fn patience(&self, common: &Common) -> Duration {
        self.rto.time().min(common.hosts.limits.busy / 4)
    }

    /// Whether the request at the head is one that only an answer completes.
    #[inline]
    fn asks_first(&mut self) -> bool {
        self.work.front().is_some_and(|posted| posted.asks())
    }

    /// How many messages behind those that are complete the peer has receives for, if it said so.
    #[inline(always)]
    fn receives(&self) -> Option<i32> {
        let complete = Psn::new(self.completed.get()).add(self.parts);
        self.credit.map(|last| Psn::new(last.get()).distance_from(complete))
    }

    /// Whether the peer has said that it has receives, and none for messages behind the one that
    /// comes `index` others after those that are complete.
    #[inline]
    fn credit_reaches(&self, index: usize) -> bool {
        self.receives().is_some_and(|receives| index as i32 + 1 >= receives)
    }

    /// Whether the peer has said that it has receives, and none for one more behind what is under
    /// way. Most often that is known without a look at what is under way: not all of it takes one.
    #[inline]
    fn is_out_of_receives(&self) -> bool {
        self.at > 0 && self.credit_reaches(self.at - 1) && self.has_used_receives()
    }

    /// What is placed is no message to the peer, and has to count as one to be left out of those
    /// that are complete.
    #[inline(never)]
    fn has_used_receives(&self) -> bool {
        let under_way = self.work.seen_part(0..self.at);
        let took = under_way.filter(|posted| posted.request.takes_receive() || posted.placed.get());
        self.receives().is_some_and(|receives| took.count() as i32 >= receives)
    }

    /// How many more requests than that behind `index` others there are up to the next of those two
    /// with which half of the queue, or all of it, is under way: room must be heard of.
    #[inline]
    fn until_full(&self, index: usize) -> usize {
        let half = self.depth / 2;
        let due = if index < half { half } else { self.depth };
        due.saturating_sub(index + 1)
    }

    /// Whether a request of `len` bytes at the cursor is one packet, and sent for the first time.
    #[inline(always)]
    fn is_once(&self, len: u32, mtu: PathMtu) -> bool {
        len <= mtu.bytes() as u32 && self.next == self.top
    }

    /// Uses a completion that was `promised` for the request at the cursor, which is to be begun;
    /// if none is left, others are promised to all that wait.
    #[inline(always)]
    fn begin(&self, promised: &mut usize, completions: &mut Completions) -> Result<(), Turn> {
        if *promised == 0 {
            let wait = self.work.seen_behind(self.at).min(QUANTUM as usize);
            *promised = completions.reserve_up_to(wait);
        }
        *promised = promised.checked_sub(1).ok_or(Turn::Starved)?;
        Ok(())
    }

    /// The part of a message of `len` bytes that goes into the packet at the cursor: where it
    /// begins, and how long it is.
    #[inline]
    fn part_at_cursor(&self, len: u32, mtu: u32) -> (u32, u32) {
        let offset = self.packet * mtu;
        (offset, (len - offset).min(mtu))
    }
}

impl QueuePair {
    /// Sends some of what may be sent.
    #[inline(always)]
    pub fn send<O: Outbox>(&mut self, common: &mut Common, outbox: &mut O, most: u32) -> Turn {
        if !self.state.requests() || self.requester.resume_at.is_some() {
            return Turn::Idle;
        }
        let datagrams = self.service() == Service::Ud;
        // Once a turn: what is posted meanwhile rings.
        self.requester.work.look();
        let (mut turn, mut promised, mut left) = (Turn::More, 0, most as usize);
        while left > 0 {
            let sent = match datagrams {
                true => self.send_datagram(common, outbox).map(|()| 1),
                false => self.send_some(left, &mut promised, common, outbox),
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
        match self.requester.ready {
            true => self.complete_placed(turn, common),
            false => turn,
        }
    }

    /// How a turn ends in which something was not sent.
    #[cold]
    pub(super) fn stopped(&mut self, stop: Stop, common: &mut Common) -> Turn {
        match stop {
            Stop::Turn(turn) => turn,
            // Those before it come first, and it is looked at again when they are complete.
            Stop::Refused(_) if self.requester.at > 0 => Turn::Idle,
            Stop::Refused(cause) => {
                self.break_with(cause, Blamed::Request(0), common);
                Turn::More
            }
        }
    }

    /// Sends what is at the cursor, if it may be sent: a packet, or several plain sends, at `most`
    /// so many. Completions are `promised` to all requests that wait, as one after another is
    /// begun.
    #[inline(always)]
    fn send_some<O: Outbox>(
        &mut self,
        most: usize,
        promised: &mut usize,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<usize, Turn> {
        let r = &mut self.requester;
        let Some(posted) = r.work.seen(r.at) else { return Err(Turn::Idle) };
        let sent = match posted.plain {
            Some(Plain::Send | Plain::SendImm) => {
                let sent = match common.lossless {
                    true => self.send_stretch::<true, O>(most, promised, common, outbox),
                    false => self.send_stretch::<false, O>(most, promised, common, outbox),
                }?;
                if sent > 0 {
                    return Ok(sent);
                }
                self.send_apart::<Any, O>(promised, common, outbox)
            }
            Some(Plain::Write)
                if r.is_once(posted.len, self.mtu)
                    && common.mapped.is_empty()
                    && !r.has_placed(posted) =>
            {
                self.send_apart::<PlainWrite, O>(promised, common, outbox)
            }
            _ => return self.send_other(most, promised, common, outbox),
        };
        sent.map(|()| 1)
    }

    /// Apart, so that the way of most is short.
    #[inline(never)]
    fn send_other<O: Outbox>(
        &mut self,
        most: usize,
        promised: &mut usize,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<usize, Turn> {
        let r = &mut self.requester;
        let Some(posted) = r.work.seen(r.at) else { return Err(Turn::Idle) };
        if r.has_placed(posted) || !common.mapped.is_empty() {
            let written = self.write_mapped(most, promised, common)?;
            if written > 0 {
                return Ok(written);
            }
        }
        let r = &mut self.requester;
        let Some(posted) = r.work.seen(r.at) else { return Err(Turn::Idle) };
        let once = r.is_once(posted.len, self.mtu);
        let sent = match posted.plain {
            Some(Plain::Write) if once => self.send_as::<PlainWrite, O>(promised, common, outbox),
            Some(Plain::Read) if once => self.send_as::<PlainRead, O>(promised, common, outbox),
            Some(Plain::Atomic) if once => self.send_as::<PlainAtomic, O>(promised, common, outbox),
            _ => self.send_apart::<Any, O>(promised, common, outbox),
        };
        sent.map(|()| 1)
    }

    /// Apart, too.
    #[inline(never)]
    fn send_apart<S: Shape, O: Outbox>(
        &mut self,
        promised: &mut usize,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<(), Turn> {
        self.send_as::<S, O>(promised, common, outbox)
    }

    /// Sends it as what it is. Most packets are plain: the whole of a
    /// [plain](super::work::WorkRequest::plain) request, sent for the first time. What follows from
    /// that is not asked then.
    #[inline(always)]
    fn send_as<S: Shape, O: Outbox>(
        &mut self,
        promised: &mut usize,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<(), Turn> {
        let plain = S::PLAIN.is_some();
        let (r, mtu) = (&mut self.requester, self.mtu.bytes() as u32);
        let under_way = match plain {
            // The cursor is not behind what is acknowledged.
            true => r.next.distance_from(r.oldest) as u32,
            false => r.under_way(),
        };
        if under_way >= r.open {
            return Err(Turn::Idle);
        }
        let (at, again) = (r.at, !plain && r.next != r.top);
        let (Some(path), Some(posted)) = (&self.path, r.work.seen(at)) else {
            return Err(Turn::Idle);
        };
        let request = &posted.request;
        let asks = S::PLAIN.map_or_else(|| posted.asks(), Plain::asks);
        let begins = at == r.begun;
        // What was begun before the peer said how many receives it has, and then refused, has to
        // wait for one as well. But with nothing under way, a request may always go and ask.
        if !(plain && asks)
            && r.credit.is_some()
            && (begins || again)
            && r.packet == 0
            && request.takes_receive()
            && r.is_out_of_receives()
        {
            return Err(Turn::Idle);
        }
        if begins {
            let fenced = !plain && request.fenced && !planted(Bug::IgnoresFences);
            if self.state == State::Draining || fenced && r.asking > 0 {
                return Err(Turn::Idle);
            }
            if asks && r.asking >= r.insists.reads.into() {
                return Err(match r.insists.reads {
                    0 => self.stopped(Stop::Refused(Cause::NoReads), common),
                    _ => Turn::Idle,
                });
            }
            r.begin(promised, in_use(&mut common.completions, self.send_completions))?;
        }
        if asks {
            r.begun += usize::from(begins);
            let asked = match plain {
                true => self.ask::<S, O>(common, outbox),
                false => self.ask_apart(common, outbox),
            };
            return asked.map_err(|stop| self.stopped(stop, common));
        }
        let service = if plain { Service::Rc } else { self.shared.service };
        let bth = Bth::new(Opcode::RcSendOnly, self.peer, r.next).with_pkey(self.pkey);
        let part = if plain { (0, posted.len) } else { r.part_at_cursor(posted.len, mtu) };
        let apart = !plain && common.goes_apart(request, service);
        let reaches = request.reaches_memory();
        let request = Outgoing { r, common, posted, domain: self.domain };
        let pushed = push::<S, O>(request, part, (path, service, bth), outbox);
        r.begun += usize::from(begins);
        let Pushed { ticket, asked, ends } = match pushed {
            Ok(pushed) => pushed,
            Err(stop) => return Err(self.stopped(stop, common)),
        };
        common.counters.sent += 1;
        common.counters.retransmitted += u64::from(again);
        r.sent(1, asked, ends, ticket, common.now);
        if plain || reaches {
            r.reaches = r.next;
        }
        r.parts = r.parts.wrapping_add(u32::from(apart && !again && !ends));
        match service == Service::Rc {
            true => self.watch(common),
            false => self.sent_for_good(ends, common),
        }
        Ok(())
    }

    /// Takes what was sent for arrived: nobody will say.
    #[inline(never)]
    pub(super) fn sent_for_good(&mut self, ends: bool, common: &mut Common) {
        let r = &mut self.requester;
        (r.oldest, r.acknowledged) = (r.next, r.packet);
        if ends {
            self.complete_front(0, common);
            self.progressed(common);
        }
    }

    /// Sees to it that what was sent is not forgotten.
    #[inline(always)]
    fn watch(&mut self, common: &mut Common) {
        let r = &mut self.requester;
        if common.lossless {
            if !r.flying {
                r.flying = true;
                common.flying.push(self.shared.place);
            }
        } else if r.retry_at.is_none() {
            let mut at = common.now + r.patience(common);
            if r.tries == 0 {
                r.since = common.now;
            } else if r.tries >= LEAST_ASKED {
                // The peer is taken for gone when it has been silent for so long, and not later.
                let since = common.hosts.silent_since(self.host, r.since);
                at = at.min(common.leaps.end_of(common.hosts.limits.busy, since));
            }
            (r.retry_at, r.watched) = (Some(at), common.now);
            self.arm_by(at, common);
        }
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
    /// The packet at the cursor, and the request that it is of.
    pub fn at_cursor(&mut self) -> (Psn, Option<&Posted>) {
        (self.next, self.work.peek(self.at))
    }

    /// Moves the cursor behind what was sent, which is so many packets there or here.
    #[inline(always)]
    pub fn sent(&mut self, packets: u32, ask: bool, ends: bool, ticket: u64, now: Time) {
        let beyond = self.next.add(packets);
        if ask && self.next == self.top {
            self.rto.sample(self.next, now);
        }
        // A part of a read that is asked for again may reach further than it did before.
        if beyond.distance_from(self.top) > 0 {
            self.top = beyond;
        }
        self.next = beyond;
        self.unasked = if ask { 0 } else { self.unasked + 1 };
        self.packet += packets;
        if ends {
            if self.by_ticket
                && let Some(posted) = self.work.seen(self.at)
            {
                posted.sent(ticket, beyond);
            }
            (self.at, self.packet) = (self.at + 1, 0);
        } else if self.by_ticket && self.is_unmarked() {
            self.mark = Some((ticket, self.next.before()));
        }
    }
}

/// Why a packet was not sent.
pub(super) enum Stop {
    /// This is how the turn ends.
    Turn(Turn),
    /// The request can't be carried out.
    Refused(Cause),
}

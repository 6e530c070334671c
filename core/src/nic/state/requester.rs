//! The requester: what is sent, in which packets, and what is sent again.
//!
//! Requests stay in the work queue until they are complete, those sent at its head. A cursor says
//! which packet of which request is next; to send again is to set it back. No request's sequence
//! numbers are kept: they follow from the lengths, and from how many packets of the head are
//! acknowledged.

use crate::nic::config::connection::Sending;
use crate::nic::queues::completions::Completions;
use crate::nic::queues::posted::Posted;
use crate::nic::ring::Consumer;
use crate::nic::state::retransmission_timeout::Rto;
use crate::nic::state::turns::{QUANTUM, RequesterTurn};
use crate::time::{Time, nanos};
use crate::wire::{Msn, PathMtu, Psn};

pub(crate) struct Requester {
    pub work: Consumer<Posted>,
    /// How many requests it holds.
    depth: usize,
    /// The first packet that is not acknowledged, and how many of the same request stand before it.
    pub oldest_psn: Psn,
    pub head_acknowledged: u32,
    /// The packet at the cursor: the next to be sent.
    pub next_psn: Psn,
    /// The packet that was never sent yet.
    pub unsent_psn: Psn,
    /// The cursor: how many requests stand before it, and how many packets of its own.
    pub cursor: usize,
    pub cursor_packet: u32,
    /// Requests at the head that were begun: their completions have a slot.
    pub begun: usize,
    /// How many reads, parts of reads, and atomic operations are under way.
    pub reads_outstanding: u32,
    /// How many parts of reads were ever asked for beside the last of each, and packets of writes
    /// sent apart, each of which the peer counts as a message; less the writes that were carried
    /// out here, which it does not. Modulo 2³², as message numbers are modulo 2²⁴.
    pub msn_offset: u32,
    /// The answer that was found missing, and asked for again.
    pub rerequested: Option<Psn>,
    /// Messages completed before the head.
    pub completed: Msn,
    /// The last message that the peer has a receive for, as far as it said.
    pub credit: Option<Msn>,
    pub policy: RetryPolicy,
    /// How much of the window is open: all of it, but for a while after a time-out.
    pub open_window: u32,
    /// After a time-out, the one packet that is sent again to see what the peer has, and how much
    /// of the window was open before.
    pub timeout_retry: Option<(Psn, u32)>,
    /// Packets since an acknowledgement was last asked for.
    pub unasked: u32,
    pub tries: u8,
    pub rnr_tries: u8,
    /// When the peer last took something, or else the oldest packet was sent first.
    pub last_progress: Time,
    pub rto: Rto,
    /// When to take what is under way for lost, and when that was decided.
    pub retry_at: Option<Time>,
    pub timer_set_at: Time,
    /// When to come back to a peer that had no receive.
    pub resume_at: Option<Time>,
    /// Whether the device can't lose, and its tickets say what was delivered.
    pub lossless: bool,
    /// There, a packet in the middle of a message, and its ticket: a message longer than the window
    /// could not go on before all of it had arrived.
    pub mid_message_ticket: Option<(u64, Psn)>,
    pub awaits_delivery: bool,
    /// Whether the last request that was begun is a write that is being [carried out here](mapped).
    pub writes_locally: bool,
    /// Whether one that was carried out has nothing before it.
    pub local_write_done: bool,
    /// The number behind the last packet that was sent about the peer's memory.
    pub last_memory_psn: Psn,
}

/// What stays of [`Sending`] once it has begun.
pub(crate) struct RetryPolicy {
    /// In nanoseconds.
    pub patience: u64,
    pub window: u32,
    pub retries: u8,
    pub rnr_retries: u8,
    pub reads: u8,
    pub ask_each: bool,
    pub metadata: bool,
}

impl RetryPolicy {
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
            oldest_psn: zero,
            head_acknowledged: 0,
            next_psn: zero,
            unsent_psn: zero,
            cursor: 0,
            cursor_packet: 0,
            begun: 0,
            reads_outstanding: 0,
            msn_offset: 0,
            rerequested: None,
            completed: Msn::new(0),
            credit: None,
            rto: Rto::new(sending.timeout, sending.peer_delay),
            open_window: sending.window,
            timeout_retry: None,
            policy: RetryPolicy::of(&sending),
            unasked: 0,
            tries: 0,
            rnr_tries: 0,
            last_progress: Time::ZERO,
            retry_at: None,
            timer_set_at: Time::ZERO,
            resume_at: None,
            lossless: false,
            mid_message_ticket: None,
            awaits_delivery: false,
            writes_locally: false,
            local_write_done: false,
            last_memory_psn: zero,
        }
    }

    pub fn start(&mut self, sending: Sending, lossless: bool) {
        let first = sending.first;
        (self.oldest_psn, self.next_psn, self.unsent_psn, self.last_memory_psn) =
            (first, first, first, first);
        self.rto = Rto::new(sending.timeout, sending.peer_delay);
        (self.policy, self.open_window) = (RetryPolicy::of(&sending), sending.window);
        self.lossless = lossless;
    }

    pub fn forget(&mut self) {
        self.stop();
        (self.head_acknowledged, self.cursor, self.cursor_packet, self.unasked) = (0, 0, 0, 0);
        (self.reads_outstanding, self.msn_offset, self.rerequested) = (0, 0, None);
        (self.writes_locally, self.local_write_done) = (false, false);
        self.timeout_retry = None;
        (self.completed, self.credit) = (Msn::new(0), None);
        (self.tries, self.rnr_tries) = (0, 0);
    }

    pub fn stop(&mut self) {
        (self.retry_at, self.resume_at, self.mid_message_ticket) = (None, None, None);
        self.rto.discard_sample();
    }

    pub fn outstanding(&self) -> usize {
        self.work.waiting()
    }

    /// Whether a packet with this number may be under way: one that is not acknowledged, or a
    /// question whether the peer is there, which has the number before those.
    pub fn may_be_under_way(&self, psn: Psn) -> bool {
        psn.distance_from(self.oldest_psn.before()) >= 0 && psn.distance_from(self.unsent_psn) < 0
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
        self.advance_head(1);
    }

    /// Counts so many requests as complete, which they were when they were dropped.
    #[inline(always)]
    pub fn count_completed(&mut self, count: usize) {
        self.completed = self.completed.add(count as u32);
        self.advance_head(count);
    }

    #[inline(always)]
    fn advance_head(&mut self, count: usize) {
        self.begun = self.begun.saturating_sub(count);
        self.cursor = self.cursor.saturating_sub(count);
    }

    /// Whether no packet is marked that is still under way: that of one which an answer told of is
    /// not waited for.
    fn needs_mid_message_ticket(&self) -> bool {
        self.mid_message_ticket.is_none_or(|(_, psn)| psn.distance_from(self.oldest_psn) < 0)
    }

    /// How many packets are unacknowledged.
    #[inline]
    pub fn under_way(&self) -> u32 {
        self.next_psn.distance_from(self.oldest_psn).max(0) as u32
    }

    /// Whether anything is sent and not acknowledged, or was and is to be sent again.
    #[inline]
    pub fn has_outstanding(&self) -> bool {
        self.begun > 0
    }

    /// Sets the cursor back, or forth, to a packet of a request that was begun.
    pub fn move_cursor(&mut self, psn: Psn, mtu: PathMtu) {
        (self.mid_message_ticket, self.timeout_retry) = (None, None);
        (self.next_psn, (self.cursor, self.cursor_packet)) = (psn, self.position_of(psn, mtu));
    }

    /// How many requests stand before a packet, of those that were begun, and how many packets of
    /// its own.
    pub fn position_of(&mut self, psn: Psn, mtu: PathMtu) -> (usize, u32) {
        let mut left = self.head_acknowledged + psn.distance_from(self.oldest_psn).max(0) as u32;
        for index in 0..self.begun {
            let packets = self.packets_of(index, mtu);
            if left < packets {
                return (index, left);
            }
            left -= packets;
        }
        (self.begun, 0)
    }

    /// How many packets the request behind `index` others takes.
    #[inline]
    fn packets_of(&mut self, index: usize, mtu: PathMtu) -> u32 {
        self.work.peek(index).map_or(1, |posted| match posted.written_locally.get() {
            true => 0,
            false => mtu.packets(posted.len),
        })
    }

    /// Whether the request at the head is one that only an answer completes.
    #[inline]
    pub fn head_needs_response(&mut self) -> bool {
        self.work.front().is_some_and(|posted| posted.needs_response())
    }

    /// How many messages behind those that are complete the peer has receives for, if it said so.
    #[inline(always)]
    pub fn receives_left(&self) -> Option<i32> {
        let complete = Psn::new(self.completed.get()).add(self.msn_offset);
        self.credit.map(|last| Psn::new(last.get()).distance_from(complete))
    }

    /// Whether the peer has said that it has receives, and none for messages behind the one that
    /// comes `index` others after those that are complete.
    #[inline]
    pub fn exhausts_credit(&self, index: usize) -> bool {
        self.receives_left().is_some_and(|receives| index as i32 + 1 >= receives)
    }

    /// Whether the peer has said that it has receives, and none for one more behind what is under
    /// way. Most often that is known without a look at what is under way: not all of it takes one.
    #[inline]
    pub fn is_out_of_receives(&self) -> bool {
        self.cursor > 0 && self.exhausts_credit(self.cursor - 1) && self.has_used_receives()
    }

    /// What is placed is no message to the peer, and has to count as one to be left out of those
    /// that are complete.
    #[inline(never)]
    fn has_used_receives(&self) -> bool {
        let under_way = self.work.seen_part(0..self.cursor);
        let took = under_way
            .filter(|posted| posted.request.takes_receive() || posted.written_locally.get());
        self.receives_left().is_some_and(|receives| took.count() as i32 >= receives)
    }

    /// How many more requests than that behind `index` others there are up to the next of those two
    /// with which half of the queue, or all of it, is under way: room must be heard of.
    #[inline]
    pub fn requests_until_full(&self, index: usize) -> usize {
        let half = self.depth / 2;
        let due = if index < half { half } else { self.depth };
        due.saturating_sub(index + 1)
    }

    /// Whether a request of `len` bytes at the cursor is one packet, and sent for the first time.
    #[inline(always)]
    pub fn is_first_and_only_packet(&self, len: u32, mtu: PathMtu) -> bool {
        len <= mtu.bytes() as u32 && self.next_psn == self.unsent_psn
    }

    /// Uses a completion that was `promised` for the request at the cursor, which is to be begun;
    /// if none is left, others are promised to all that wait.
    #[inline(always)]
    pub fn take_completion_slot(
        &self,
        promised: &mut usize,
        completions: &mut Completions,
    ) -> Result<(), RequesterTurn> {
        if *promised == 0 {
            let wait = self.work.seen_behind(self.cursor).min(QUANTUM as usize);
            *promised = completions.reserve_up_to(wait);
        }
        *promised = promised.checked_sub(1).ok_or(RequesterTurn::Starved)?;
        Ok(())
    }

    /// The part of a message of `len` bytes that goes into the packet at the cursor: where it
    /// begins, and how long it is.
    #[inline]
    pub fn part_at_cursor(&self, len: u32, mtu: u32) -> (u32, u32) {
        let offset = self.cursor_packet * mtu;
        (offset, (len - offset).min(mtu))
    }

    /// The packet at the cursor, and the request that it is of.
    pub fn at_cursor(&mut self) -> (Psn, Option<&Posted>) {
        (self.next_psn, self.work.peek(self.cursor))
    }

    /// Moves the cursor behind what was sent, which is so many packets there or here.
    #[inline(always)]
    pub fn advance_cursor(&mut self, packets: u32, ask: bool, ends: bool, ticket: u64, now: Time) {
        let beyond = self.next_psn.add(packets);
        if ask && self.next_psn == self.unsent_psn {
            self.rto.start_sample(self.next_psn, now);
        }
        // A part of a read that is asked for again may reach further than it did before.
        if beyond.distance_from(self.unsent_psn) > 0 {
            self.unsent_psn = beyond;
        }
        self.next_psn = beyond;
        self.unasked = if ask { 0 } else { self.unasked + 1 };
        self.cursor_packet += packets;
        if ends {
            if self.lossless
                && let Some(posted) = self.work.seen(self.cursor)
            {
                posted.sent(ticket, beyond);
            }
            (self.cursor, self.cursor_packet) = (self.cursor + 1, 0);
        } else if self.lossless && self.needs_mid_message_ticket() {
            self.mid_message_ticket = Some((ticket, self.next_psn.before()));
        }
    }
}

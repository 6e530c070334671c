//! The state of a requester: its work queue, and which packets were sent and acknowledged.
//!
//! Requests stay in the work queue until they are complete; those that were sent stand at its head.
//! A cursor says which packet of which request is sent next; to retransmit is to set the cursor
//! back. The sequence numbers of requests are not kept, since they follow from the lengths, and
//! from how many packets of the request at the head are acknowledged.

use std::num::{NonZeroU32, NonZeroU64};

use crate::nic::config::connection::Sending;
use crate::nic::congestion::control::Control;
use crate::nic::paths::Paths;
use crate::nic::queues::completion_slots::CompletionSlots;
use crate::nic::queues::posted::Posted;
use crate::nic::ring::Consumer;
use crate::nic::selective::REACH;
use crate::nic::selective::repair::Repair;
use crate::nic::state::retransmission_timeout::Rto;
use crate::nic::state::turns::{QUANTUM, RequesterTurn};
use crate::time::{Time, nanos};
use crate::wire::{Msn, PathMtu, Psn};

/// The state of a queue pair's requester.
pub(crate) struct Requester {
    pub work: Consumer<Posted>,
    /// How many requests the work queue holds.
    depth: usize,
    /// The first packet that is not acknowledged.
    pub oldest_psn: Psn,
    /// How many packets of the request at the head are acknowledged.
    pub head_acknowledged: u32,
    /// The packet at the cursor: the next to be sent.
    pub next_psn: Psn,
    /// The first packet that was never sent.
    pub unsent_psn: Psn,
    /// The position of the cursor's request: how many requests of the work queue stand before it.
    pub cursor: usize,
    /// The position of the cursor's packet: how many packets of its request stand before it.
    pub cursor_packet: u32,
    /// How many requests at the head were begun: their completions have slots.
    pub begun: usize,
    /// How many reads, parts of reads, and atomic operations are outstanding.
    pub reads_outstanding: u32,
    /// By how much the peer's message sequence number is ahead of the requests that are complete:
    /// each part of a read except the last counts as a message for the peer, and so does each
    /// packet except the last of a write that is split into several. Writes that were carried out
    /// here do not, and are subtracted. Modulo 2³², while message sequence numbers are modulo 2²⁴.
    pub msn_offset: u32,
    /// The response that was found missing, and requested again.
    pub rerequested: Option<Psn>,
    /// How many messages were completed before the head.
    pub completed: Msn,
    /// The last message that the peer has a receive for, if the peer said so.
    pub credit: Option<Msn>,
    pub policy: RetryPolicy,
    /// How much of the window is open: all of it, except for a while after a time-out.
    pub open_window: u32,
    /// After a time-out, the one packet that is sent again to find out what the peer has, and how
    /// much of the window was open before.
    pub timeout_retry: Option<(Psn, NonZeroU32)>,
    /// How many packets were sent since an acknowledgement was last asked for.
    pub unasked: u32,
    pub tries: u8,
    pub rnr_tries: u8,
    /// When the peer last acknowledged something; if nothing was outstanding then, when the oldest
    /// packet was first sent.
    pub last_progress: Time,
    pub rto: Rto,
    /// When the retransmission timer expires.
    pub retry_at: Option<Time>,
    /// When the retransmission timer was set.
    pub timer_set_at: Time,
    /// When to send again to a peer that had no receive.
    pub resume_at: Option<Time>,
    /// Whether the device is lossless, and its tickets say what was delivered.
    pub lossless: bool,
    /// On a lossless device, a packet in the middle of a message, and its ticket. Without it, a
    /// message longer than the window could not go on before all that was sent of it had arrived.
    pub mid_message_ticket: Option<(Ticket, Psn)>,
    /// Whether the queue pair is in the list of those with requests under way on a lossless device.
    pub awaits_delivery: bool,
    /// Whether the last request that was begun is a write that is being carried out here, in
    /// [mapped](crate::nic::requester::mapped_writes) memory.
    pub writes_locally: bool,
    /// Whether a write that was carried out here has no request before it, and so can be completed.
    pub local_write_done: bool,
    /// The sequence number behind the last packet that was sent to access the peer's memory.
    pub last_memory_psn: Psn,
    /// Whether the peer keeps packets from beyond a missing one, so that only this one is sent again.
    pub selective: bool,
    /// How often the oldest packet was sent again to ask what has become of it, before a time-out.
    pub probes: u8,
    /// The packets that have arrived beyond missing ones, once any were missing.
    pub repair: Option<Box<Repair>>,
    /// How many packets under way take no room in the window, since they have arrived.
    pub arrived_ahead: u32,
    /// How much may be under way by what is known of the path, if congestion is controlled.
    pub control: Option<Box<Control>>,
    /// The paths by which packets leave, if there are several.
    pub paths: Option<Box<Paths>>,
}

/// The ticket of a packet, plus one: an optional ticket takes no more room than a ticket.
#[derive(Clone, Copy)]
pub(crate) struct Ticket(NonZeroU64);

impl Ticket {
    fn new(ticket: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(ticket))
    }

    pub fn get(self) -> u64 {
        self.0.get() - 1
    }
}

/// The part of [`Sending`] that is still needed after the start.
pub(crate) struct RetryPolicy {
    /// The shortest time without progress before giving up, in nanoseconds.
    pub patience: u64,
    pub window: u32,
    pub retries: u8,
    pub rnr_retries: u8,
    /// How many packets of a read are requested at once.
    pub read_part: u32,
    pub reads: u8,
    pub ask_each: bool,
    pub metadata: bool,
}

/// The most packets of a read that are requested at once, however wide the window is.
const LONGEST_PART: u32 = 1 << 21;

/// The most packets of a read that are requested at once where missing responses are requested one
/// by one: a part of those that are kept track of.
const LONGEST_REPAIRED: u32 = REACH / 4;

/// The bytes of a read that are requested at once where congestion is controlled: the peer sends
/// them in one go, however small the window is.
const CONTROLLED_PART: u32 = 64 << 10;

impl RetryPolicy {
    fn of(sending: &Sending, mtu: PathMtu) -> Self {
        let &Sending { patience, window, retries, rnr_retries, reads, ask_each, metadata, .. } =
            sending;
        // One half of a window comes while the other is requested.
        let longest = match (sending.congestion, sending.selective) {
            (true, true) => (CONTROLLED_PART / mtu.bytes() as u32).max(1),
            (false, true) => LONGEST_REPAIRED,
            _ => LONGEST_PART,
        };
        Self {
            patience: nanos(patience),
            window,
            retries,
            rnr_retries,
            read_part: (window / 2).clamp(1, longest),
            reads,
            ask_each,
            metadata,
        }
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
            policy: RetryPolicy::of(&sending, PathMtu::Mtu256),
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
            selective: false,
            probes: 0,
            repair: None,
            arrived_ahead: 0,
            control: None,
            paths: None,
        }
    }

    pub fn start(&mut self, sending: Sending, mtu: PathMtu, lossless: bool) {
        let sending = Sending {
            selective: sending.selective && !lossless,
            congestion: sending.congestion && !lossless,
            ..sending
        };
        let first = sending.first;
        (self.oldest_psn, self.next_psn, self.unsent_psn, self.last_memory_psn) =
            (first, first, first, first);
        self.rto = Rto::new(sending.timeout, sending.peer_delay);
        (self.policy, self.open_window) = (RetryPolicy::of(&sending, mtu), sending.window);
        self.lossless = lossless;
        self.selective = sending.selective;
        self.control = sending.congestion.then(|| {
            let control = match sending.selective {
                true => Control::new(first, mtu, sending.window),
                false => Control::by_notifications(first, mtu, sending.window),
            };
            self.open_window = control.window();
            Box::new(control)
        });
    }

    pub fn forget(&mut self) {
        self.stop();
        (self.head_acknowledged, self.cursor, self.cursor_packet, self.unasked) = (0, 0, 0, 0);
        (self.reads_outstanding, self.msn_offset, self.rerequested) = (0, 0, None);
        (self.writes_locally, self.local_write_done) = (false, false);
        self.timeout_retry = None;
        (self.completed, self.credit) = (Msn::new(0), None);
        (self.tries, self.rnr_tries) = (0, 0);
        (self.repair, self.arrived_ahead, self.probes) = (None, 0, 0);
        (self.control, self.paths) = (None, None);
    }

    pub fn stop(&mut self) {
        (self.retry_at, self.resume_at, self.mid_message_ticket) = (None, None, None);
        self.rto.discard_sample();
    }

    pub fn outstanding(&self) -> usize {
        self.work.waiting()
    }

    /// Whether a packet with this number may be under way: one that is not acknowledged, or a
    /// keep-alive packet, which has the number before the first of those.
    pub fn may_be_under_way(&self, psn: Psn) -> bool {
        psn.distance_from(self.oldest_psn.before()) >= 0 && psn.distance_from(self.unsent_psn) < 0
    }

    pub fn is_deserted(&self) -> bool {
        self.work.is_deserted()
    }

    /// The request at the head of the work queue.
    #[inline]
    pub fn front(&mut self) -> Option<&mut Posted> {
        self.work.front()
    }

    /// Drops the request at the head of the work queue, with what is left in it.
    #[inline]
    pub fn drop_front(&mut self) {
        self.work.drop_front();
        self.advance_head(1);
    }

    /// Counts so many requests as completed, which have left the work queue.
    #[inline(always)]
    pub fn count_completed(&mut self, count: usize) {
        self.completed = self.completed.add(count as u32);
        self.advance_head(count);
    }

    /// Counts so many requests fewer before the cursor, since they have left the work queue.
    #[inline(always)]
    fn advance_head(&mut self, count: usize) {
        self.begun = self.begun.saturating_sub(count);
        self.cursor = self.cursor.saturating_sub(count);
    }

    /// How many sequence numbers the packets under way may span: where only what is missing is sent
    /// again, as many as are kept track of.
    #[inline]
    pub fn span(&self) -> u32 {
        if self.selective { REACH } else { u32::MAX }
    }

    /// Whether no packet with a mid-message ticket is under way. One that a response has
    /// acknowledged since is not.
    fn needs_mid_message_ticket(&self) -> bool {
        self.mid_message_ticket.is_none_or(|(_, psn)| psn.distance_from(self.oldest_psn) < 0)
    }

    /// How many packets are unacknowledged.
    #[inline]
    pub fn under_way(&self) -> u32 {
        self.next_psn.distance_from(self.oldest_psn).max(0) as u32
    }

    /// Whether congestion is controlled.
    #[inline]
    pub fn is_controlled(&self) -> bool {
        self.control.is_some()
    }

    /// Whether packets are spaced out, and so each has a turn of its own.
    #[inline]
    pub fn is_spaced(&self) -> bool {
        self.control.as_ref().is_some_and(|control| control.is_spaced())
    }

    /// Whether anything is missing at the peer, or of its responses.
    #[inline]
    pub fn is_repairing(&self) -> bool {
        self.repair.as_ref().is_some_and(|repair| repair.active)
    }

    /// How many packets more may be under way.
    #[inline(always)]
    pub fn window_left(&self, under_way: u32) -> u32 {
        let window = self.open_window.saturating_add(self.arrived_ahead).min(self.span());
        window.saturating_sub(under_way)
    }

    /// Whether a request was begun and is not complete.
    #[inline]
    pub fn has_outstanding(&self) -> bool {
        self.begun > 0
    }

    /// Sets the cursor to a packet of a request that was begun.
    pub fn move_cursor(&mut self, psn: Psn, mtu: PathMtu) {
        (self.mid_message_ticket, self.timeout_retry) = (None, None);
        (self.next_psn, (self.cursor, self.cursor_packet)) = (psn, self.position_of(psn, mtu));
    }

    /// Returns the position of a packet: how many of the requests that were begun stand before its
    /// request, and how many packets of that request stand before it.
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

    /// How many packets the request behind `index` others takes. A write that was carried out here
    /// takes none.
    #[inline]
    fn packets_of(&mut self, index: usize, mtu: PathMtu) -> u32 {
        self.work.peek(index).map_or(1, |posted| match posted.written_locally.get() {
            true => 0,
            false => mtu.packets(posted.len),
        })
    }

    /// Whether the request at the head is completed only by a response of its own.
    #[inline]
    pub fn head_needs_response(&mut self) -> bool {
        self.work.front().is_some_and(|posted| posted.needs_response())
    }

    /// How many messages behind those that are complete the peer has receives for, if the peer said
    /// so.
    #[inline(always)]
    pub fn receives_left(&self) -> Option<i32> {
        let complete = Psn::new(self.completed.get()).add(self.msn_offset);
        self.credit.map(|last| Psn::new(last.get()).distance_from(complete))
    }

    /// Whether the peer has said that it has no receives for messages behind the one that comes
    /// `index` others after those that are complete.
    #[inline]
    pub fn exhausts_credit(&self, index: usize) -> bool {
        self.receives_left().is_some_and(|receives| index as i32 + 1 >= receives)
    }

    /// Whether the peer has said that it has no receive for one more message behind those under
    /// way. Most often that is known without looking at those under way, not all of which take a
    /// receive.
    #[inline]
    pub fn is_out_of_receives(&self) -> bool {
        self.cursor > 0 && self.exhausts_credit(self.cursor - 1) && self.has_used_receives()
    }

    /// Whether the messages under way take all receives that the peer has. A write that was carried
    /// out here is no message to the peer, and is counted here since `msn_offset` subtracts it.
    #[inline(never)]
    fn has_used_receives(&self) -> bool {
        let under_way = self.work.seen_range(0..self.cursor);
        let took = under_way
            .filter(|posted| posted.request.takes_receive() || posted.written_locally.get());
        self.receives_left().is_some_and(|receives| took.count() as i32 >= receives)
    }

    /// How many more requests than the one behind `index` others stand before the next of two
    /// limits: half of the queue under way, and all of it. At each limit an acknowledgement is
    /// asked for, so that room in the queue is learned of.
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

    /// Uses one of the `promised` completion slots for the request at the cursor, which is to be
    /// begun. If none is left, slots are reserved for all requests that wait.
    #[inline(always)]
    pub fn take_completion_slot(
        &self,
        promised: &mut usize,
        completions: &mut CompletionSlots,
    ) -> Result<(), RequesterTurn> {
        if *promised == 0 {
            let wait = self.work.seen_behind(self.cursor).min(QUANTUM as usize);
            *promised = completions.reserve_up_to(wait);
        }
        *promised = promised.checked_sub(1).ok_or(RequesterTurn::Starved)?;
        Ok(())
    }

    /// Returns the part of a message of `len` bytes that goes into the packet at the cursor: where
    /// it begins, and how long it is.
    #[inline]
    pub fn part_at_cursor(&self, len: u32, mtu: u32) -> (u32, u32) {
        let offset = self.cursor_packet * mtu;
        (offset, (len - offset).min(mtu))
    }

    /// Returns the packet at the cursor, and the request that it belongs to.
    pub fn at_cursor(&mut self) -> (Psn, Option<&Posted>) {
        (self.next_psn, self.work.peek(self.cursor))
    }

    /// Moves the cursor behind what was sent. `packets` is how many sequence numbers that takes,
    /// with those of the response.
    #[inline(always)]
    pub fn advance_cursor(&mut self, packets: u32, ask: bool, ends: bool, ticket: u64, now: Time) {
        let beyond = self.next_psn.add(packets);
        if ask && self.next_psn == self.unsent_psn {
            self.rto.start_sample(self.next_psn, now);
        }
        // A part of a read that is requested again may reach further than it did before.
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
            self.mid_message_ticket = Some((Ticket::new(ticket), self.next_psn.before()));
        }
    }
}

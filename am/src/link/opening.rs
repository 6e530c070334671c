//! The life of a link: made, open, over.

use std::num::NonZeroU16;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use doorbell_verbs::floor::{Prober, locked};
use doorbell_verbs::{Connection, ConnectionState, Ending, Queues};
use tokio::task::AbortHandle;

use super::outbox::Outbox;
use super::resting::Stage;
use super::{Link, LocalEndpoint, SendSide, Sending};
use crate::config::Flow;
use crate::credits::{PendingTable, Usage};
use crate::error::{SendError, Unsent, WhyGone};
use crate::receives::Buffers;
use crate::shared::Deferral;
use crate::wire::{Admission, Hello, MOST_CREDITS, Meeting, NOWHERE, Size, Taken};

impl Link {
    /// Makes a link whose connection is being made, with `grants` receives for the peer's requests
    /// and `leases` receives for the answers to this side's.
    pub fn new(
        endpoint: Arc<LocalEndpoint>,
        connection: Connection,
        (size, buffers): (Size, Arc<Buffers>),
        (grants, leases): (usize, usize),
    ) -> Self {
        let own_receives = (endpoint.config.flow != Flow::Credits).then(Box::default);
        // Where the NIC controls the flow, nothing else bounds what is under way. And a lossless
        // device says itself how far the peer has come.
        let credits = endpoint.config.credits_of(size);
        let piggybacks = own_receives.is_none() && !endpoint.nic.capabilities().lossless;
        let first = endpoint.config.first_credits_of(size);
        let ack_step = (piggybacks && credits <= Taken::MOST_CREDITS)
            .then(|| (first / 4).max(1) as u16)
            .and_then(NonZeroU16::new);
        Self {
            own_receives,
            size,
            buffers,
            usage: Usage::default(),
            rare: OnceLock::new(),
            own_limit: leases.max(1) as u16,
            endpoint,
            connection,
            peer: OnceLock::new(),
            meeting: OnceLock::new(),
            same_handlers: AtomicBool::new(false),
            names: OnceLock::new(),
            admission: Admission::default(),
            stage: AtomicU8::new(Stage::Closed as u8),
            cut_off: AtomicBool::new(false),
            departed: AtomicBool::new(false),
            noted: AtomicU64::new(0),
            // No more than there may be credits, which fit 16 bits.
            grants: AtomicU16::new(grants as u16),
            received: AtomicU32::new(0),
            answered: AtomicU32::new(0),
            unreported: AtomicU16::new(0),
            received_at_mark: AtomicU32::new(0),
            recalled: AtomicBool::new(false),
            messages: AtomicU16::new(0),
            ack_heard: AtomicU16::new(0),
            ack_used: AtomicU16::new(0),
            ack_step,
            changes: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            prober: Prober::default(),
            address: OnceLock::new(),
            sending: Mutex::new(SendSide::new(leases as u16)),
        }
    }

    /// Takes in the greeting of the peer, and the meeting that the greetings of both sides make.
    pub fn greeted(&self, hello: Hello, meeting: Meeting) {
        let _ = self.meeting.set(meeting);
        let same = hello.handlers == self.endpoint.digest;
        self.same_handlers.store(same, Ordering::Relaxed);
        self.send_side().segment = hello.segment;
        let _ = self.peer.set(hello.nature);
    }

    /// Opens the link for sending, since its connection stands. Returns `false` if the link is over
    /// already.
    pub fn open(&self, queues: Queues) -> bool {
        let Queues { send, receive, .. } = queues;
        let mut out = self.send_side();
        if out.ending.is_some() {
            return false;
        }
        if let Some(own) = &self.own_receives {
            own.open(receive);
        }
        out.credits = self.peer().map_or(0, |peer| peer.credits);
        let lossless = self.endpoint.nic.capabilities().lossless;
        // A peer that leaves flow control to its NIC grants the most credits there can be, and has
        // fewer receives than that.
        let counts = usize::from(out.credits) < MOST_CREDITS;
        let copies = self.own_receives.is_none() && counts && lossless;
        out.outbox = Some(Outbox::new(send, copies));
        self.changed(&mut out);
        let credits = out.credits;
        out.wake(credits.into());
        true
    }

    /// Cuts the link off: no message behind the one that is being handled will be handled.
    pub fn cut_off(&self) {
        self.cut_off.store(true, Ordering::Relaxed);
        self.close();
    }

    pub fn is_cut_off(&self) -> bool {
        self.cut_off.load(Ordering::Relaxed)
    }

    /// Returns whether no further message of the link will take one of the shared receives, and
    /// those that did are in the completion queue.
    pub fn takes_no_more(&self) -> bool {
        self.own_receives.is_some() || self.connection.had_last_receive()
    }

    /// Returns whether the link is over, or may end soon, so that its receives become free.
    pub fn is_leaving(&self) -> bool {
        // A link that is over has no receives promised.
        let ended =
            self.grants() == 0 || matches!(self.connection.state(), ConnectionState::Ended(_));
        ended || !self.usage.is_open()
    }

    /// Returns a count that grows whenever something changes that a task may wait for.
    #[inline]
    pub fn changes(&self) -> u32 {
        self.changes.load(Ordering::Acquire)
    }

    /// Counts a change that a task may wait for. The caller holds the lock of the sending side.
    #[inline]
    pub(super) fn changed(&self, _out: &mut SendSide) {
        let changes = self.changes.load(Ordering::Relaxed).wrapping_add(1);
        self.changes.store(changes, Ordering::Release);
    }

    /// Locks the sending side of the link.
    #[inline]
    pub fn send_side(&self) -> Sending<'_> {
        let deferral = Deferral::new();
        Sending { out: locked(&self.sending), _deferral: deferral }
    }

    /// Ends the link, and wakes all tasks that wait for something of it, except for answers to calls:
    /// an answer may have come and wait to be handled, until the link [departs](Self::departs). What
    /// was sent goes on to the peer for a time of at most `lingers`. Returns the number of requests
    /// that are lost and that no caller waits for, or `None` if the link was over before.
    #[cold]
    pub fn end(&self, ending: Ending, lingers: Duration) -> Option<usize> {
        // Tasks are woken once the link holds nothing any more.
        let _deferral = Deferral::new();
        let mut out = self.send_side();
        if out.ending.is_some() {
            return None;
        }
        out.ending = Some(Box::new(ending));
        let lost = usize::from(std::mem::take(&mut out.one_way));
        let lost = lost + out.late.as_mut().map_or(0, |late| late.lose_one_way());
        // The queue pair goes with its send queue.
        let outbox = out.outbox.take();
        let mapped = out.mapped.take();
        let waiters = std::mem::take(&mut out.waiters);
        out.placements.iter_mut().for_each(|placements| placements.end());
        let tasks = out.retained.as_mut().map(|retained| retained.end());
        self.changed(&mut out);
        drop(out);
        match outbox {
            Some(outbox) if !lingers.is_zero() => outbox.linger(lingers, self.parting()),
            outbox => drop(outbox),
        }
        drop(mapped);
        tasks.iter().flatten().for_each(AbortHandle::abort);
        self.own_receives.iter().for_each(|own| own.close());
        waiters.into_iter().for_each(|waiters| waiters.wake_all());
        Some(lost)
    }

    /// Returns why the link is over, if it is.
    pub fn ending(&self) -> Option<Ending> {
        self.send_side().ending.as_deref().cloned()
    }

    /// Returns the error of a message that can't be sent because the link is over, if it is.
    #[cold]
    pub fn gone(&self, out: &SendSide) -> Option<SendError> {
        let ending = out.ending.as_deref().cloned()?;
        let (what, why) = (Unsent::Message, WhyGone::Ended(ending));
        Some(SendError::Gone { peer: self.peer_text(), what, why })
    }

    /// Fails if the link is over.
    #[inline]
    pub(super) fn check_stands(&self, out: &SendSide) -> Result<(), SendError> {
        if out.ending.is_none() { Ok(()) } else { self.gone(out).map_or(Ok(()), Err) }
    }
}

impl SendSide {
    /// Makes the sending side of a link that is not open yet, with receives for `leases` answers.
    fn new(leases: u16) -> Self {
        Self {
            outbox: None,
            ending: None,
            announced: false,
            segment: NOWHERE,
            mapped: None,
            asked_to_map: false,
            granted_segment: false,
            left_for_answers: 0,
            awaits_credit: false,
            credits: 0,
            one_way: 0,
            under_way: 0,
            least_leases: leases,
            leases,
            uses: 0,
            heard: 0,
            asked: 0,
            closing: None,
            calls: PendingTable::default(),
            late: None,
            placements: None,
            retained: None,
            waiters: None,
        }
    }

    /// Returns whether the link is not over.
    pub fn stands(&self) -> bool {
        self.ending.is_none()
    }
}

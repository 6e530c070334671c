//! The rings between programs and their NIC: work queues, receive queues, completion queues.
//!
//! Each has one end here and one there, of which either may be on any thread. A request stays in
//! its ring until it is complete: the ring is the retransmission state, and its depth the bound on
//! what is outstanding. A completion's slot is reserved when its request is begun, so a completion
//! queue can't overflow: while it is full, requests wait in their queues, and receives count as
//! not posted.

mod debug;

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use thiserror::Error;

use crate::wire::{Psn, Qpn, Service};

use super::completion::Completion;
use super::doorbells::Doorbells;
use super::resources::DEEPEST;
use super::ring::{Consumer, Gauge, Leaving, Nothing, Producer, Several, Slot, ring};
use super::states::State;
use super::work::{LONGEST_MESSAGE, Memory, Plain, ReceiveRequest, WorkRequest};

/// Why a request was not posted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum PostError {
    /// As many requests as the queue holds are outstanding.
    #[error(
        "the queue of {qpn} holds {depth} requests, and all are outstanding: await some of them, or take \
         their completions, before posting more; or configure a deeper queue"
    )]
    Full {
        /// The queue pair.
        qpn: Qpn,
        /// How many requests its queue holds.
        depth: usize,
    },
    /// As many receives as a shared queue holds are posted.
    #[error(
        "the shared queue holds {depth} receives, and all are posted: post more when messages have \
         come and their completions were taken, or make a longer queue"
    )]
    SharedFull {
        /// How many receives it holds.
        depth: usize,
    },
    /// The queue pair takes its receives from a queue that it shares.
    #[error("{qpn} takes its receives from a shared queue: post them there")]
    Shared {
        /// The queue pair.
        qpn: Qpn,
    },
    /// The queue pair takes no such requests in its state.
    #[error("{qpn} is in state {state:?}, where {what} can't be posted")]
    State {
        /// The queue pair.
        qpn: Qpn,
        /// Its state.
        state: State,
        /// What was to be posted.
        what: &'static str,
    },
    /// It is no request that could be carried out.
    #[error(
        "{operation} can't be posted to {qpn}, or not with such data and attachment: reads need \
         memory to put what is read, atomic operations take no data, keys are invalidated by sends, \
         metadata goes with writes, unreliable connections only send and write, and \
         datagrams are for queue pairs of their own"
    )]
    Unfit {
        /// The queue pair.
        qpn: Qpn,
        /// What was to be done.
        operation: &'static str,
    },
    /// The message is longer than any may be.
    #[error("a message of {len} bytes is longer than {LONGEST_MESSAGE}")]
    TooLong {
        /// Its length.
        len: u64,
    },
}

/// A request that was not posted, and why.
#[derive(Debug, Error)]
#[error("{why}")]
pub struct Refused<R: std::fmt::Debug> {
    /// Why not.
    pub why: PostError,
    /// The request, unchanged.
    pub request: Box<R>,
}

/// A request in its ring.
pub(super) struct Posted {
    pub request: WorkRequest,
    pub len: u32,
    /// Whether, and how, it is [plain](WorkRequest::plain).
    pub plain: Option<Plain>,
    /// Whether it is a plain send or write, and signalled: then there is nothing else to be told
    /// of.
    pub told: bool,
    /// The device's ticket of its last packet, and the number behind that, once that was sent on a
    /// lossless device.
    pub ticket: Cell<u64>,
    pub beyond: Cell<Psn>,
    /// Whether it is a write that was carried out here.
    pub placed: Cell<bool>,
    /// Whether its bytes are gone, and it can't be sent again.
    pub copied: bool,
}

impl Posted {
    /// A message that was sent, and of which nothing is left but its place in the order.
    #[inline(always)]
    pub fn copied(signalled: bool, ticket: u64, beyond: Psn) -> Self {
        let request = WorkRequest { signalled, ..WorkRequest::send(0, Memory::None) };
        let (ticket, beyond, placed) = (Cell::new(ticket), Cell::new(beyond), Cell::new(false));
        let plain = Some(Plain::Send);
        Self { request, len: 0, plain, told: signalled, ticket, beyond, placed, copied: true }
    }

    /// Its last packet was sent.
    #[inline(always)]
    pub fn sent(&self, ticket: u64, beyond: Psn) {
        self.ticket.set(ticket);
        self.beyond.set(beyond);
    }

    /// Whether it asks for something, which only an answer of its own completes.
    #[inline(always)]
    pub fn asks(&self) -> bool {
        !self.told && self.request.operation.asks()
    }
}

/// What the program's ends of a queue pair share with the NIC.
#[derive(Clone)]
pub(super) struct Shared {
    pub qpn: Qpn,
    pub place: u32,
    pub service: Service,
    pub state: Arc<AtomicU8>,
    pub doorbells: Arc<Doorbells>,
}

impl Shared {
    /// Whether the state is this one, or one behind it.
    #[inline]
    fn is_from(&self, state: State) -> bool {
        self.state.load(Ordering::Acquire) >= state as u8
    }

    fn state(&self) -> State {
        State::from_code(self.state.load(Ordering::Acquire))
    }
}

/// The program's end of a send queue.
pub struct SendQueue {
    shared: Shared,
    ring: Producer<Posted>,
}

/// The program's end of a receive queue.
pub struct ReceiveQueue {
    shared: Shared,
    /// One that holds none, if receives come from a queue that is shared.
    ring: Producer<ReceiveRequest>,
}

/// The program's end of a completion queue.
pub struct CompletionQueue {
    ring: Consumer<Completion>,
}

impl SendQueue {
    pub(super) fn new(shared: Shared, depth: usize) -> (Self, Consumer<Posted>) {
        let (ring, taken) = ring(depth);
        (Self { shared, ring }, taken)
    }

    /// The queue pair.
    pub fn qpn(&self) -> Qpn {
        self.shared.qpn
    }

    /// How many more requests there is room for.
    #[inline]
    pub fn room(&self) -> usize {
        self.ring.room()
    }

    /// Writes a request to the queue. The NIC learns of it when the [doorbell](Self::ring) is
    /// rung, of several requests at once if the program likes.
    ///
    /// # Errors
    /// When the queue is full, the queue pair not ready to send, or the message too long. The
    /// request comes back.
    #[inline(always)]
    pub fn post(&mut self, request: WorkRequest) -> Result<(), Refused<WorkRequest>> {
        let reliable = self.shared.service == Service::Rc;
        match request.plain() {
            None => self.put_other(request),
            Some(_) if !reliable => self.put_copied((request, None)),
            plain => {
                let len = request.data.len();
                self.put(request, Some(len), plain)
            }
        }
    }

    #[inline(never)]
    fn put_other(&mut self, request: WorkRequest) -> Result<(), Refused<WorkRequest>> {
        let len = request.len(self.shared.service);
        self.put(request, len, None)
    }

    /// The same of a plain request: a copy, within another value so that it is one, for most plain
    /// requests are never in memory but in their slot.
    #[cold]
    fn put_copied(
        &mut self,
        (request, _): (WorkRequest, Option<Plain>),
    ) -> Result<(), Refused<WorkRequest>> {
        self.put_other(request)
    }

    /// Writes a request to the queue that has so many bytes, if it is one that can be.
    #[inline(always)]
    fn put(
        &mut self,
        request: WorkRequest,
        len: Option<u64>,
        plain: Option<Plain>,
    ) -> Result<(), Refused<WorkRequest>> {
        let allowed = self.shared.is_from(State::TAKING_SENDS);
        let fits = len.filter(|&len| allowed && len <= u64::from(LONGEST_MESSAGE));
        match (self.ring.slot(), fits) {
            (Some(slot), Some(len)) => {
                let told = request.signalled && plain.is_some_and(|plain| !plain.asks());
                let (len, ticket) = (len as u32, Cell::new(0));
                let (beyond, placed) = (Cell::new(Psn::new(0)), Cell::new(false));
                slot.fill(Posted {
                    request,
                    len,
                    plain,
                    told,
                    ticket,
                    beyond,
                    placed,
                    copied: false,
                });
            }
            _ => return Err(self.refuse((request, len))),
        }
        Ok(())
    }

    /// Whether three quarters of it are in use.
    #[inline(always)]
    pub(super) fn is_short_of_room(&mut self) -> bool {
        self.ring.slot_beside(self.ring.depth() / 4).is_none()
    }

    /// The slot of a request that is sent before it is written there, if it could be posted.
    #[inline(always)]
    pub(super) fn slot_of_copied(&mut self) -> Option<Slot<'_, Posted>> {
        if self.shared.is_from(State::TAKING_SENDS) { self.ring.slot() } else { None }
    }

    /// In one value with another, so that the request need not be in memory before it is known that
    /// it goes this way.
    #[cold]
    fn refuse(&self, (request, _): (WorkRequest, Option<u64>)) -> Refused<WorkRequest> {
        let (qpn, state) = (self.shared.qpn, self.shared.state());
        let why = match request.len(self.shared.service) {
            _ if !state.takes_sends() => PostError::State { qpn, state, what: "a send" },
            None => PostError::Unfit { qpn, operation: request.operation.name() },
            Some(len) if len > u64::from(LONGEST_MESSAGE) => PostError::TooLong { len },
            Some(_) => PostError::Full { qpn, depth: self.ring.depth() },
        };
        Refused { why, request: Box::new(request) }
    }

    /// Whether it is the NIC with these doorbells that it belongs to.
    #[inline]
    pub(super) fn rings(&self, doorbells: &Arc<Doorbells>) -> bool {
        Arc::ptr_eq(&self.shared.doorbells, doorbells)
    }

    /// Tells the NIC that there is work. It is done in the NIC's next turn.
    #[inline]
    pub fn ring(&self) {
        self.shared.doorbells.ring(self.shared.place);
    }
}

impl ReceiveQueue {
    pub(super) fn new(shared: Shared, depth: usize) -> (Self, Consumer<ReceiveRequest>) {
        let (ring, taken) = ring(depth);
        (Self { shared, ring }, taken)
    }

    /// The end of a queue pair that has no receives of its own.
    pub(super) fn without(shared: Shared, nothing: &Nothing<ReceiveRequest>) -> Self {
        Self { shared, ring: nothing.producer() }
    }

    /// The queue pair.
    pub fn qpn(&self) -> Qpn {
        self.shared.qpn
    }

    /// Whether it is the NIC with these doorbells that it belongs to.
    pub(super) fn rings(&self, doorbells: &Arc<Doorbells>) -> bool {
        Arc::ptr_eq(&self.shared.doorbells, doorbells)
    }

    /// How many more receives there is room for.
    #[inline]
    pub fn room(&self) -> usize {
        self.ring.room()
    }

    /// Posts a receive, for which no doorbell is needed: the NIC looks when a message comes.
    ///
    /// # Errors
    /// When the queue is full, or the queue pair is reset. The receive comes back.
    #[inline(always)]
    pub fn post(&mut self, receive: ReceiveRequest) -> Result<(), Refused<ReceiveRequest>> {
        if !self.shared.is_from(State::TAKING_RECEIVES) {
            return Err(self.refuse((receive, false)));
        }
        match self.ring.slot() {
            Some(slot) => slot.fill(receive),
            None => return Err(self.refuse((receive, true))),
        }
        // Whatever is posted to a broken queue pair is to be flushed. The state is looked at again
        // since it may have broken meanwhile, and the NIC not have seen this receive.
        if self.shared.is_from(State::Error) {
            self.shared.doorbells.ring(self.shared.place);
        }
        Ok(())
    }

    /// Whether the queue pair is broken: then a receive that is posted is flushed, which takes a
    /// turn of the NIC that it asks for, but that somebody must take.
    #[inline]
    pub fn is_flushed(&self) -> bool {
        self.shared.is_from(State::Error)
    }

    #[cold]
    fn refuse(&self, (receive, _): (ReceiveRequest, bool)) -> Refused<ReceiveRequest> {
        let (qpn, state) = (self.shared.qpn, self.shared.state());
        let why = match (self.ring.depth(), state.takes_receives()) {
            (0, _) => PostError::Shared { qpn },
            (_, false) => PostError::State { qpn, state, what: "a receive" },
            (depth, true) => PostError::Full { qpn, depth },
        };
        Refused { why, request: Box::new(receive) }
    }
}

/// The program's end of a receive queue that several queue pairs draw from.
pub struct SharedReceiveQueue {
    /// The receives, with room for a few at first and for more as there are more.
    ring: Producer<ReceiveRequest>,
    /// The most receives.
    most: usize,
}

/// The receives that a shared queue has room for at first.
const FIRST_RECEIVES: usize = 2;

impl SharedReceiveQueue {
    pub(super) fn new(depth: usize) -> (Self, Consumer<ReceiveRequest>) {
        let (ring, taken) = ring(depth.min(FIRST_RECEIVES));
        (Self { ring, most: depth }, taken)
    }

    /// How many more receives there is room for.
    #[inline]
    pub fn room(&self) -> usize {
        self.ring.room() + (self.most - self.ring.depth())
    }

    /// Posts a receive, for whichever queue pair's message comes first.
    ///
    /// # Errors
    /// When the queue is full. The receive comes back.
    #[inline(always)]
    pub fn post(&mut self, receive: ReceiveRequest) -> Result<(), Refused<ReceiveRequest>> {
        match self.ring.slot() {
            Some(slot) => slot.fill(receive),
            None => return self.post_beyond((receive, ())),
        }
        Ok(())
    }

    /// Posts a receive that finds no room, after making more, or refuses it. It comes in one value
    /// with another, for the same reason as a refused [send](SendQueue::refuse).
    #[cold]
    fn post_beyond(
        &mut self,
        (receive, ()): (ReceiveRequest, ()),
    ) -> Result<(), Refused<ReceiveRequest>> {
        self.ring.grow((2 * self.ring.depth()).min(self.most));
        match self.ring.slot() {
            Some(slot) => slot.fill(receive),
            None => {
                let why = PostError::SharedFull { depth: self.most };
                return Err(Refused { why, request: Box::new(receive) });
            }
        }
        Ok(())
    }
}

impl CompletionQueue {
    /// The next completion, if there is one.
    #[inline]
    pub fn poll(&mut self) -> Option<Completion> {
        self.ring.pop()
    }

    /// The next completion, if there is one, where it stands: it leaves the queue when what is
    /// returned is dropped. Less is moved than by a [poll](Self::poll).
    #[inline(always)]
    pub fn poll_in_place(&mut self) -> Option<Polled<'_>> {
        self.ring.head().map(|head| Polled(head.leaving()))
    }

    /// The next completion, if there is one, which stays in the queue. Unlike [`len`](Self::len)
    /// this looks at what the NIC writes only if it knows of none.
    #[inline(always)]
    pub fn peek(&mut self) -> Option<&Completion> {
        self.ring.head().map(|head| head.stay())
    }

    /// The next completion, which [is there](Self::peek): it is moved once less than by a
    /// [poll](Self::poll).
    ///
    /// # Panics
    /// When it is not.
    #[inline(always)]
    pub fn take(&mut self) -> Completion {
        match self.ring.head() {
            Some(head) => head.take(),
            None => panic!("a completion is taken from a queue that is empty"),
        }
    }

    /// How many completions were ever taken, modulo the word's size.
    #[inline]
    pub fn taken(&self) -> usize {
        self.ring.taken()
    }

    /// What tells from anywhere how many there were, while another takes them.
    pub fn gauge(&self) -> CompletionGauge {
        CompletionGauge(self.ring.gauge())
    }

    /// How many completions wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.ring.waiting()
    }

    /// Whether none waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Tells how many completions a queue ever had, without being its reader: for whoever would else
/// have to wait for that in order to see that there is nothing.
pub struct CompletionGauge(Gauge<Completion>);

impl CompletionGauge {
    /// How many there were, modulo the word's size: more than its reader has
    /// [taken](CompletionQueue::taken), if some wait.
    #[inline]
    pub fn came(&self) -> usize {
        self.0.written()
    }
}

/// A completion where it stands in its queue, which it leaves when this is dropped.
#[derive(Debug)]
pub struct Polled<'a>(Leaving<'a, Completion>);

impl Deref for Polled<'_> {
    type Target = Completion;

    #[inline(always)]
    fn deref(&self) -> &Completion {
        &self.0
    }
}

impl DerefMut for Polled<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Completion {
        &mut self.0
    }
}

/// Which completions call for an event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Notify {
    /// Any.
    Any,
    /// Failures, and receives that the peer solicited an event for.
    Solicited,
}

/// What a slot of a completion queue is wanted for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// A request that is to be sent, and will hold the slot until it is acknowledged.
    Send,
    /// A message that is being received.
    Receive,
    /// Something that is to be flushed now.
    Flush,
}

/// The NIC's end of a completion queue.
///
/// Of the slots, one for each receive queue is kept from what is to be sent. Otherwise requests
/// could hold all slots on either side, and wait for ever for the other to receive.
pub(super) struct Completions {
    ring: Producer<Completion>,
    /// Whether there will be more slots when more receive queues end here.
    grows: bool,
    /// Slots promised, and how many of them for messages that are being received.
    reserved: usize,
    receiving: usize,
    pub armed: Option<Notify>,
    /// Whether there is an event that nobody has taken yet.
    pub told: bool,
    /// Whether there is to be one, and whether room was given back.
    untold: bool,
    freed: bool,
    /// How many send queues, and how many receive queues, end here; and how many shared ones are
    /// for queue pairs that do.
    pub senders: usize,
    pub receivers: usize,
    pub shared: usize,
}

impl Completions {
    /// Makes a queue of `capacity` slots, and both of its ends. If it `grows`, there will be more
    /// slots when more receive queues end there.
    pub fn new(capacity: usize, grows: bool) -> (Self, CompletionQueue) {
        let (ring, taken) = ring(capacity);
        let own = Self {
            ring,
            grows,
            reserved: 0,
            receiving: 0,
            armed: None,
            told: false,
            untold: false,
            freed: false,
            senders: 0,
            receivers: 0,
            shared: 0,
        };
        (own, CompletionQueue { ring: taken })
    }

    /// Makes twice as many slots as are needed for so many more queues to end here, if the queue
    /// grows and has fewer than are needed.
    pub fn grow_for(&mut self, senders: usize, receivers: usize) {
        let (has, needs) = self.has_and_needs(senders, receivers);
        if self.grows && has < needs {
            self.ring.grow((2 * needs).next_power_of_two().min(DEEPEST));
        }
    }

    /// How many slots it has, and how many it needs for so many more queues to end here.
    pub fn has_and_needs(&self, senders: usize, receivers: usize) -> (usize, usize) {
        let needs = self.receivers + receivers + usize::from(self.senders + senders > 0);
        (self.ring.depth(), needs)
    }

    /// Whether there are completions that nobody has taken.
    pub fn has_some(&self) -> bool {
        self.ring.room() < self.ring.depth()
    }

    /// Promises a slot, if there is one.
    #[inline]
    pub fn reserve(&mut self, purpose: Purpose) -> bool {
        let kept = match purpose {
            Purpose::Send => self.receivers.saturating_sub(self.receiving),
            Purpose::Receive | Purpose::Flush => 0,
        };
        let room = self.has_more_than(self.reserved + kept);
        if room {
            self.reserved += 1;
            self.receiving += usize::from(purpose == Purpose::Receive);
        }
        room
    }

    /// Promises so many slots to requests that are to be sent, or as many as there are.
    #[inline(always)]
    pub fn reserve_up_to(&mut self, most: usize) -> usize {
        let taken = self.reserved + self.receivers.saturating_sub(self.receiving);
        if self.ring.known_room() < taken + most {
            self.ring.look();
        }
        let count = self.ring.known_room().saturating_sub(taken).min(most);
        self.reserved += count;
        count
    }

    /// A slot beside those that are promised, if there is one, to be filled at once: then that is
    /// to be [told](Self::filled).
    #[inline(always)]
    pub fn slot(&mut self) -> Option<Slot<'_, Completion>> {
        self.ring.slot_beside(self.reserved)
    }

    /// A completion came to a slot that was not promised, an `urgent` one or not. Whether that
    /// calls for anything, to be [seen to](super::common::Common::settle).
    #[inline(always)]
    pub fn filled(&mut self, urgent: bool) -> bool {
        let armed = self.armed.is_some();
        if armed {
            self.call(urgent);
        }
        armed
    }

    #[inline]
    fn has_more_than(&mut self, taken: usize) -> bool {
        self.ring.known_room() > taken || {
            self.ring.look();
            self.ring.known_room() > taken
        }
    }

    /// Gives a promised slot back unused.
    #[inline]
    pub fn release(&mut self, purpose: Purpose) {
        self.reserved -= 1;
        self.receiving -= usize::from(purpose == Purpose::Receive);
    }

    /// A promised slot, to be filled now, `urgent` or not. What that calls for is [to be seen
    /// to](super::common::Common::settle) afterwards.
    #[inline(always)]
    pub fn redeem(&mut self, purpose: Purpose, urgent: bool) -> Slot<'_, Completion> {
        self.release(purpose);
        if self.armed.is_some() {
            self.call(urgent);
        }
        self.ring.slot().expect("a promised slot is there: that is what the promise is")
    }

    /// Slots promised to requests that succeed, to be filled now. How many promises that were, and
    /// how many slots were filled, is to be [said](Self::redeemed) then.
    #[inline(always)]
    pub fn redeem_several(&mut self) -> Several<'_, Completion> {
        self.ring.several()
    }

    /// So many promises to requests are no more, and so many of them filled slots. What that calls
    /// for is [to be seen to](super::common::Common::settle).
    #[inline(always)]
    pub fn redeemed(&mut self, count: usize, filled: usize) {
        self.reserved -= count;
        self.freed |= filled < count;
        if self.armed.is_some() && filled > 0 {
            self.call(false);
        }
    }

    /// Calls for an event, if the queue is armed for what comes.
    #[cold]
    fn call(&mut self, urgent: bool) {
        if urgent || self.armed == Some(Notify::Any) {
            self.armed = None;
            self.untold |= !std::mem::replace(&mut self.told, true);
        }
    }

    /// Whether anything was called for that was not seen to.
    #[inline(always)]
    pub fn calls(&self) -> bool {
        self.untold | self.freed
    }

    /// Whether an event was called for, and whether there is room for those that wait.
    pub fn take_calls(&mut self) -> (bool, bool) {
        (std::mem::take(&mut self.untold), std::mem::take(&mut self.freed))
    }
}

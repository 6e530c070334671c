//! The network adapter in software: a pure state machine.
//!
//! Packets and time go in; packets, a next time-out and completions come out. It does no input or
//! output, reads no clock, and has no randomness but a [`Seed`].
//!
//! # The two sides
//!
//! A **program** holds the ends of rings, which may be used from any thread: a [`SendQueue`] and a
//! [`ReceiveQueue`] for each queue pair, and a [`CompletionQueue`] for as many of them as it likes.
//! It posts a [`WorkRequest`] and rings the doorbell, once for several if it likes.
//!
//! The **NIC** is run by one at a time, whoever has it in hand. A turn is: [`advance`](Nic::advance)
//! if a clock was read; a burst of [`packet`](Inbox::packet)s; [`transmit`](Nic::transmit), which
//! answers doorbells, sends what may be sent, and then what is owed to peers. Before sleeping,
//! [`next_timeout`](Nic::next_timeout) says how long.
//!
//! # What it promises
//!
//! Every request posted to a reliable connection completes exactly once, in the order of its queue,
//! whatever the network does: with success when the peer has all of it, or with a [`Failure`] that
//! says why, and then everything behind it is [flushed](Failure::Flushed). A message is received
//! once, whole, in order, or not at all. Nothing that arrives can make it panic, write outside what
//! was granted, or keep more than its tables: those are allocated when a queue pair is made, and
//! no message allocates anything.
//!
//! On a device that cannot lose, it keeps no timers and sends no acknowledgements: the device says
//! how far the peer has taken its packets ([`Outbox::delivered`]). Refusals are sent all the same.
//!
//! # How it is cut
//!
//! | file | idea |
//! |---|---|
//! | `work`, `completion`, `queues` | what programs see: requests, completions, the rings' ends |
//! | `keys`, `numbering`, `random` | protection; numbers that can't be guessed |
//! | `pair` | a queue pair's states and what breaks it |
//! | `requester`, `rto` | what is sent, and sent again |
//! | `completer` | what the peer answers |
//! | `responder` | what the peer requests |
//! | `common`, `timers`, `doorbells` | what queue pairs share |
//! | `device` | what a device must do, and is told |

mod common;
mod completer;
mod completion;
mod counters;
mod device;
mod doorbells;
mod gather;
mod keys;
mod numbering;
mod pair;
#[cfg_attr(not(feature = "planted-bugs"), allow(dead_code, unreachable_pub))]
mod planted;
mod queues;
mod random;
mod requester;
mod responder;
mod ring;
mod rto;
mod timers;
mod work;

pub use common::{CompletionQueueId, Event};
pub use completion::{Cause, Completion, Done, Failure};
pub use counters::Counters;
pub use device::{Flow, Inbox, Outbox};
pub use keys::{Domain, KeyError, Lkey, Registration, Rights, TableFull};
pub use numbering::{Numbering, NumberingError};
pub use pair::{Change, ChangeError, Connection, Sending, State};
#[cfg(feature = "planted-bugs")]
pub use planted::{Bug, plant};
pub use queues::{CompletionQueue, Notify, PostError, ReceiveQueue, Refused, SendQueue};
pub use random::Seed;
pub use work::{
    Data, Inline, LONGEST_MESSAGE, MOST_INLINE, Memory, Operation, ReceiveRequest, Segment,
    WorkRequest,
};

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use thiserror::Error;

use crate::memory::Region;
use crate::payload::Payload;
use crate::time::Time;
use crate::wire::{Malformed, Packet, Psn, Qpn, Service};

use common::Common;
use doorbells::Doorbells;
use keys::Keys;
use numbering::Numbers;
use pair::{Blamed, QueuePair};
use queues::{Completions, Shared};
use random::Random;
use requester::{Requester, Turn};
use responder::Responder;
use timers::Timers;

/// The most entries of a queue.
const DEEPEST: usize = 1 << 24;

fn check_depth(entries: usize) -> Result<(), ResourceError> {
    match (1..=DEEPEST).contains(&entries) {
        true => Ok(()),
        false => Err(ResourceError::Depth(entries)),
    }
}

/// Packets that a queue pair sends before the next has its turn.
const QUANTUM: u32 = 32;

/// How large a NIC's tables are, and what its device is like.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The most queue pairs, at least one; the numbering may allow fewer.
    pub queue_pairs: usize,
    /// The most registrations, rounded up to a power of two; from 1 to 2²⁰.
    pub registrations: usize,
    /// Which queue pair numbers are this NIC's.
    pub numbering: Numbering,
    /// Whether the device can't lose, repeat or reorder, and tells how far packets were taken.
    pub lossless: bool,
}

impl Default for Config {
    fn default() -> Self {
        let numbering = Numbering::default();
        Self { queue_pairs: 1024, registrations: 4096, numbering, lossless: false }
    }
}

/// Where a queue pair's completions go, and how deep its queues are.
#[derive(Clone, Copy, Debug)]
pub struct QueuePairConfig {
    /// The protection domain.
    pub domain: Domain,
    /// For the completions of sends.
    pub send_completions: CompletionQueueId,
    /// For the completions of receives; it may be the same.
    pub receive_completions: CompletionQueueId,
    /// How many sends may be outstanding.
    pub send_depth: usize,
    /// How many receives may be outstanding.
    pub receive_depth: usize,
}

/// Why something was not made, or not taken down.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ResourceError {
    /// The table is full.
    #[error("all {0} queue pairs of this NIC are taken: take some down, or configure more")]
    QueuePairsFull(usize),
    /// There is no such completion queue.
    #[error("{0:?} is not a completion queue of this NIC")]
    NoSuchCompletionQueue(CompletionQueueId),
    /// A queue of no entries holds nothing, and one of very many no computer does.
    #[error("a queue of {0} entries: it must have from 1 to {DEEPEST}")]
    Depth(usize),
    /// A completion queue has too few entries. Each receive queue that ends in it has one that
    /// nothing else takes, and what is sent needs one more.
    #[error("{queue:?} has {has} entries, and needs {needs}: one a receive queue, one for sends")]
    QueueTooSmall {
        /// The completion queue.
        queue: CompletionQueueId,
        /// How many entries it has.
        has: usize,
        /// How many it needs.
        needs: usize,
    },
    /// A completion queue is in use.
    #[error("{users} queues of queue pairs end in {queue:?}: take them down first")]
    InUse {
        /// The completion queue.
        queue: CompletionQueueId,
        /// How many.
        users: usize,
    },
    /// There is no such queue pair.
    #[error("{0} is not a queue pair of this NIC")]
    NoSuchQueuePair(Qpn),
    /// A queue pair's requests are not all flushed.
    #[error(
        "{qpn} has {outstanding} requests outstanding: poll its completion queues, which are full"
    )]
    Outstanding {
        /// The queue pair.
        qpn: Qpn,
        /// How many.
        outstanding: usize,
    },
}

/// A queue pair's ends for its program.
pub struct QueuePairEnds {
    /// Its number, which the peer must be told.
    pub qpn: Qpn,
    /// Where sends and writes are posted.
    pub send: SendQueue,
    /// Where receives are posted.
    pub receive: ReceiveQueue,
}

/// A network adapter in software. See the [module](self).
pub struct Nic {
    common: Common,
    pairs: Vec<Option<Box<QueuePair>>>,
    /// Places in the order in which they were left, so that a number is long out of use before it
    /// is used again.
    free: VecDeque<u32>,
    numbers: Numbers,
    random: Random,
    doorbells: Arc<Doorbells>,
    domains: u32,
    /// Places whose timers went off, while they are seen to.
    fired: Vec<u32>,
}

/// Making and taking down.
impl Nic {
    /// A NIC with empty tables.
    ///
    /// # Errors
    /// When the numbering can't be.
    pub fn new(config: Config, seed: Seed) -> Result<Self, NumberingError> {
        let mut random = Random::new(seed);
        let numbers = Numbers::new(config.numbering, random.u32())?;
        let capacity = config.queue_pairs.clamp(1, numbers.capacity());
        let places = 0..capacity as u32;
        Ok(Self {
            common: Common {
                now: Time::ZERO,
                lossless: config.lossless,
                keys: Keys::new(config.registrations),
                completions: Vec::new(),
                counters: Counters::default(),
                timers: Timers::new(capacity),
                active: VecDeque::with_capacity(capacity),
                starved: Vec::with_capacity(capacity),
                answers: VecDeque::with_capacity(capacity),
                behind: false,
                flying: Vec::with_capacity(capacity),
                events: VecDeque::new(),
            },
            pairs: (0..capacity).map(|_| None).collect(),
            free: places.filter(|&place| numbers.number(place).is_some()).collect(),
            numbers,
            random,
            doorbells: Arc::new(Doorbells::new(capacity)),
            domains: 0,
            fired: Vec::with_capacity(capacity),
        })
    }

    /// A new protection domain.
    pub fn domain(&mut self) -> Domain {
        self.domains += 1;
        Domain(self.domains)
    }

    /// Registers memory, and gives its keys and its address.
    ///
    /// # Errors
    /// When the table is full.
    pub fn register(
        &mut self,
        domain: Domain,
        region: Region,
        rights: Rights,
    ) -> Result<Registration, TableFull> {
        self.common.keys.register(&mut self.random, domain, region, rights)
    }

    /// Takes a registration back: when this returns, no peer and no request reaches the memory by
    /// its keys any more.
    ///
    /// # Errors
    /// When there is none.
    pub fn deregister(&mut self, lkey: Lkey) -> Result<Region, KeyError> {
        self.common.keys.deregister(lkey)
    }

    /// Makes a completion queue of `capacity` entries.
    ///
    /// # Errors
    /// When that is none.
    pub fn completion_queue(
        &mut self,
        capacity: usize,
    ) -> Result<(CompletionQueueId, CompletionQueue), ResourceError> {
        check_depth(capacity)?;
        let (own, programs) = Completions::new(capacity);
        let queues = &mut self.common.completions;
        let place = queues.iter().position(Option::is_none).unwrap_or_else(|| {
            queues.push(None);
            queues.len() - 1
        });
        queues[place] = Some(own);
        Ok((CompletionQueueId(place as u32), programs))
    }

    /// Takes a completion queue down; its program may still poll what is in it.
    ///
    /// # Errors
    /// When there is none, or it is in use.
    pub fn drop_completion_queue(&mut self, queue: CompletionQueueId) -> Result<(), ResourceError> {
        let found = self.completions(queue)?;
        match found.senders + found.receivers {
            0 => self.common.completions[queue.0 as usize] = None,
            users => return Err(ResourceError::InUse { queue, users }),
        }
        Ok(())
    }

    fn completions(&mut self, queue: CompletionQueueId) -> Result<&mut Completions, ResourceError> {
        let found = self.common.completions.get_mut(queue.0 as usize).and_then(Option::as_mut);
        found.ok_or(ResourceError::NoSuchCompletionQueue(queue))
    }

    /// Whether a completion queue has slots enough for so many more queues to end there.
    fn check_room(
        &mut self,
        queue: CompletionQueueId,
        senders: usize,
        receivers: usize,
    ) -> Result<(), ResourceError> {
        match self.completions(queue)?.has_and_needs(senders, receivers) {
            (has, needs) if has < needs => Err(ResourceError::QueueTooSmall { queue, has, needs }),
            _ => Ok(()),
        }
    }

    /// Makes a queue pair, in the reset state.
    ///
    /// # Errors
    /// When the table is full, a completion queue does not exist or is too small, or a depth is
    /// none.
    pub fn queue_pair(&mut self, config: &QueuePairConfig) -> Result<QueuePairEnds, ResourceError> {
        let queues = (config.send_completions, config.receive_completions);
        check_depth(config.send_depth)?;
        check_depth(config.receive_depth)?;
        let shared = usize::from(queues.0 == queues.1);
        self.check_room(queues.0, 1, shared)?;
        self.check_room(queues.1, shared, 1)?;
        let full = ResourceError::QueuePairsFull(self.pairs.len());
        let place = self.free.pop_front().ok_or(full)?;
        let qpn = self.numbers.number(place).ok_or(full)?;
        self.completions(queues.0)?.senders += 1;
        self.completions(queues.1)?.receivers += 1;
        let state = Arc::new(AtomicU8::new(State::Reset as u8));
        let shared = Shared { qpn, place, state, doorbells: Arc::clone(&self.doorbells) };
        let (send, sends) = SendQueue::new(shared.clone(), config.send_depth);
        let (receive, receives) = ReceiveQueue::new(shared.clone(), config.receive_depth);
        let queues = (queues.0.0, queues.1.0);
        let sides = (Requester::new(sends), Responder::new(receives));
        let pair = QueuePair::new(shared, config.domain, queues, sides.0, sides.1);
        self.pairs[place as usize] = Some(Box::new(pair));
        Ok(QueuePairEnds { qpn, send, receive })
    }

    /// Takes a queue pair down. What is posted is flushed first.
    ///
    /// # Errors
    /// When there is none, or its completion queues have no room for what must be flushed; then it
    /// is in the error state.
    pub fn drop_queue_pair(&mut self, qpn: Qpn) -> Result<(), ResourceError> {
        let place = self.numbers.place(qpn).filter(|&place| place < self.pairs.len());
        let found = place.and_then(|place| self.pairs[place].as_mut());
        let (Some(place), Some(pair)) = (place, found) else {
            return Err(ResourceError::NoSuchQueuePair(qpn));
        };
        pair.break_with(Cause::Told, Blamed::Nothing, &mut self.common);
        if pair.flush(&mut self.common) == Turn::Starved {
            let outstanding = pair.outstanding();
            return Err(ResourceError::Outstanding { qpn, outstanding });
        }
        // Nobody would ever complete what is posted from now on: it is refused.
        pair.enter(State::Reset);
        let queues = (pair.send_completions, pair.receive_completions);
        self.common.forget(place as u32, qpn);
        self.pairs[place] = None;
        self.free.push_back(place as u32);
        self.completions(CompletionQueueId(queues.0))?.senders -= 1;
        self.completions(CompletionQueueId(queues.1))?.receivers -= 1;
        Ok(())
    }

    /// Changes the state of a queue pair.
    ///
    /// # Errors
    /// When there is none, or no way from its state.
    pub fn change(&mut self, qpn: Qpn, change: Change) -> Result<(), ChangeError> {
        let Self { pairs, common, numbers, .. } = self;
        let pair = find(pairs, *numbers, qpn).ok_or(ChangeError::NoSuchQueuePair(qpn))?;
        pair.change(change, common)
    }

    /// The state of a queue pair.
    pub fn state(&self, qpn: Qpn) -> Option<State> {
        let pair = self.numbers.place(qpn).and_then(|place| self.pairs.get(place)?.as_ref());
        pair.filter(|pair| pair.number() == qpn).map(|pair| pair.state)
    }

    /// A first sequence number that nobody can guess.
    pub fn first_psn(&mut self) -> Psn {
        Psn::new(self.random.u32())
    }
}

#[inline]
fn find(
    pairs: &mut [Option<Box<QueuePair>>],
    numbers: Numbers,
    qpn: Qpn,
) -> Option<&mut QueuePair> {
    pairs.get_mut(numbers.place(qpn)?)?.as_deref_mut()
}

/// Has a queue pair, which is taken off the list, send or flush what it can, and enters it where it
/// belongs then. Not if the device has no room: whether it had.
#[inline]
fn serve<O: Outbox>(pair: &mut QueuePair, common: &mut Common, outbox: &mut O) -> bool {
    let turn = match pair.state {
        State::Error => pair.flush(common),
        _ => pair.send(common, outbox, QUANTUM),
    };
    let place = pair.shared.place;
    match turn {
        Turn::Idle => pair.active = false,
        Turn::More => common.active.push_back(place),
        Turn::Starved => common.starve(place),
        Turn::DeviceFull => return false,
    }
    true
}

/// Progress.
impl Nic {
    /// Tells the time, and does what it has come for. The time that packets are sent and received
    /// at is the last that was told: let it not be much older than what matters to time-outs.
    pub fn advance(&mut self, now: Time) {
        let Self { common, pairs, fired, .. } = self;
        common.now = common.now.max(now);
        common.timers.expire(common.now, fired);
        for place in fired.drain(..) {
            if let Some(pair) = pairs[place as usize].as_deref_mut() {
                pair.expire(common);
            }
        }
    }

    /// The next moment at which to [advance](Self::advance), if nothing happens before.
    pub fn next_timeout(&self) -> Option<Time> {
        self.common.timers.next()
    }

    /// Whether there is anything for [`transmit`](Self::transmit) to do.
    #[inline]
    pub fn has_work(&self) -> bool {
        let common = &self.common;
        !common.active.is_empty() || !common.answers.is_empty() || self.doorbells.any()
    }

    /// Posts a request, and sends it at once: for whoever has the NIC in hand, and needs no doorbell
    /// to call it. What else there is to do is left to the next turn.
    ///
    /// # Errors
    /// As [`SendQueue::post`].
    #[inline]
    pub fn post<O: Outbox>(
        &mut self,
        queue: &mut SendQueue,
        request: WorkRequest,
        outbox: &mut O,
    ) -> Result<(), Refused<WorkRequest>> {
        queue.post(request)?;
        let ours = queue.rings(&self.doorbells);
        match find(&mut self.pairs, self.numbers, queue.qpn()).filter(|_| ours) {
            Some(pair) if !pair.active => {
                pair.active = true;
                if !serve(pair, &mut self.common, outbox) {
                    self.common.active.push_back(pair.shared.place);
                }
                outbox.flush();
            }
            // Others, or requests before this one, have their turn first.
            Some(_) => self.transmit(outbox),
            None => queue.ring(),
        }
        Ok(())
    }

    /// Sends what was posted, as far as it may be sent, and then what is owed to peers: data goes
    /// first, for somebody waits for it.
    #[inline]
    pub fn transmit<O: Outbox>(&mut self, outbox: &mut O) {
        let Self { common, pairs, doorbells, .. } = self;
        doorbells.answer(|place| {
            if let Some(pair) = pairs[place as usize].as_deref_mut() {
                common.activate(pair);
            }
        });
        common.feed();
        // What the device had no room for goes before everything else, or a stream of data would
        // keep it waiting for ever.
        if common.behind {
            self.answer(outbox);
        }
        self.send(outbox);
        self.answer(outbox);
        outbox.flush();
    }

    #[inline]
    fn send<O: Outbox>(&mut self, outbox: &mut O) {
        let Self { common, pairs, .. } = self;
        while let Some(place) = common.active.pop_front() {
            let Some(pair) = pairs[place as usize].as_deref_mut() else { continue };
            if !serve(pair, common, outbox) {
                return common.active.push_back(place);
            }
        }
    }

    #[inline]
    fn answer<O: Outbox>(&mut self, outbox: &mut O) {
        let Self { common, pairs, .. } = self;
        common.behind = false;
        while let Some(place) = common.answers.pop_front() {
            let Some(pair) = pairs[place as usize].as_deref_mut() else { continue };
            if !pair.answer(common, outbox) {
                common.behind = true;
                return common.answers.push_front(place);
            }
        }
    }

    /// Notes what a lossless device has delivered. To be called before a burst of packets is
    /// received, and [`collect`](Self::collect) when there are no more of them: a refusal is there
    /// before the progress that it contradicts, and must be seen before that is believed. Other
    /// devices need neither call.
    pub fn look<O: Outbox>(&mut self, outbox: &mut O) {
        let Self { common, pairs, .. } = self;
        for &place in &common.flying {
            if let Some(pair) = pairs[place as usize].as_deref_mut() {
                pair.look(outbox);
            }
        }
    }

    /// Completes what was delivered when it was last [looked](Self::look) for.
    pub fn collect(&mut self) {
        let Self { common, pairs, .. } = self;
        let mut index = 0;
        while let Some(&place) = common.flying.get(index) {
            let pair = pairs[place as usize].as_deref_mut();
            match pair.is_some_and(|pair| pair.collect(common)) {
                true => index += 1,
                false => drop(common.flying.swap_remove(index)),
            }
        }
    }

    /// Asks for an event when the next completion comes to a queue, or the next of those that the
    /// peer or a failure makes urgent. Look at the queue once more afterwards, before sleeping.
    ///
    /// # Errors
    /// When there is no such queue.
    pub fn arm(&mut self, queue: CompletionQueueId, notify: Notify) -> Result<(), ResourceError> {
        self.completions(queue)?.armed = Some(notify);
        Ok(())
    }

    /// The next event, if there is one.
    pub fn event(&mut self) -> Option<Event> {
        let event = self.common.events.pop_front()?;
        if let Event::Completion(queue) = event
            && let Ok(queue) = self.completions(queue)
        {
            queue.told = false;
        }
        Some(event)
    }

    /// What has been counted so far.
    pub fn counters(&self) -> &Counters {
        &self.common.counters
    }
}

impl Inbox for Nic {
    #[inline]
    fn packet<P: Payload>(&mut self, flow: Flow<'_>, packet: &Packet<P>) {
        let Self { common, pairs, numbers, .. } = self;
        common.counters.received += 1;
        let bth = &packet.headers.bth;
        let Some(pair) = find(pairs, *numbers, bth.destination()) else {
            common.counters.no_such_queue_pair += 1;
            return;
        };
        if !pair.is_between(flow) {
            common.counters.strangers += 1;
            return;
        }
        if !pair.pkey.same_partition(bth.pkey()) {
            common.counters.other_partition += 1;
            return;
        }
        let info = bth.opcode().info();
        if info.service != Service::Rc {
            common.counters.wrong_service += 1;
        } else if info.is_response() {
            pair.answered(&packet.headers, common);
        } else {
            pair.respond(packet, common);
        }
    }

    fn malformed(&mut self, why: Malformed) {
        tracing::trace!(%why, "malformed");
        self.common.counters.malformed += 1;
    }
}

//! What all queue pairs of a NIC share, and what each is handed to do its work.

use std::collections::VecDeque;
use std::time::Duration;

use crate::encap::{Host, Path, PathId};
use crate::payload::Payload;
use crate::time::Time;
use crate::wire::cm::QuotedRequest;
use crate::wire::{Packet, Qpn};

use super::around::FullLinks;
use super::completion::{Cause, Completion};
use super::counters::Counters;
use super::device::Flow;
use super::growth::timer_of;
use super::hosts::{HostId, Hosts, Peer};
use super::keys::Keys;
use super::leaps::Leaps;
use super::management::Mailbox;
use super::mapped::Mappings;
use super::notices::Notices;
use super::pair::QueuePair;
use super::queues::{Completions, Purpose};
use super::receives::{SharedReceiveQueueId, SharedReceives};
use super::responder::{Due, Responder};
use crate::common::timers::Timers;

/// Something that a program should hear of without asking each queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A completion came to a queue that was [armed](super::Nic::arm) for it.
    Completion(CompletionQueueId),
    /// A queue pair broke, or was told to stop.
    Broken(Qpn, Cause),
    /// The peer of a queue pair that is ready to receive, and not yet to send, has begun to send:
    /// it knows that the connection stands, though its word for that may have been lost.
    Established(Qpn),
    /// A draining queue pair has nothing under way any more.
    Drained(Qpn),
    /// A shared receive queue has fewer receives than it was [to tell](super::Nic::tell_low) at.
    ReceivesLow(SharedReceiveQueueId),
    /// What comes from a queue pair's peer does not come from the Ethernet address that its path
    /// leads to: it may have moved. [`redirect`](super::Nic::redirect) lets the queue pair follow.
    PathChanged(Qpn),
    /// A broken queue pair takes no more receives from the queue that it shares.
    LastReceive(Qpn),
    /// The system of a peer's host says that nobody is at the port to which a management datagram
    /// was sent, and quotes the datagram: a request for a connection. Anybody can forge that, and
    /// must guess the transaction. For the connection manager, which
    /// [judges](crate::cm::ConnectionManager::port_closed) it.
    RequestBounced(QuotedRequest),
}

impl Event {
    /// The queue pair that it is of.
    pub(super) fn queue_pair(&self) -> Option<Qpn> {
        match *self {
            Self::Broken(qpn, _)
            | Self::Drained(qpn)
            | Self::Established(qpn)
            | Self::PathChanged(qpn)
            | Self::LastReceive(qpn) => Some(qpn),
            Self::Completion(_) | Self::ReceivesLow(_) | Self::RequestBounced(_) => None,
        }
    }
}

/// Which of the addresses that a NIC keeps for datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AddressId {
    place: u32,
    /// How often the place was used: an address that was dropped is not the next one there.
    uses: u32,
    /// Which NIC's, so that another's is none.
    nic: u32,
}

/// Where datagrams go.
pub(super) struct Addresses {
    /// Which NIC's they are.
    nic: u32,
    places: Vec<(u32, Option<Path>)>,
}

impl Addresses {
    pub fn new(nic: u32) -> Self {
        Self { nic, places: Vec::new() }
    }

    /// Keeps an address, unless there are `most` already.
    pub fn add(&mut self, path: Path, most: usize) -> Option<AddressId> {
        let free = self.places.iter().position(|(_, path)| path.is_none());
        let place = free.unwrap_or(self.places.len());
        if place == most {
            return None;
        }
        self.places.resize_with(self.places.len().max(place + 1), || (0, None));
        let (uses, found) = &mut self.places[place];
        (*uses, *found) = (uses.wrapping_add(1), Some(path));
        Some(AddressId { place: place as u32, uses: *uses, nic: self.nic })
    }

    pub fn get(&self, id: AddressId) -> Option<&Path> {
        let (uses, path) = self.places.get(id.place as usize).filter(|_| id.nic == self.nic)?;
        path.as_ref().filter(|_| *uses == id.uses)
    }

    pub fn remove(&mut self, id: AddressId) -> Option<Path> {
        self.get(id)?;
        self.places[id.place as usize].1.take()
    }

    pub fn len(&self) -> usize {
        self.places.iter().filter(|(_, path)| path.is_some()).count()
    }
}

/// Which completion queue of a NIC.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CompletionQueueId {
    pub(super) place: u32,
    /// Which NIC's, so that another's is none.
    pub(super) nic: u32,
}

/// How long a queue pair waits for room in a completion queue before it looks again by itself.
const STARVED_FOR: Duration = Duration::from_millis(5);

pub(super) struct Common {
    /// The time when it was last told.
    pub now: Time,
    /// Where it was told late.
    pub leaps: Leaps,
    /// What tells its queues from those of others.
    pub nic: u32,
    pub lossless: bool,
    /// Whether long writes are sent as several.
    pub runs: bool,
    pub keys: Keys,
    pub mapped: Mappings,
    pub completions: Vec<Option<Completions>>,
    pub counters: Counters,
    /// A timer for each queue pair, and one for each peer, in turn.
    pub timers: Timers,
    pub hosts: Hosts,
    /// Places of queue pairs that may have something to send, each once.
    pub active: VecDeque<u32>,
    /// Links whose peers have left, each once, until what they had delivered is collected.
    pub gone: Vec<PathId>,
    /// Of those that wait for room in a completion queue.
    pub starved: Vec<u32>,
    /// Of those that owe their peer an answer, each once; and [`LINKS`](super::notices::LINKS) once
    /// if there are notices.
    pub answers: VecDeque<u32>,
    /// Of those that put an acknowledgement off, or did so lately, each once.
    pub delaying: Vec<u32>,
    pub notices: Notices,
    /// Whether some of these found no room in the device.
    pub behind: bool,
    pub full: FullLinks,
    /// Of those with requests under way on a lossless device.
    pub flying: Vec<u32>,
    pub events: VecDeque<Event>,
    pub shared_receives: Vec<Option<SharedReceives>>,
    pub addresses: Addresses,
    pub most_addresses: usize,
    pub management: Mailbox,
}

/// A completion queue that a queue pair uses, and that is therefore there.
#[inline]
pub(super) fn in_use(queues: &mut [Option<Completions>], queue: u32) -> &mut Completions {
    queues[queue as usize].as_mut().expect("a queue that is in use is not taken down")
}

impl Common {
    /// Enters a queue pair among those that may have something to send.
    #[inline]
    pub fn activate(&mut self, pair: &mut QueuePair) {
        if !pair.active {
            pair.active = true;
            self.active.push_back(pair.shared.place);
        }
    }

    /// Notes that a queue pair owes its peer an answer. A refusal says all that an acknowledgement
    /// does, and more.
    #[inline]
    pub fn owe(&mut self, pair: &mut QueuePair, answer: Due) {
        match pair.responder.due {
            Due::Nothing | Due::Ack => pair.responder.due = answer,
            Due::Nak(_) if answer.is_fatal() => pair.responder.due = answer,
            Due::Nak(_) => {}
        }
        self.owe_answer(pair);
    }

    /// Enters a queue pair among those that put an acknowledgement off.
    #[inline]
    pub fn delay(&mut self, responder: &mut Responder, place: u32) {
        if !std::mem::replace(&mut responder.delaying, true) {
            self.delaying.push(place);
        }
    }

    /// Counts a queue pair as connected to a peer, which is then expected to be heard of.
    pub fn join(&mut self, peer: (Host, Peer), remote: Qpn, place: u32) -> HostId {
        let (host, first) = self.hosts.join(peer, remote, place, self.now);
        if first {
            self.timers.arm(host.timer(), self.now + self.hosts.limits.idle / 2);
        }
        host
    }

    /// Counts it no more.
    pub fn leave(&mut self, host: &mut HostId) {
        let left = std::mem::replace(host, HostId::NONE);
        if self.hosts.leave(left) {
            self.timers.disarm(left.timer());
        }
    }

    /// Enters a queue pair among those that owe their peer an answer.
    #[inline]
    pub fn owe_answer(&mut self, pair: &mut QueuePair) {
        if !std::mem::replace(&mut pair.responder.listed, true) {
            self.answers.push_back(pair.shared.place);
        }
    }

    #[inline]
    fn queue(&mut self, queue: u32) -> &mut Completions {
        in_use(&mut self.completions, queue)
    }

    /// Promises a slot of a completion queue.
    #[inline]
    pub fn reserve(&mut self, queue: u32, purpose: Purpose) -> bool {
        self.queue(queue).reserve(purpose)
    }

    /// Promises so many slots to requests that are to be sent, or as many as there are.
    #[inline(always)]
    pub fn reserve_up_to(&mut self, queue: u32, most: usize) -> usize {
        self.queue(queue).reserve_up_to(most)
    }

    /// Gives a promised slot back, to those that wait for one.
    #[inline]
    pub fn release(&mut self, queue: u32, purpose: Purpose) {
        self.queue(queue).release(purpose);
        self.feed();
    }

    /// Gives slots back that were promised to requests, and not needed in the same turn.
    #[cold]
    pub fn release_sends(&mut self, queue: u32, count: usize) {
        for _ in 0..count {
            self.queue(queue).release(Purpose::Send);
        }
    }

    /// Enters a queue pair among those that wait for room in a completion queue. Each turn looks
    /// again, and if there is none, the timer sees to one.
    #[cold]
    pub fn starve(&mut self, place: u32) {
        self.starved.push(place);
        self.timers.arm(timer_of(place), self.now + STARVED_FOR);
    }

    /// Has those that wait for room look again.
    #[inline]
    pub fn feed(&mut self) {
        if !self.starved.is_empty() {
            self.active.extend(self.starved.drain(..));
        }
    }

    /// Fills a promised slot with a success.
    #[inline]
    pub fn succeeded(&mut self, queue: u32, purpose: Purpose, urgent: bool, what: Completion) {
        self.counters.completed += 1;
        self.queue(queue).redeem(purpose, urgent).fill(what);
        self.settle(queue);
    }

    /// Fills a promised slot with a failure.
    #[cold]
    pub fn failed(&mut self, queue: u32, purpose: Purpose, what: Completion) {
        self.counters.failed += 1;
        self.queue(queue).redeem(purpose, true).fill(what);
        self.settle(queue);
    }

    /// The completion queue at a place.
    pub fn completion_queue(&self, place: u32) -> CompletionQueueId {
        CompletionQueueId { place, nic: self.nic }
    }

    /// Sees to what the last completions of a queue called for: an event, if it was armed for them,
    /// and a look by those that wait for room.
    #[inline(always)]
    pub fn settle(&mut self, queue: u32) {
        if self.queue(queue).calls() {
            self.settle_calls(queue);
        }
    }

    #[cold]
    fn settle_calls(&mut self, queue: u32) {
        let (untold, freed) = self.queue(queue).take_calls();
        if untold {
            self.events.push_back(Event::Completion(self.completion_queue(queue)));
        }
        if freed {
            self.feed();
        }
    }

    /// Enters an event, unless it was `told` and not taken yet. So there are at most as many as
    /// completion queues and shared receive queues, five times as many as queue pairs, and 256 of
    /// requests that have bounced.
    #[cold]
    pub fn tell(&mut self, event: Event, told: &mut bool) {
        if !std::mem::replace(told, true) {
            self.events.push_back(event);
        }
    }
}

impl Common {
    /// Makes room on every list for so many queue pairs.
    pub fn make_room(&mut self, pairs: usize) {
        let Self { active, answers, starved, delaying, flying, .. } = self;
        active.reserve(pairs.saturating_sub(active.len()));
        answers.reserve((pairs + 1).saturating_sub(answers.len()));
        starved.reserve(pairs.saturating_sub(starved.len()));
        delaying.reserve(pairs.saturating_sub(delaying.len()));
        flying.reserve(pairs.saturating_sub(flying.len()));
    }

    /// Takes a queue pair off every list.
    pub fn forget(&mut self, place: u32) {
        self.timers.disarm(timer_of(place));
        self.active.retain(|&other| other != place);
        self.answers.retain(|&other| other != place);
        self.delaying.retain(|&other| other != place);
        self.starved.retain(|&other| other != place);
        self.flying.retain(|&other| other != place);
    }
}

impl Common {
    /// Takes a packet for the connection manager of whoever runs the NIC.
    #[cold]
    pub fn for_manager<P: Payload>(&mut self, flow: Flow<'_>, packet: &Packet<P>) {
        match self.management.take(flow, packet) {
            true => self.counters.management += 1,
            false => self.counters.management_dropped += 1,
        }
    }
}

//! What all queue pairs of a NIC share, and what each is handed to do its work.

use std::collections::VecDeque;
use std::time::Duration;

use crate::encap::{Host, PathId};
use crate::nic::counters::Counters;
use crate::nic::device::flow::Flow;
use crate::nic::identifiers::{CompletionQueueId, PeerId, timer_of};
use crate::nic::keep_alive::clock_jumps::ClockJumps;
use crate::nic::keep_alive::peers::{PeerKey, Peers};
use crate::nic::protection::key_table::KeyTable;
use crate::nic::protection::mappings::Mappings;
use crate::nic::queues::completions::{Completions, Purpose, in_use};
use crate::nic::queues::receives::SharedReceives;
use crate::nic::requests::completion::Completion;
use crate::nic::requests::event::Event;
use crate::nic::state::addresses::Addresses;
use crate::nic::state::delivery_failures::{DELIVERY_FAILURES, DeliveryFailures};
use crate::nic::state::full_links::FullLinks;
use crate::nic::state::management::Mailbox;
use crate::nic::timers::Timers;
use crate::payload::Payload;
use crate::time::Time;
use crate::wire::{Packet, Psn, Qpn};

/// How long a queue pair waits for room in a completion queue before it looks again by itself.
const STARVED_FOR: Duration = Duration::from_millis(5);

pub(crate) struct Common {
    /// The time when it was last told.
    pub now: Time,
    /// Where it was told late.
    pub clock_jumps: ClockJumps,
    /// What tells its queues from those of others.
    pub nic: u32,
    pub lossless: bool,
    /// Whether long writes are sent as several.
    pub splits_writes: bool,
    pub keys: KeyTable,
    pub mapped: Mappings,
    pub completions: Vec<Option<Completions>>,
    pub counters: Counters,
    /// A timer for each queue pair, and one for each peer, in turn.
    pub timers: Timers,
    pub peers: Peers,
    /// Places of queue pairs that may have something to send, each once.
    pub sendable: VecDeque<u32>,
    /// Links whose peers have left, each once, until what they had delivered is collected.
    pub gone_links: Vec<PathId>,
    /// Of those that wait for room in a completion queue.
    pub starved: Vec<u32>,
    /// Of those that owe their peer an answer, each once; and [`DELIVERY_FAILURES`](crate::nic::DELIVERY_FAILURES) once
    /// if there are notices.
    pub owing: VecDeque<u32>,
    /// Of those that put an acknowledgement off, or did so lately, each once.
    pub delaying: Vec<u32>,
    pub delivery_failures: DeliveryFailures,
    /// Whether some of these found no room in the device.
    pub device_was_full: bool,
    pub full_links: FullLinks,
    /// Of those with requests under way on a lossless device.
    pub awaiting_delivery: Vec<u32>,
    pub events: VecDeque<Event>,
    pub shared_receives: Vec<Option<SharedReceives>>,
    pub addresses: Addresses,
    pub most_addresses: usize,
    pub management: Mailbox,
}

impl Common {
    /// Counts a queue pair as connected to a peer, which is then expected to be heard of.
    pub fn join_peer(&mut self, peer: (Host, PeerKey), remote: Qpn, place: u32) -> PeerId {
        let (host, first) = self.peers.join(peer, remote, place, self.now);
        if first {
            self.timers.arm(host.timer(), self.now + self.peers.limits.idle / 2);
        }
        host
    }

    /// Counts it no more.
    pub fn leave_peer(&mut self, host: &mut PeerId) {
        let left = std::mem::replace(host, PeerId::NONE);
        if self.peers.leave(left) {
            self.timers.disarm(left.timer());
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
        self.wake_starved();
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
    pub fn wait_for_slots(&mut self, place: u32) {
        self.starved.push(place);
        self.timers.arm(timer_of(place), self.now + STARVED_FOR);
    }

    /// Has those that wait for room look again.
    #[inline]
    pub fn wake_starved(&mut self) {
        if !self.starved.is_empty() {
            self.sendable.extend(self.starved.drain(..));
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
        if self.queue(queue).needs_settling() {
            self.settle_calls(queue);
        }
    }

    #[cold]
    fn settle_calls(&mut self, queue: u32) {
        let (untold, freed) = self.queue(queue).take_settling();
        if untold {
            self.events.push_back(Event::Completion(self.completion_queue(queue)));
        }
        if freed {
            self.wake_starved();
        }
    }

    /// Enters an event, unless it was `told` and not taken yet. So there are at most as many as
    /// completion queues and shared receive queues, five times as many as queue pairs, and 256 of
    /// requests that have bounced.
    #[cold]
    pub fn raise(&mut self, event: Event, told: &mut bool) {
        if !std::mem::replace(told, true) {
            self.events.push_back(event);
        }
    }

    /// Makes room on every list for so many queue pairs.
    pub fn make_room(&mut self, pairs: usize) {
        let Self {
            sendable: active,
            owing: answers,
            starved,
            delaying,
            awaiting_delivery: flying,
            ..
        } = self;
        active.reserve(pairs.saturating_sub(active.len()));
        answers.reserve((pairs + 1).saturating_sub(answers.len()));
        starved.reserve(pairs.saturating_sub(starved.len()));
        delaying.reserve(pairs.saturating_sub(delaying.len()));
        flying.reserve(pairs.saturating_sub(flying.len()));
    }

    /// Takes a queue pair off every list.
    pub fn forget(&mut self, place: u32) {
        self.timers.disarm(timer_of(place));
        self.sendable.retain(|&other| other != place);
        self.owing.retain(|&other| other != place);
        self.delaying.retain(|&other| other != place);
        self.starved.retain(|&other| other != place);
        self.awaiting_delivery.retain(|&other| other != place);
    }

    /// Takes a packet for the connection manager of whoever runs the NIC.
    #[cold]
    pub fn receive_management<P: Payload>(&mut self, flow: Flow<'_>, packet: &Packet<P>) {
        match self.management.take(flow, packet) {
            true => self.counters.management += 1,
            false => self.counters.management_dropped += 1,
        }
    }

    /// Owes a link the notice that a packet was not taken.
    #[cold]
    pub fn owe_delivery_failure(&mut self, link: PathId, number: Qpn, psn: Psn) {
        if self.delivery_failures.waiting.is_empty() {
            self.owing.push_back(DELIVERY_FAILURES);
        }
        self.delivery_failures.add(link, number, psn);
    }
}

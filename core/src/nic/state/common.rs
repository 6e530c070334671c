//! The state that all queue pairs of a NIC share, which each is handed to do its work.

use std::collections::VecDeque;
use std::time::Duration;

use crate::common::timers::Timers;
use crate::encap::{Host, PathId};
use crate::nic::counters::Counters;
use crate::nic::device::flow::Flow;
use crate::nic::identifiers::{CompletionQueueId, PeerId, timer_of};
use crate::nic::keep_alive::clock_jumps::ClockJumps;
use crate::nic::keep_alive::peers::{PeerKey, Peers};
use crate::nic::protection::key_table::KeyTable;
use crate::nic::protection::mappings::Mappings;
use crate::nic::queues::completion_slots::{CompletionSlots, Purpose, in_use};
use crate::nic::queues::receives::SharedReceives;
use crate::nic::requests::completion::Completion;
use crate::nic::requests::event::Event;
use crate::nic::selective::held::HeldMemory;
use crate::nic::state::addresses::Addresses;
use crate::nic::state::delivery_failures::{DELIVERY_FAILURES, DeliveryFailures};
use crate::nic::state::full_links::FullLinks;
use crate::nic::state::management::Mailbox;
use crate::payload::Payload;
use crate::time::Time;
use crate::wire::{Packet, Psn, Qpn};

/// How long a queue pair waits for a free slot of a completion queue before it looks again by
/// itself.
const STARVED_FOR: Duration = Duration::from_millis(5);

/// The state that all queue pairs of a NIC share.
pub(crate) struct Common {
    /// The time that was told last.
    pub now: Time,
    /// When the packets arrived that are taken in: by the device's word if it has any.
    pub arrived: Time,
    /// The intervals in which no time was told though the NIC was used.
    pub clock_jumps: ClockJumps,
    /// The number of this NIC, by which its identifiers differ from those of others.
    pub nic: u32,
    /// Whether the device never loses, repeats or reorders packets.
    pub lossless: bool,
    /// Whether long writes are sent as several writes of one packet each.
    pub splits_writes: bool,
    pub keys: KeyTable,
    pub mapped: Mappings,
    pub completions: Vec<Option<CompletionSlots>>,
    pub counters: Counters,
    /// The timers of queue pairs, which have even numbers, and of peers, which have odd ones.
    pub timers: Timers,
    pub peers: Peers,
    /// Places of queue pairs that may have something to send, each once.
    pub sendable: VecDeque<u32>,
    /// Links whose peers have left, each once, until what those had delivered is collected.
    pub gone_links: Vec<PathId>,
    /// Places of queue pairs that wait for a free slot of a completion queue.
    pub starved: Vec<u32>,
    /// Places of queue pairs that owe their peer an acknowledgement, a response or a keep-alive
    /// packet, each once; and [`DELIVERY_FAILURES`] once if there are delivery failure notices.
    pub owing: VecDeque<u32>,
    /// Places of queue pairs that delay an acknowledgement, or did so lately, each once.
    pub delaying: Vec<u32>,
    pub delivery_failures: DeliveryFailures,
    /// Whether the device had no room for a part of what is owed.
    pub device_was_full: bool,
    pub full_links: FullLinks,
    /// Places of queue pairs with requests under way on a lossless device.
    pub awaiting_delivery: Vec<u32>,
    pub events: VecDeque<Event>,
    pub shared_receives: Vec<Option<SharedReceives>>,
    pub addresses: Addresses,
    pub most_addresses: usize,
    pub management: Mailbox,
    /// The memory for packets from beyond gaps.
    pub held: HeldMemory,
}

impl Common {
    /// Counts a queue pair as connected to a peer, of which something is then expected to come.
    pub fn join_peer(&mut self, key: (Host, PeerKey), remote: Qpn, place: u32) -> PeerId {
        let (peer, first) = self.peers.join(key, remote, place, self.now);
        if first {
            self.timers.arm(peer.timer(), self.now + self.peers.limits.idle / 2);
        }
        peer
    }

    /// Counts a queue pair as connected to its peer no more.
    pub fn leave_peer(&mut self, peer: &mut PeerId) {
        let left = std::mem::replace(peer, PeerId::NONE);
        if self.peers.leave(left) {
            self.timers.disarm(left.timer());
        }
    }

    /// The completion queue at a place, which is in use.
    #[inline]
    fn queue(&mut self, queue: u32) -> &mut CompletionSlots {
        in_use(&mut self.completions, queue)
    }

    /// Reserves a slot of a completion queue, if one is free. Returns whether one was.
    #[inline]
    pub fn reserve(&mut self, queue: u32, purpose: Purpose) -> bool {
        self.queue(queue).reserve(purpose)
    }

    /// Reserves at most so many slots for requests that are to be sent. Returns how many.
    #[inline(always)]
    pub fn reserve_up_to(&mut self, queue: u32, most: usize) -> usize {
        self.queue(queue).reserve_up_to(most)
    }

    /// Gives a reserved slot back, and wakes the queue pairs that wait for one.
    #[inline]
    pub fn release(&mut self, queue: u32, purpose: Purpose) {
        self.queue(queue).release(purpose);
        self.wake_starved();
    }

    /// Gives slots back that were reserved for requests, and not needed in the same turn.
    #[cold]
    pub fn release_sends(&mut self, queue: u32, count: usize) {
        for _ in 0..count {
            self.queue(queue).release(Purpose::Send);
        }
    }

    /// Enters a queue pair among those that wait for a slot of a completion queue. It looks again
    /// in each turn, and at the latest when its timer expires.
    #[cold]
    pub fn wait_for_slots(&mut self, place: u32) {
        self.starved.push(place);
        self.timers.arm(timer_of(place), self.now + STARVED_FOR);
    }

    /// Lets the queue pairs that wait for a slot of a completion queue look again.
    #[inline]
    pub fn wake_starved(&mut self) {
        if !self.starved.is_empty() {
            self.sendable.extend(self.starved.drain(..));
        }
    }

    /// Fills a reserved slot with a success.
    #[inline]
    pub fn succeeded(&mut self, queue: u32, purpose: Purpose, urgent: bool, what: Completion) {
        self.counters.completed += 1;
        self.queue(queue).redeem(purpose, urgent).fill(what);
        self.settle(queue);
    }

    /// Fills a reserved slot with a failure.
    #[cold]
    pub fn failed(&mut self, queue: u32, purpose: Purpose, what: Completion) {
        self.counters.failed += 1;
        self.queue(queue).redeem(purpose, true).fill(what);
        self.settle(queue);
    }

    /// The identifier of the completion queue at a place.
    pub fn completion_queue(&self, place: u32) -> CompletionQueueId {
        CompletionQueueId { place, nic: self.nic }
    }

    /// Does what the last completions of a queue require: raises an event, if the queue was armed
    /// for them, and wakes the queue pairs that wait for a slot.
    #[inline(always)]
    pub fn settle(&mut self, queue: u32) {
        if self.queue(queue).needs_settling() {
            self.settle_calls(queue);
        }
    }

    #[cold]
    fn settle_calls(&mut self, queue: u32) {
        let (event_due, slots_freed) = self.queue(queue).take_settling();
        if event_due {
            self.events.push_back(Event::Completion(self.completion_queue(queue)));
        }
        if slots_freed {
            self.wake_starved();
        }
    }

    /// Raises an event, unless one of its kind is `pending`. So there are at most as many events as
    /// completion queues and shared receive queues, five times as many as queue pairs, and 256 of
    /// requests that have bounced.
    #[cold]
    pub fn raise(&mut self, event: Event, pending: &mut bool) {
        if !std::mem::replace(pending, true) {
            self.events.push_back(event);
        }
    }

    /// Makes room in every list for so many queue pairs.
    pub fn make_room(&mut self, pairs: usize) {
        let Self { sendable, owing, starved, delaying, awaiting_delivery, .. } = self;
        sendable.reserve(pairs.saturating_sub(sendable.len()));
        owing.reserve((pairs + 1).saturating_sub(owing.len()));
        starved.reserve(pairs.saturating_sub(starved.len()));
        delaying.reserve(pairs.saturating_sub(delaying.len()));
        awaiting_delivery.reserve(pairs.saturating_sub(awaiting_delivery.len()));
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

    /// Takes a packet to queue pair 1, which is for the connection manager.
    #[cold]
    pub fn receive_management<P: Payload>(&mut self, flow: Flow<'_>, packet: &Packet<P>) {
        match self.management.take(flow, packet) {
            true => self.counters.management += 1,
            false => self.counters.management_dropped += 1,
        }
    }

    /// Notes that a link is to be sent the notice that a packet was not taken.
    #[cold]
    pub fn owe_delivery_failure(&mut self, link: PathId, number: Qpn, psn: Psn) {
        if self.delivery_failures.waiting.is_empty() {
            self.owing.push_back(DELIVERY_FAILURES);
        }
        self.delivery_failures.add(link, number, psn);
    }
}

//! Completion queues: the NIC's end, and the slots that are reserved for requests.

use crate::nic::config::errors::DEEPEST;
use crate::nic::queues::completion_queue::CompletionQueue;
use crate::nic::requests::completion::Completion;
use crate::nic::ring::{Producer, Slot, WriteBatch, ring};

/// Selects the completions that cause an event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Notify {
    /// Any completion causes the event.
    Any,
    /// Only failures cause the event, and receives for which the peer solicited one.
    Solicited,
}

/// The purpose for which a slot of a completion queue is reserved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// A request that is to be sent, and will hold the slot until it is acknowledged.
    Send,
    /// A message that is being received.
    Receive,
    /// A request or a receive that is to be flushed now.
    Flush,
}

/// The NIC's end of a completion queue.
///
/// One slot for each receive queue is kept from requests that are to be sent. Otherwise two nodes'
/// requests could hold all slots on either side, and each node would wait for ever for the other to
/// receive.
pub(crate) struct CompletionSlots {
    ring: Producer<Completion>,
    /// Whether slots are added when more receive queues end here.
    grows: bool,
    /// How many slots are reserved.
    reserved: usize,
    /// How many of the reserved slots are for messages that are being received.
    receiving: usize,
    /// The completions that the program has armed the queue for, if any.
    pub armed: Option<Notify>,
    /// Whether an event of this queue waits to be taken.
    pub event_pending: bool,
    /// Whether an event is to be raised when the queue is
    /// [settled](crate::nic::state::common::Common::settle).
    event_due: bool,
    /// Whether reserved slots were given back, which queue pairs may wait for.
    slots_freed: bool,
    /// How many send queues end here.
    pub senders: usize,
    /// How many receive queues end here.
    pub receivers: usize,
    /// How many shared receive queues there are whose queue pairs' receive queues end here.
    pub shared: usize,
}

impl CompletionSlots {
    /// Makes a queue of `capacity` slots, and both of its ends. If it `grows`, slots are added when
    /// more receive queues end there.
    pub fn new(capacity: usize, grows: bool) -> (Self, CompletionQueue) {
        let (ring, taken) = ring(capacity);
        let own = Self {
            ring,
            grows,
            reserved: 0,
            receiving: 0,
            armed: None,
            event_pending: false,
            event_due: false,
            slots_freed: false,
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

    /// Returns how many slots the queue has, and how many it needs for so many more queues to end
    /// here.
    pub fn has_and_needs(&self, senders: usize, receivers: usize) -> (usize, usize) {
        let needs = self.receivers + receivers + usize::from(self.senders + senders > 0);
        (self.ring.depth(), needs)
    }

    /// Whether the queue holds completions that the program has not taken.
    pub fn has_some(&self) -> bool {
        self.ring.room() < self.ring.depth()
    }

    /// Reserves a slot, if one is free for the purpose. Returns whether one was.
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

    /// Reserves at most so many slots for requests that are to be sent. Returns how many.
    #[inline(always)]
    pub fn reserve_up_to(&mut self, most: usize) -> usize {
        let taken = self.reserved + self.receivers.saturating_sub(self.receiving);
        if self.ring.known_room() < taken + most {
            self.ring.refresh();
        }
        let count = self.ring.known_room().saturating_sub(taken).min(most);
        self.reserved += count;
        count
    }

    /// Returns a slot that is not reserved, if one is free, to be filled at once. The caller then
    /// calls [`filled`](Self::filled).
    #[inline(always)]
    pub fn slot(&mut self) -> Option<Slot<'_, Completion>> {
        self.ring.slot_beside(self.reserved)
    }

    /// Notes that a slot was filled that was not reserved, with an `urgent` completion or not.
    /// Returns whether the queue is then to be
    /// [settled](crate::nic::state::common::Common::settle).
    #[inline(always)]
    pub fn filled(&mut self, urgent: bool) -> bool {
        let armed = self.armed.is_some();
        if armed {
            self.call_event(urgent);
        }
        armed
    }

    /// Whether more than `taken` slots are free of completions.
    #[inline]
    fn has_more_than(&mut self, taken: usize) -> bool {
        self.ring.known_room() > taken || {
            self.ring.refresh();
            self.ring.known_room() > taken
        }
    }

    /// Gives a reserved slot back unused.
    #[inline]
    pub fn release(&mut self, purpose: Purpose) {
        self.reserved -= 1;
        self.receiving -= usize::from(purpose == Purpose::Receive);
    }

    /// Returns a reserved slot, to be filled now with an `urgent` completion or not. The queue is
    /// then to be [settled](crate::nic::state::common::Common::settle).
    #[inline(always)]
    pub fn redeem(&mut self, purpose: Purpose, urgent: bool) -> Slot<'_, Completion> {
        self.release(purpose);
        if self.armed.is_some() {
            self.call_event(urgent);
        }
        self.ring.slot().expect("a promised slot is there: that is what the promise is")
    }

    /// Returns slots reserved for requests that succeed, to be filled now. The caller then calls
    /// [`redeemed`](Self::redeemed) with how many reservations that were, and how many slots were
    /// filled.
    #[inline(always)]
    pub fn redeem_several(&mut self) -> WriteBatch<'_, Completion> {
        self.ring.write_batch()
    }

    /// Notes that so many reservations for requests are no more, and that so many of their slots
    /// were filled. The queue is then to be [settled](crate::nic::state::common::Common::settle).
    #[inline(always)]
    pub fn redeemed(&mut self, count: usize, filled: usize) {
        self.reserved -= count;
        self.slots_freed |= filled < count;
        if self.armed.is_some() && filled > 0 {
            self.call_event(false);
        }
    }

    /// Makes an event due, if the queue is armed for what has come.
    #[cold]
    fn call_event(&mut self, urgent: bool) {
        if urgent || self.armed == Some(Notify::Any) {
            self.armed = None;
            self.event_due |= !std::mem::replace(&mut self.event_pending, true);
        }
    }

    /// Whether an event is due, or slots were given back.
    #[inline(always)]
    pub fn needs_settling(&self) -> bool {
        self.event_due | self.slots_freed
    }

    /// Returns whether an event is due, and whether slots were given back, and forgets both.
    pub fn take_settling(&mut self) -> (bool, bool) {
        (std::mem::take(&mut self.event_due), std::mem::take(&mut self.slots_freed))
    }
}

/// Returns a completion queue that a queue pair uses, which is therefore not taken down.
#[inline]
pub(crate) fn in_use(queues: &mut [Option<CompletionSlots>], queue: u32) -> &mut CompletionSlots {
    queues[queue as usize].as_mut().expect("a queue that is in use is not taken down")
}

//! Completion queues: the NIC's end, and the slots that are promised to requests.

use crate::nic::config::errors::DEEPEST;
use crate::nic::queues::completion::CompletionQueue;
use crate::nic::requests::completion::Completion;
use crate::nic::ring::{Producer, Slot, WriteBatch, ring};

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
pub(crate) enum Purpose {
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
pub(crate) struct Completions {
    ring: Producer<Completion>,
    /// Whether there will be more slots when more receive queues end here.
    grows: bool,
    /// Slots promised, and how many of them for messages that are being received.
    reserved: usize,
    receiving: usize,
    pub armed: Option<Notify>,
    /// Whether there is an event that nobody has taken yet.
    pub event_pending: bool,
    /// Whether there is to be one, and whether room was given back.
    event_due: bool,
    slots_freed: bool,
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
    /// calls for anything, to be [seen to](crate::nic::Common::settle).
    #[inline(always)]
    pub fn filled(&mut self, urgent: bool) -> bool {
        let armed = self.armed.is_some();
        if armed {
            self.call_event(urgent);
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
    /// to](crate::nic::Common::settle) afterwards.
    #[inline(always)]
    pub fn redeem(&mut self, purpose: Purpose, urgent: bool) -> Slot<'_, Completion> {
        self.release(purpose);
        if self.armed.is_some() {
            self.call_event(urgent);
        }
        self.ring.slot().expect("a promised slot is there: that is what the promise is")
    }

    /// Slots promised to requests that succeed, to be filled now. How many promises that were, and
    /// how many slots were filled, is to be [said](Self::redeemed) then.
    #[inline(always)]
    pub fn redeem_several(&mut self) -> WriteBatch<'_, Completion> {
        self.ring.several()
    }

    /// So many promises to requests are no more, and so many of them filled slots. What that calls
    /// for is [to be seen to](crate::nic::Common::settle).
    #[inline(always)]
    pub fn redeemed(&mut self, count: usize, filled: usize) {
        self.reserved -= count;
        self.slots_freed |= filled < count;
        if self.armed.is_some() && filled > 0 {
            self.call_event(false);
        }
    }

    /// Calls for an event, if the queue is armed for what comes.
    #[cold]
    fn call_event(&mut self, urgent: bool) {
        if urgent || self.armed == Some(Notify::Any) {
            self.armed = None;
            self.event_due |= !std::mem::replace(&mut self.event_pending, true);
        }
    }

    /// Whether anything was called for that was not seen to.
    #[inline(always)]
    pub fn needs_settling(&self) -> bool {
        self.event_due | self.slots_freed
    }

    /// Whether an event was called for, and whether there is room for those that wait.
    pub fn take_settling(&mut self) -> (bool, bool) {
        (std::mem::take(&mut self.event_due), std::mem::take(&mut self.slots_freed))
    }
}

/// A completion queue that a queue pair uses, and that is therefore there.
#[inline]
pub(crate) fn in_use(queues: &mut [Option<Completions>], queue: u32) -> &mut Completions {
    queues[queue as usize].as_mut().expect("a queue that is in use is not taken down")
}

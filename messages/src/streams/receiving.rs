//! The slots of messages from one peer: which messages come, and which ends it was not told.

use std::sync::Arc;

use super::inbox::Inbox;
use super::limits::Limits;

/// The slots of messages from one peer.
pub struct ReceiveSlots {
    slots: Vec<Option<Arc<Inbox>>>,
    /// Slots whose messages were handled, of which the peer is told later, a bit for each.
    untold: u64,
}

impl ReceiveSlots {
    pub fn new(limits: Limits) -> Self {
        let mut slots = Vec::new();
        slots.resize_with(limits.messages, || None);
        Self { slots, untold: 0 }
    }

    /// Returns the message in a slot.
    pub fn get(&self, slot: usize) -> Option<&Arc<Inbox>> {
        self.slots.get(slot)?.as_ref()
    }

    /// Puts a message that has begun into its slot. Returns whether the slot was free.
    pub fn begin(&mut self, slot: usize, make: impl FnOnce() -> Arc<Inbox>) -> Option<&Arc<Inbox>> {
        let there = self.slots.get_mut(slot)?;
        if there.is_some() || self.untold >> slot & 1 == 1 {
            return None;
        }
        Some(there.insert(make()))
    }

    /// Frees the slot of a message whose end the peer knows.
    pub fn over(&mut self, slot: usize) {
        self.slots[slot] = None;
    }

    /// Frees the slot of a message that was handled. Returns the slots of which the peer is to be
    /// told now: when it waits for that, or when half of its slots are taken as it sees it.
    pub fn done(&mut self, slot: usize, at_once: bool) -> u64 {
        self.slots[slot] = None;
        self.untold |= 1 << slot;
        let open = self.slots.iter().filter(|slot| slot.is_some()).count();
        let taken = open + self.untold.count_ones() as usize;
        if at_once || 2 * taken >= self.slots.len() { std::mem::take(&mut self.untold) } else { 0 }
    }

    /// Returns whether a message is coming.
    pub fn any_taken(&self) -> bool {
        self.slots.iter().any(Option::is_some)
    }

    /// Takes all messages, because the peer has gone.
    pub fn drain(&mut self) -> Vec<Arc<Inbox>> {
        self.slots.iter_mut().filter_map(Option::take).collect()
    }
}

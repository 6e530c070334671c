//! The messages that a receiver puts into their order.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

/// Messages of the type `M` that come over several connections, and are handed on in their order.
#[derive(Debug)]
pub struct Ordered<M> {
    /// The sequence number of the message that is handed on next, behind those that are ready.
    next: u64,
    ready: VecDeque<M>,
    /// Messages that wait for an earlier one, with how many bytes each has.
    early: BTreeMap<u64, (usize, M)>,
    /// The bytes of all that are early.
    early_bytes: usize,
    /// How many messages have become ready since the sender was told.
    unacknowledged: u64,
}

/// The most messages that may be early. More are under way only if the sender breaks the rules.
const MOST_EARLY: usize = 1 << 15;

/// The messages after which the sender is told what has come.
const BATCH: u64 = 32;

impl<M> Default for Ordered<M> {
    fn default() -> Self {
        Self {
            next: 0,
            ready: VecDeque::new(),
            early: BTreeMap::new(),
            early_bytes: 0,
            unacknowledged: 0,
        }
    }
}

impl<M> Ordered<M> {
    /// Takes in a message of `bytes` bytes. Returns whether there is room for it: a sender that
    /// keeps the rules never has so many messages under way, nor more bytes in all than `most`
    /// returns, which is asked if a message is early. An early one is kept as `keep` returns it.
    pub fn comes(
        &mut self,
        sequence: u64,
        (bytes, message): (usize, M),
        keep: impl FnOnce(M) -> M,
        most: impl FnOnce() -> usize,
    ) -> bool {
        if sequence < self.next {
            return true;
        }
        if sequence > self.next {
            let (count, all) = (self.early.len(), self.early_bytes + bytes);
            let Entry::Vacant(place) = self.early.entry(sequence) else { return true };
            let has_room = count < MOST_EARLY && all <= most();
            if has_room {
                self.early_bytes = all;
                place.insert((bytes, keep(message)));
            }
            return has_room;
        }
        self.is_ready(message);
        while let Some((bytes, message)) = self.early.remove(&self.next) {
            self.early_bytes -= bytes;
            self.is_ready(message);
        }
        true
    }

    fn is_ready(&mut self, message: M) {
        self.ready.push_back(message);
        self.next += 1;
        self.unacknowledged += 1;
    }

    /// Returns the next message in order, if it has come.
    pub fn next(&mut self) -> Option<M> {
        self.ready.pop_front()
    }

    /// Returns the acknowledgement that is due, if one is: the sequence number behind all that have
    /// come.
    pub fn acknowledgement(&mut self) -> Option<u64> {
        let due = self.unacknowledged >= BATCH;
        due.then(|| {
            self.unacknowledged = 0;
            self.next
        })
    }
}

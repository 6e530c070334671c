//! The credits that this end has given to its peer: how many messages the peer may still send.

use std::sync::atomic::{AtomicU32, Ordering};

/// The credits of one stream's peer. Each credit allows one message with bytes.
///
/// A credit is with the peer until the peer sends a message. When the program has read that
/// message, the credit is owed, and it goes back to the peer together with others.
pub(crate) struct Credits {
    /// How many credits the peer has when nothing is under way.
    all: u32,
    /// How many credits the peer has not used yet.
    granted: AtomicU32,
    /// How many messages were read whose credits were not given back yet.
    owed: AtomicU32,
}

impl Credits {
    /// Credits that are all with the peer.
    pub fn new(all: u32) -> Self {
        Self { all, granted: AtomicU32::new(all), owed: AtomicU32::new(0) }
    }

    /// Takes one credit for a message that the peer has sent. Returns `false` if the peer had none,
    /// and so was not allowed to send.
    pub fn spend(&self) -> bool {
        let less = |granted: u32| granted.checked_sub(1);
        self.granted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// Counts a message as read. Returns whether so many credits are owed that a message for them
    /// alone is worth its while.
    pub fn owe(&self) -> bool {
        self.owed.fetch_add(1, Ordering::Relaxed) + 1 >= self.worth_a_message()
    }

    /// Returns how many owed credits are worth a message of their own.
    pub fn worth_a_message(&self) -> u32 {
        (self.all / 2).max(1)
    }

    /// Gives back all owed credits, if they are at least `least`. Returns how many they are, which
    /// the caller sends to the peer; 0 if none are given back.
    pub fn give_back(&self, least: u32) -> u16 {
        if self.owed.load(Ordering::Relaxed) < least.max(1) {
            return 0;
        }
        let owed = self.owed.swap(0, Ordering::Relaxed);
        self.granted.fetch_add(owed, Ordering::Relaxed);
        // No more credits are owed than there are, and there are at most `MOST_CREDITS`.
        owed as u16
    }

    /// Returns how many messages the peer may still send, counting credits that are owed to it.
    pub fn may_come(&self) -> u32 {
        self.granted.load(Ordering::Relaxed) + self.owed.load(Ordering::Relaxed)
    }
}

//! What a connection tells its peer beside messages: what was taken, what is done, what has failed.
//!
//! The words that wait are bounded: each slot has one of each kind, or the peer breaks the rules.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use doorbell_am::{self as am, Credit};
use doorbell_verbs::floor::locked;

use super::hub::{Flush, Hub};
use super::limits::Limits;
use super::wire::{DONE, FAILED, LONGEST_TEXT, PIECE, Packet, Reason, TAKEN};

/// The words to one peer that wait for credits.
pub struct Control {
    pub peer: am::Peer,
    pub hub: Arc<Hub>,
    pending: Mutex<Pending>,
    is_touched: AtomicBool,
}

#[derive(Default)]
struct Pending {
    /// How much of each slot's window is free again, and a bit for each slot that has some.
    taken: Taken,
    any_taken: u64,
    failed: VecDeque<(usize, Reason, String)>,
    /// Messages to the peer that were given up, a bit for each slot.
    abandoned: u64,
    /// Slots whose messages were handled, a bit for each.
    done: u64,
    /// Whether a task sends the words as credits come.
    is_pumped: bool,
    is_closed: bool,
}

/// A number for each slot.
struct Taken([u64; Limits::MOST_MESSAGES]);

impl Default for Taken {
    fn default() -> Self {
        Self([0; Limits::MOST_MESSAGES])
    }
}

impl Control {
    pub fn new(peer: am::Peer, hub: Arc<Hub>) -> Arc<Self> {
        let is_touched = AtomicBool::new(false);
        Arc::new(Self { peer, hub, pending: Mutex::default(), is_touched })
    }

    /// Tells the peer that a part of a message's window is free again.
    pub fn taken(self: &Arc<Self>, slot: usize, cost: usize) {
        self.put(|pending| {
            pending.taken.0[slot] += cost as u64;
            pending.any_taken |= 1 << slot;
        });
    }

    /// Tells the peer that messages were handled to their ends.
    pub fn done(self: &Arc<Self>, slots: u64) {
        self.put(|pending| {
            // What was taken of a message that is over would count for the next of its slot.
            for slot in bits(pending.any_taken & slots) {
                pending.taken.0[slot] = 0;
            }
            pending.any_taken &= !slots;
            pending.done |= slots;
        });
    }

    /// Tells the peer that no more of a message is taken. A peer that keeps the rules uses a slot
    /// again when it has heard that. One that goes on, and gives no credits to be told, is cut off.
    pub fn failed(self: &Arc<Self>, slot: usize, reason: Reason, mut text: String) {
        let end = (0..=LONGEST_TEXT.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
        text.truncate(end.unwrap_or(0));
        self.hub.counters.failed.fetch_add(1, Ordering::Relaxed);
        let mut has_room = true;
        self.put(|pending| {
            has_room = pending.failed.len() < Limits::MOST_MESSAGES;
            if has_room {
                pending.failed.push_back((slot, reason, text));
            }
        });
        if !has_room {
            self.peer.cut_off();
        }
    }

    /// Tells the peer that a message to it is given up.
    pub fn abandon(self: &Arc<Self>, slot: usize) {
        self.put(|pending| pending.abandoned |= 1 << slot);
    }

    /// Drops all words, because the peer has gone.
    pub fn close(&self) {
        *locked(&self.pending) = Pending { is_closed: true, ..Pending::default() };
    }

    fn put(self: &Arc<Self>, puts: impl FnOnce(&mut Pending)) {
        let mut pending = locked(&self.pending);
        if pending.is_closed {
            return;
        }
        puts(&mut pending);
        drop(pending);
        if !self.is_touched.swap(true, Ordering::AcqRel) {
            self.hub.touch(self.clone());
        }
    }

    async fn pump(&self) {
        loop {
            let credit = self.peer.credit().await;
            let mut pending = locked(&self.pending);
            let Ok(credit) = credit else {
                pending.is_pumped = false;
                return;
            };
            pending.send(credit);
            if pending.is_empty() {
                pending.is_pumped = false;
                return;
            }
        }
    }
}

/// Returns the numbers of the bits that are set.
pub fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(bit)
    })
}

impl Flush for Control {
    fn flush(self: Arc<Self>) {
        self.is_touched.store(false, Ordering::Release);
        let mut pending = locked(&self.pending);
        while !pending.is_pumped && !pending.is_empty() {
            match self.peer.try_credit() {
                Ok(Some(credit)) => pending.send(credit),
                // Also in a handler of Active Messages, which may not send.
                _ => {
                    pending.is_pumped = true;
                    let control = self.clone();
                    self.peer.runtime().spawn(async move { control.pump().await });
                }
            }
        }
    }
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.any_taken == 0 && self.failed.is_empty() && self.abandoned == 0 && self.done == 0
    }

    /// Sends the next word. A word that can't be sent is for a peer that has gone.
    fn send(&mut self, credit: Credit<'_>) {
        let sent = if self.any_taken != 0 {
            let slot = self.any_taken.trailing_zeros() as usize;
            self.any_taken &= self.any_taken - 1;
            let taken = std::mem::take(&mut self.taken.0[slot]);
            credit.request(TAKEN, [slot as u64, taken])
        } else if let Some((slot, reason, text)) = self.failed.pop_front() {
            credit.request_with(FAILED, [slot as u64, reason.word()], text)
        } else if self.abandoned != 0 {
            let slot = self.abandoned.trailing_zeros() as usize;
            self.abandoned &= self.abandoned - 1;
            credit.request(PIECE, Packet { slot, abandons: true, ..Packet::default() }.word())
        } else {
            credit.request(DONE, std::mem::take(&mut self.done))
        };
        if let Err(why) = sent {
            tracing::debug!(%why, "a word about messages was not sent");
        }
    }
}

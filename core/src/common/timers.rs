//! Timers: a hierarchical timing wheel, with one timer for each queue pair or connection.
//!
//! A queue pair's deadline moves later with nearly every packet, and is hardly ever reached. So a
//! timer that is armed for an earlier time is left where it is. When it fires, its owner finds that
//! nothing is due, and arms it anew. That costs one comparison for each packet, and one wake-up for
//! each interval.
//!
//! The wheel counts ticks. Each of its levels has 64 slots. A slot covers one tick on the first
//! level, and on every other level as much time as the whole level below. A timer is in the lowest
//! level that reaches as far as its tick, and moves to lower levels as time comes to its slot, at most
//! once for each level. A level begins at the slot of the present, not at its first slot, so a timer
//! that is due soon is never on a high level only because a boundary lies in between.
//!
//! A slot is a ring of nodes that are linked by their indices. The slot itself is one of the nodes,
//! and keeps the earliest tick of the others. So the wheel turns only when a timer is due, or the end
//! of the last level is reached, and not each time that a slot begins.

use crate::time::Time;
use std::{array, mem};

/// The nanoseconds in a tick, 4.096 µs, which is the unit of InfiniBand's time-outs.
const TICK: u64 = 1 << 12;
/// The number of slots of a level, which is the number of bits in a word of `occupied`.
const SLOTS: u64 = 64;
/// The number of levels. Five levels reach 73 minutes ahead.
const LEVELS: usize = 5;
/// The number of slot nodes, which precede the timer nodes.
const RINGS: usize = LEVELS * SLOTS as usize;
/// The tick of a timer that is not armed, and of an empty slot.
const NEVER: u64 = u64::MAX;

/// A timing wheel with a timer for each index below a capacity.
pub(crate) struct Timers {
    /// The nodes of the slots, level by level, and then the nodes of the timers.
    nodes: Vec<Node>,
    /// The slots of each level that hold a timer, as bits.
    occupied: [u64; LEVELS],
    /// The tick to which the wheel has turned. No armed timer is due by then.
    now: u64,
    /// The first tick at which the wheel has to turn, not before `now`.
    next: u64,
}

/// A node in a ring: a timer, or the slot whose ring it is.
struct Node {
    /// The tick at which a timer fires. For a slot, a tick that is not after its earliest timer's,
    /// within the time that the slot covers.
    tick: u64,
    prev: u32,
    next: u32,
}

impl Timers {
    /// Makes timers for the indices below `capacity`, none of them armed.
    ///
    /// The timers take no more memory until they [grow](Self::grow).
    ///
    /// # Panics
    /// When there are more than 32 bits can count.
    pub fn new(capacity: usize) -> Self {
        let places = u32::try_from(RINGS + capacity).expect("timers are counted in 32 bits");
        let nodes = (0..places).map(|at| Node { tick: NEVER, prev: at, next: at }).collect();
        Self { nodes, occupied: [0; LEVELS], now: 0, next: NEVER }
    }

    /// Makes timers for the indices below `capacity`, if there are fewer.
    ///
    /// # Panics
    /// When there are more than 32 bits can count.
    pub fn grow(&mut self, capacity: usize) {
        let places = u32::try_from(RINGS + capacity).expect("timers are counted in 32 bits");
        let fresh = self.nodes.len() as u32..places;
        self.nodes.extend(fresh.map(|at| Node { tick: NEVER, prev: at, next: at }));
    }

    /// Makes sure that the timer `index` fires at the time `at` at the latest.
    ///
    /// A timer that is armed for an earlier time stays as it is: when it fires, its owner finds that
    /// nothing is due yet, and arms it for the rest of the time. This is the fast path, which is a
    /// load and a comparison.
    #[inline]
    pub fn arm(&mut self, index: u32, at: Time) {
        let tick = at.as_nanos().div_ceil(TICK);
        let place = RINGS + index as usize;
        if tick < self.nodes[place].tick {
            self.arm_earlier(place, tick);
        }
    }

    /// Disarms a timer, whose owner goes away.
    pub fn disarm(&mut self, index: u32) {
        let place = RINGS + index as usize;
        if self.nodes[place].tick != NEVER {
            self.unlink(place);
            self.nodes[place].tick = NEVER;
            self.next = self.earliest();
        }
    }

    /// Returns when to call [`expire`](Self::expire) next, which is not after the tick at which the
    /// first timer fires. Returns `None` if no timer is armed.
    ///
    /// The time may be too early if a timer was disarmed or moved, or is more than an hour ahead. Then
    /// no timer fires, but the next time that is returned is later.
    #[inline]
    pub fn next(&self) -> Option<Time> {
        (self.next != NEVER).then(|| Time::from_nanos(self.next.saturating_mul(TICK)))
    }

    /// Appends the indices of the timers that are due to `fired`, and disarms these timers.
    ///
    /// No timer fires before its time, and each fires by the end of the tick in which its time lies.
    /// The order of the indices is the same for the same calls, but is not that of the times. Nothing
    /// is allocated if `fired` has room for all. While no timer is due, this is one comparison.
    #[inline]
    pub fn expire(&mut self, now: Time, fired: &mut Vec<u32>) {
        let now = now.as_nanos() / TICK;
        if now >= self.next {
            self.turn(now, fired);
        }
    }

    fn arm_earlier(&mut self, place: usize, tick: u64) {
        if self.nodes[place].tick != NEVER {
            self.unlink(place);
        }
        self.nodes[place].tick = tick;
        self.next = self.next.min(self.link(place));
    }

    /// Turns the wheel to a tick at which there is something to do.
    fn turn(&mut self, now: u64, fired: &mut Vec<u32>) {
        let then = mem::replace(&mut self.now, now);
        // From the lowest level up, so that a timer that moves down comes into a slot that was
        // emptied already.
        for level in 0..LEVELS {
            let (first, last) = (block(then, level), block(now, level));
            if first == last && level > 0 {
                break; // nor has any level above moved on
            }
            let reached = u64::MAX >> (SLOTS - 1 - (last - first).min(SLOTS - 1));
            let mut slots = self.occupied_from(level, first) & reached;
            while slots != 0 {
                self.empty(slot(level, first + u64::from(slots.trailing_zeros())), fired);
                slots &= slots - 1;
            }
        }
        self.next = self.earliest();
    }

    /// Takes all timers out of a slot. Those that are due fire, and the others move to other slots.
    fn empty(&mut self, slot: usize, fired: &mut Vec<u32>) {
        let mut at = self.nodes[slot].next as usize;
        self.clear(slot);
        // The last node's link still leads to the slot, even if the slot has new timers by then: a
        // timer on the last level may move to the same slot again, one round ahead.
        while at != slot {
            let next = self.nodes[at].next as usize;
            if self.nodes[at].tick <= self.now {
                self.nodes[at].tick = NEVER;
                fired.push((at - RINGS) as u32);
            } else {
                self.link(at);
            }
            at = next;
        }
    }

    /// Puts a timer into the slot of its tick, and returns the tick at which the wheel has to turn for
    /// that slot.
    fn link(&mut self, place: usize) -> u64 {
        let top = LEVELS - 1;
        let horizon = ((block(self.now, top) + SLOTS) << shift(top)) - 1;
        let tick = self.nodes[place].tick.clamp(self.now, horizon);
        let in_reach = |&level: &usize| block(tick, level) - block(self.now, level) < SLOTS;
        let level = (0..top).find(in_reach).unwrap_or(top);
        let slot = slot(level, block(tick, level));
        self.occupied[level] |= 1 << (slot as u64 % SLOTS);
        let last = mem::replace(&mut self.nodes[slot].prev, place as u32);
        self.nodes[last as usize].next = place as u32;
        self.nodes[place].prev = last;
        self.nodes[place].next = slot as u32;
        self.nodes[slot].tick = self.nodes[slot].tick.min(tick);
        tick
    }

    /// Takes a timer out of its ring.
    fn unlink(&mut self, place: usize) {
        let Node { prev, next, .. } = self.nodes[place];
        if prev == next {
            // Both neighbours are the slot itself, which is empty now.
            self.clear(next as usize);
        } else {
            self.nodes[prev as usize].next = next;
            self.nodes[next as usize].prev = prev;
        }
    }

    /// Makes a slot an empty one.
    fn clear(&mut self, slot: usize) {
        self.nodes[slot] = Node { tick: NEVER, prev: slot as u32, next: slot as u32 };
        self.occupied[slot / SLOTS as usize] &= !(1 << (slot as u64 % SLOTS));
    }

    /// Returns the first tick at which the wheel has to turn.
    ///
    /// On each level, the first occupied slot has the earliest tick. Any level may have the earliest
    /// of all: a timer stays on its level while the present comes nearer, and later timers are put on
    /// levels below.
    fn earliest(&self) -> u64 {
        let ticks: [u64; LEVELS] = array::from_fn(|level| {
            let first = block(self.now, level);
            match self.occupied_from(level, first) {
                0 => NEVER,
                slots => self.nodes[slot(level, first + u64::from(slots.trailing_zeros()))].tick,
            }
        });
        ticks.into_iter().fold(NEVER, u64::min)
    }

    /// Returns the occupied slots of a level as bits, in the order of time, beginning at `first`.
    fn occupied_from(&self, level: usize, first: u64) -> u64 {
        self.occupied[level].rotate_right((first % SLOTS) as u32)
    }
}

/// Returns how many bits count the ticks within a slot of a level.
const fn shift(level: usize) -> u32 {
    SLOTS.trailing_zeros() * level as u32
}

/// Returns the number of the slot of a level that a tick lies in, counted from the clock's beginning.
const fn block(tick: u64, level: usize) -> u64 {
    tick >> shift(level)
}

/// Returns the node of a slot that [`block`] has numbered.
const fn slot(level: usize, block: u64) -> usize {
    level * SLOTS as usize + (block % SLOTS) as usize
}

#[cfg(test)]
mod tests;

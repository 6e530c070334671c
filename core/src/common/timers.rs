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
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The time that the whole wheel covers, in nanoseconds.
    const SPAN: u64 = TICK << shift(LEVELS);

    fn nanos(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    fn ticks(ticks: u64) -> Time {
        nanos(ticks * TICK)
    }

    /// Returns the timers that fire at a time, lowest index first.
    fn fired(timers: &mut Timers, now: Time) -> Vec<u32> {
        let mut fired = Vec::new();
        timers.expire(now, &mut fired);
        fired.sort_unstable();
        fired
    }

    /// Returns when each timer fires if the wheel turns at each time that it asks for.
    fn run(timers: &mut Timers) -> Vec<(Time, u32)> {
        let mut order = Vec::new();
        while let Some(now) = timers.next() {
            order.extend(fired(timers, now).into_iter().map(|index| (now, index)));
            assert!(timers.next().is_none_or(|next| next > now), "asked to wait, but not to wait");
        }
        order
    }

    #[test]
    fn nothing_armed_is_nothing_to_wait_for() {
        let mut timers = Timers::new(4);
        assert_eq!(timers.next(), None);
        assert_eq!(fired(&mut timers, nanos(u64::MAX)), []);
        assert_eq!(fired(&mut Timers::new(0), nanos(u64::MAX)), []);
    }

    #[test]
    fn a_time_within_a_tick_is_waited_for_until_the_tick_ends() {
        for (at, tick) in [(0, 0), (1, 1), (TICK - 1, 1), (TICK, 1), (TICK + 1, 2)] {
            let mut timers = Timers::new(1);
            timers.arm(0, nanos(at));
            assert_eq!(timers.next(), Some(ticks(tick)));
            if tick > 0 {
                assert_eq!(fired(&mut timers, nanos(tick * TICK - 1)), [], "armed for {at}");
            }
            assert_eq!(fired(&mut timers, ticks(tick)), [0], "armed for {at}");
            assert_eq!(timers.next(), None);
            assert_eq!(fired(&mut timers, nanos(u64::MAX)), [], "again, armed for {at}");
        }
    }

    #[test]
    fn at_a_levels_boundary_as_elsewhere_each_fires_in_its_tick_and_once() {
        for start in [0, 1, 63, 64, 4095, SPAN / TICK - 1, SPAN / TICK, 3 * SPAN / TICK - 65] {
            let boundaries = (1..=LEVELS).map(|level| 1 << shift(level));
            let delays: Vec<u64> = boundaries
                .flat_map(|span| [span - 2, span - 1, span, span + 1, span + 63])
                .collect();
            let mut timers = Timers::new(delays.len() + 1);
            // A timer that fires turns the wheel to the tick at which the others shall start.
            timers.arm(delays.len() as u32, ticks(start));
            assert_eq!(fired(&mut timers, ticks(start)), [delays.len() as u32]);
            for (index, delay) in (0..).zip(&delays) {
                timers.arm(index, ticks(start + delay));
            }
            let mut expected: Vec<_> =
                (0..).zip(&delays).map(|(index, delay)| (ticks(start + delay), index)).collect();
            expected.sort_unstable();
            assert_eq!(run(&mut timers), expected, "starting at tick {start}");
        }
    }

    #[test]
    fn all_within_the_span_fire_at_the_first_wake_up() {
        for bits in 0..30 {
            let mut timers = Timers::new(1);
            timers.arm(0, ticks((1 << bits) + 5));
            let next = timers.next().unwrap();
            assert_eq!(fired(&mut timers, next), [0], "woken in vain at {next:?}");
        }
    }

    #[test]
    fn a_jump_over_everything_loses_nothing() {
        let mut timers = Timers::new(200);
        for index in 0..200 {
            timers.arm(index, ticks(1 << (index % 40)));
        }
        assert_eq!(fired(&mut timers, ticks(1 << 41)), Vec::from_iter(0..200));
        assert_eq!(timers.next(), None);
        timers.arm(7, ticks((1 << 41) + 3));
        assert_eq!(run(&mut timers), [(ticks((1 << 41) + 3), 7)]);
    }

    #[test]
    fn what_is_beyond_the_last_level_fires_when_its_time_has_come() {
        let mut timers = Timers::new(3);
        let times = [nanos(10 * SPAN + 1), nanos(SPAN), nanos(1000 * SPAN)];
        for (index, at) in (0..).zip(times) {
            timers.arm(index, at);
        }
        let expected = [(times[1], 1), (nanos(10 * SPAN + TICK), 0), (times[2], 2)];
        assert_eq!(run(&mut timers), expected);
    }

    #[test]
    fn a_near_timer_is_not_hidden_by_a_far_one_in_an_earlier_slot() {
        let mut timers = Timers::new(3);
        let slot = SPAN / SLOTS;
        timers.arm(0, nanos(10 * SPAN)); // in the last slot, though its time is far beyond
        timers.arm(1, nanos(40 * slot));
        assert_eq!(fired(&mut timers, nanos(40 * slot)), [1]);
        timers.arm(2, nanos(70 * slot)); // seven slots after that last one
        let expected = [(nanos(70 * slot), 2), (nanos(10 * SPAN), 0)];
        assert_eq!(run(&mut timers), expected);
    }

    #[test]
    fn the_end_of_the_clock_is_never() {
        let mut timers = Timers::new(1);
        timers.arm(0, nanos(u64::MAX));
        assert_eq!(fired(&mut timers, nanos(u64::MAX)), []);
        assert!(timers.next().is_some());
    }

    #[test]
    fn only_an_earlier_time_moves_what_is_armed() {
        let mut timers = Timers::new(2);
        timers.arm(0, ticks(5000));
        timers.arm(0, ticks(6000));
        assert_eq!(timers.next(), Some(ticks(5000)));
        timers.arm(0, ticks(70));
        timers.arm(1, ticks(71));
        timers.arm(0, ticks(5000));
        assert_eq!(run(&mut timers), [(ticks(70), 0), (ticks(71), 1)]);
    }

    #[test]
    fn what_has_passed_already_fires_at_once() {
        let mut timers = Timers::new(2);
        timers.arm(0, ticks(1000));
        assert_eq!(fired(&mut timers, ticks(1000)), [0]);
        timers.arm(0, ticks(1000));
        timers.arm(1, ticks(3));
        assert_eq!(fired(&mut timers, ticks(1000)), [0, 1]);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn those_that_fired_can_be_armed_again_right_away() {
        let mut timers = Timers::new(10);
        for index in 0..10 {
            timers.arm(index, ticks(100));
        }
        let mut fired = Vec::with_capacity(10);
        for round in 1..1000 {
            let now = ticks(round * 100);
            timers.expire(now, &mut fired);
            assert_eq!(fired.len(), 10, "round {round}");
            for index in fired.drain(..) {
                timers.arm(index, ticks((round + 1) * 100));
            }
        }
    }

    #[test]
    fn a_slot_whose_only_timer_is_disarmed_is_empty() {
        let mut timers = Timers::new(2);
        for delay in [0, 3, 100, 5000, 1 << 40] {
            timers.arm(0, ticks(delay));
            timers.disarm(0);
            timers.disarm(0);
            assert_eq!(timers.next(), None);
            assert_eq!(timers.occupied, [0; LEVELS]);
        }
        assert_eq!(fired(&mut timers, nanos(u64::MAX)), []);
    }

    #[test]
    fn the_neighbours_of_one_disarmed_stay() {
        for gone in 0..3 {
            let mut timers = Timers::new(3);
            for index in 0..3 {
                timers.arm(index, ticks(5000));
            }
            timers.disarm(gone);
            let left: Vec<_> = (0..3).filter(|&index| index != gone).collect();
            assert_eq!(fired(&mut timers, ticks(5000)), left);
        }
    }

    #[test]
    fn waiting_for_one_that_was_disarmed_comes_to_an_end() {
        let mut timers = Timers::new(3);
        for (index, at) in (0..).zip([5000, 5001, 5002]) {
            timers.arm(index, ticks(at));
        }
        timers.disarm(0);
        timers.disarm(1);
        assert_eq!(run(&mut timers), [(ticks(5002), 2)]);
    }

    #[test]
    #[should_panic(expected = "index out of bounds")]
    fn an_index_beyond_the_capacity_is_refused() {
        Timers::new(3).arm(3, Time::ZERO);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Arm(u32, u64),
        Disarm(u32),
        /// Lets the time pass at one go.
        Jump(u64),
        /// Lets the time pass, and turns the wheel at each time that it asks for.
        Wait(u64),
    }

    /// Delays of every magnitude, up to some hours.
    fn delay() -> impl Strategy<Value = u64> {
        (any::<u64>(), 20..60_u32).prop_map(|(delay, shift)| delay >> shift)
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0..INDICES, delay()).prop_map(|(index, delay)| Step::Arm(index, delay)),
            1 => (0..INDICES).prop_map(Step::Disarm),
            1 => delay().prop_map(Step::Jump),
            2 => delay().prop_map(Step::Wait),
        ]
    }

    const INDICES: u32 = 40;

    /// The wheel, and beside it nothing but the tick of each timer.
    struct Both {
        timers: Timers,
        model: Vec<Option<u64>>,
    }

    impl Both {
        fn arm(&mut self, index: u32, at: u64) {
            let tick = at.div_ceil(TICK);
            let armed = &mut self.model[index as usize];
            *armed = Some(armed.map_or(tick, |armed| armed.min(tick)));
            self.timers.arm(index, nanos(at));
        }

        fn disarm(&mut self, index: u32) {
            self.model[index as usize] = None;
            self.timers.disarm(index);
        }

        /// Exactly those fire whose tick has come, whatever happened before.
        fn expire(&mut self, now: u64) {
            let due = |tick: &u64| *tick <= now / TICK;
            let expected: Vec<u32> = (0..INDICES)
                .filter(|index| self.model[*index as usize].take_if(|tick| due(tick)).is_some())
                .collect();
            assert_eq!(fired(&mut self.timers, nanos(now)), expected, "at {now}");
        }

        fn check_next(&self) {
            let earliest = self.model.iter().flatten().min().map(|&tick| ticks(tick));
            assert_eq!(self.timers.next().is_some(), earliest.is_some());
            assert!(self.timers.next() <= earliest);
        }
    }

    proptest! {
        #[test]
        fn as_a_list_of_deadlines(
            start in delay(),
            steps in proptest::collection::vec(step(), 1..200),
        ) {
            let model = vec![None; INDICES as usize];
            let mut both = Both { timers: Timers::new(INDICES as usize), model };
            let mut now = start;
            for step in steps {
                match step {
                    Step::Arm(index, delay) => both.arm(index, now + delay),
                    Step::Disarm(index) => both.disarm(index),
                    Step::Jump(delay) => {
                        now += delay;
                        both.expire(now);
                    }
                    Step::Wait(delay) => {
                        now += delay;
                        let now = nanos(now);
                        while let Some(next) = both.timers.next().filter(|next| *next <= now) {
                            both.expire(next.as_nanos());
                            both.check_next();
                            prop_assert!(both.timers.next().is_none_or(|later| later > next));
                        }
                        both.expire(now.as_nanos());
                    }
                }
                both.check_next();
            }
        }
    }
}

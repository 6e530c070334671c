//! How long a waiting task takes turns before it lets other tasks run, learnt from earlier waits.
//!
//! What a task waits for may depend on another task of the same thread, such as the server that is
//! to answer. Each turn before that task runs is in vain. So a wait that takes all its turns in
//! vain, lets other tasks run, and finds in its next turn what they brought, halves the turns of
//! later waits. What comes in the second half of a task's turns doubles the turns of later waits.
//! Where no other task of the thread runs a NIC, a task takes turns for as long as it may.

use std::cell::Cell;

use super::leader::Precedence;
use crate::sync::{AtomicU32, Ordering};

/// The most turns that a future takes before it lets other tasks run.
pub(super) const TURNS_A_POLL: u32 = 10_000;
/// The fewest turns that a task takes before it lets other tasks run.
const LEAST: u32 = 4;
/// The factor by which the turns of a wait grow each time that the wait has let nobody run.
const GROWTH: u32 = 8;

thread_local! {
    /// How often tasks of this thread have run a NIC, or posted work that left at once.
    static RUNS: Cell<u64> = const { Cell::new(0) };
}

/// Counts that a task of this thread runs a NIC, and returns the count.
#[inline]
pub(super) fn count_run() -> u64 {
    RUNS.set(RUNS.get().wrapping_add(1));
    RUNS.get()
}

/// The turns that waiting tasks of one NIC take before they let other tasks run, by the precedence
/// of the waits.
pub(super) struct Patience([AtomicU32; 3]);

impl Default for Patience {
    fn default() -> Self {
        Self([0; 3].map(|_| AtomicU32::new(TURNS_A_POLL)))
    }
}

impl Patience {
    fn of(&self, who: Precedence) -> &AtomicU32 {
        &self.0[who as usize - 1]
    }

    /// Returns how many turns without a find a task takes before it lets other tasks run.
    #[inline]
    pub fn turns(&self, who: Precedence) -> u32 {
        self.of(who).load(Ordering::Relaxed)
    }

    /// Notes that something came while a task took turns.
    #[inline]
    fn lengthen(&self, who: Precedence) {
        let turns = self.turns(who);
        if turns < TURNS_A_POLL {
            // Two threads that learn at the same time may lose one step.
            self.of(who).store((turns * 2).min(TURNS_A_POLL), Ordering::Relaxed);
        }
    }

    /// Notes that a task took `in_vain` turns before it let others run, which brought something.
    fn shorten(&self, who: Precedence, in_vain: u32) {
        let turns = self.turns(who).min(in_vain) / 2;
        self.of(who).store(turns.max(LEAST), Ordering::Relaxed);
    }
}

/// The turns of one poll of a wait.
pub(super) struct Turns {
    /// How many turns the poll has taken.
    pub taken: u32,
    /// The most turns that the poll may take.
    most: u32,
    /// After how many turns something last came.
    came: u32,
    /// Whether other tasks of this thread have run a NIC since the last poll.
    others_ran: bool,
}

impl Turns {
    /// Returns whether the poll may take no more turns.
    #[inline]
    pub fn are_over(&self) -> bool {
        self.taken >= self.most
    }

    /// Returns how many turns of the poll have brought nothing since something last came.
    #[inline]
    pub fn in_vain(&self) -> u32 {
        self.taken - self.came
    }
}

/// The memory of one wait: how its polls went since something last came.
#[derive(Default)]
pub(super) struct Spent {
    /// The turns that the last poll took in vain before it let others run, or 0 if the wait has let
    /// nobody run for that reason.
    in_vain: u32,
    /// The count of runs when others were let run.
    runs: u64,
    /// How many polls in a row were the next to run a NIC after the poll before.
    alone: u32,
}

impl Spent {
    /// Begins a poll, and returns the turns that it may take.
    #[inline]
    pub fn begin(&mut self, patience: &Patience, who: Precedence) -> Turns {
        let runs = count_run();
        let (mut most, mut others_ran) = (patience.turns(who), false);
        if self.in_vain > 0 {
            most = self.in_vain;
            others_ran = runs != self.runs.wrapping_add(1);
            self.alone = if others_ran { 0 } else { self.alone + 1 };
            // Of the tasks that have yielded, Tokio polls the last one first. So a task is alone
            // only if nobody else runs a NIC before its second poll.
            if self.alone > 1 {
                most = most.saturating_mul(GROWTH).min(TURNS_A_POLL);
            }
        }
        Turns { taken: 0, most, came: 0, others_ran }
    }

    /// Notes that something came in the last of the given turns.
    #[inline]
    pub fn came(&mut self, patience: &Patience, who: Precedence, turns: &mut Turns) {
        let (nth, yielded) = (turns.in_vain(), self.in_vain > 0);
        if nth > patience.turns(who) / 2 {
            patience.lengthen(who);
        } else if nth == 1 && yielded && turns.others_ran {
            patience.shorten(who, self.in_vain);
        }
        *self = Self::default();
        turns.came = turns.taken;
        turns.most = (turns.taken + patience.turns(who)).min(TURNS_A_POLL);
    }

    /// Returns whether all tasks that were ready to run a NIC have run since something last came.
    pub fn have_others_run(&self) -> bool {
        self.in_vain > 0 && self.alone != 1
    }

    /// Notes that other tasks are let run, after `in_vain` turns if the poll ended because of them,
    /// and otherwise after none.
    #[inline]
    pub fn yields(&mut self, in_vain: u32) {
        *self = Self { in_vain, runs: RUNS.get(), alone: self.alone };
    }
}

#[cfg(all(test, not(verbs_loom)))]
mod tests {
    use super::*;

    const WHO: Precedence = Precedence::Awaits;

    /// Begins a poll, and takes the given number of its turns, or all if there are fewer.
    fn begun(spent: &mut Spent, patience: &Patience, taken: u32) -> Turns {
        let turns = spent.begin(patience, WHO);
        Turns { taken: taken.min(turns.most), ..turns }
    }

    /// Waits in vain, lets others run, who run a NIC if `others` says so, and then finds something
    /// in the given turn.
    fn waits(patience: &Patience, others: bool, nth: u32) {
        let mut spent = Spent::default();
        let turns = begun(&mut spent, patience, u32::MAX);
        spent.yields(turns.in_vain());
        if others {
            count_run();
        }
        let mut turns = begun(&mut spent, patience, nth);
        assert_eq!(turns.others_ran, others);
        spent.came(patience, WHO, &mut turns);
    }

    fn after(waits_of_others: usize) -> Patience {
        let patience = Patience::default();
        (0..waits_of_others).for_each(|_| waits(&patience, true, 1));
        patience
    }

    #[test]
    fn turns_before_others_bring_something_are_halved_down_to_a_few() {
        let turns = [0, 1, 2, 30].map(|waits| after(waits).turns(WHO));
        assert_eq!(turns, [TURNS_A_POLL, TURNS_A_POLL / 2, TURNS_A_POLL / 4, LEAST]);
    }

    #[test]
    fn a_task_takes_all_its_turns_again_once_what_it_waits_for_comes_meanwhile() {
        let patience = after(30);
        for _ in 0..12 {
            let last = patience.turns(WHO);
            waits(&patience, true, last);
        }
        assert_eq!(patience.turns(WHO), TURNS_A_POLL);
    }

    #[test]
    fn turns_that_bring_something_soon_are_enough() {
        let patience = after(30);
        (0..12).for_each(|_| waits(&patience, true, 2));
        assert_eq!(patience.turns(WHO), LEAST);
    }

    #[test]
    fn waits_that_let_nobody_run_keep_their_turns() {
        let patience = Patience::default();
        (0..30).for_each(|_| waits(&patience, false, 1));
        assert_eq!(patience.turns(WHO), TURNS_A_POLL);
    }

    #[test]
    fn a_wait_that_lets_nobody_run_goes_on_with_more_and_more_turns() {
        let (patience, mut spent) = (after(30), Spent::default());
        let mut most = 0;
        for expected in [LEAST, LEAST, 32, 256, 2048, TURNS_A_POLL, TURNS_A_POLL] {
            most = spent.begin(&patience, WHO).most;
            assert_eq!(most, expected);
            spent.yields(most);
        }
        count_run();
        let turns = spent.begin(&patience, WHO);
        assert_eq!((turns.most, turns.others_ran), (most, true));
    }

    /// Tokio polls the last task first of those that have yielded, so a task sees that nobody else
    /// has run even if others are about to.
    #[test]
    fn a_wait_may_sleep_once_others_have_run_or_nobody_has_twice() {
        let (patience, mut spent) = (Patience::default(), Spent::default());
        let mut may_sleep = |others: bool| {
            if others {
                count_run();
            }
            let turns = begun(&mut spent, &patience, 64);
            let may = spent.have_others_run();
            spent.yields(turns.in_vain());
            may
        };
        let polls = [false, false, false, true, false].map(&mut may_sleep);
        assert_eq!(polls, [false, false, true, true, false]);
    }

    #[test]
    fn waits_of_one_precedence_learn_nothing_from_those_of_another() {
        assert_eq!(after(30).turns(Precedence::Serves), TURNS_A_POLL);
    }
}

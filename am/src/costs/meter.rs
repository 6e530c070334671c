//! Spans that are measured by the processor's time stamp counter.
//!
//! At any time a thread spends its time on one category, or on nothing that has a span. A change
//! from one to another reads the counter once, and adds what has passed since the change before to
//! what the thread was at. So a span within another is not part of the outer one's time.
//!
//! A change takes about as long as some of what is measured. Between the readings of two changes
//! lies once what a change takes: the rest of the first, and the beginning of the second. That is
//! measured by itself, and subtracted.

use std::cell::Cell;
use std::sync::LazyLock;

use quanta::Clock;

use super::Cost;

/// How many categories there are.
const COSTS: usize = 5;
/// The place of time without a span, behind those of the categories.
const OUTSIDE: usize = COSTS;

/// The time stamp counter, or the system's monotonic clock on a processor whose counter is not
/// steady.
static CLOCK: LazyLock<Clock> = LazyLock::new(Clock::new);

thread_local! {
    static METER: Meter = const { Meter::new() };
}

/// What a thread has spent its time on.
struct Meter {
    /// The place of what the thread is at now, and the counter when that began.
    now: Cell<usize>,
    since: Cell<u64>,
    /// For each place, how far the counter went there, and how often a change led away from there.
    ticks: [Cell<u64>; COSTS + 1],
    changes: [Cell<u64>; COSTS + 1],
}

impl Meter {
    const fn new() -> Self {
        Self {
            now: Cell::new(OUTSIDE),
            since: Cell::new(0),
            ticks: [const { Cell::new(0) }; COSTS + 1],
            changes: [const { Cell::new(0) }; COSTS + 1],
        }
    }

    /// From now on, the thread's time is spent on what has a place. Returns the place before.
    #[inline]
    fn change(&self, to: usize) -> usize {
        let (before, ticks) = (self.now.replace(to), CLOCK.raw());
        let passed = ticks.saturating_sub(self.since.replace(ticks));
        self.ticks[before].set(self.ticks[before].get() + passed);
        self.changes[before].set(self.changes[before].get() + 1);
        before
    }

    /// Takes what was counted since this was asked before.
    fn take(&self) -> Counted {
        self.change(self.now.get());
        let take = |cells: &[Cell<u64>]| std::array::from_fn(|at| cells[at].take());
        Counted { ticks: take(&self.ticks), changes: take(&self.changes) }
    }
}

/// What a meter counts: see [`Meter`].
#[derive(Clone, Copy)]
struct Counted {
    ticks: [u64; COSTS + 1],
    changes: [u64; COSTS + 1],
}

/// A span of a thread's time that is spent on one category, from the call of [`span`] until this is
/// dropped.
#[derive(Debug)]
pub struct Span {
    before: usize,
}

/// Begins a span, on this thread. Spans end in the opposite order.
#[inline]
pub fn span(cost: Cost) -> Span {
    Span { before: METER.with(|meter| meter.change(cost as usize)) }
}

impl Drop for Span {
    #[inline]
    fn drop(&mut self) {
        METER.with(|meter| meter.change(self.before));
    }
}

/// What a thread has spent its time on in a while, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Costs {
    spent: [f64; COSTS + 1],
    measuring: f64,
}

impl Costs {
    /// The time spent on a category.
    pub fn on(&self, cost: Cost) -> f64 {
        self.spent[cost as usize]
    }

    /// The time spent on nothing that has a span.
    pub fn outside(&self) -> f64 {
        self.spent[OUTSIDE]
    }

    /// The time that measuring took, which was subtracted from all others.
    pub fn measuring(&self) -> f64 {
        self.measuring
    }
}

/// What this thread has spent its time on since it asked before. Outside of spans only.
///
/// What a change from one category to another takes is measured here, anew each time: it depends on
/// the processor's frequency.
pub fn taken() -> Costs {
    let counted = METER.with(Meter::take);
    let nanos = |ticks: u64| CLOCK.delta_as_nanos(0, ticks) as f64;
    let each = nanos(a_thousand_changes()) / 1e3;
    METER.with(Meter::take);
    let spent = |at: usize| {
        let passed = nanos(counted.ticks[at]);
        passed - passed.min(counted.changes[at] as f64 * each)
    };
    let spent: [f64; COSTS + 1] = std::array::from_fn(spent);
    let all: f64 = counted.ticks.iter().map(|&ticks| nanos(ticks)).sum();
    Costs { spent, measuring: all - spent.iter().sum::<f64>() }
}

/// How far the counter goes in a thousand changes: the least of several attempts, since the least
/// disturbed is the truest.
fn a_thousand_changes() -> u64 {
    let attempt = || {
        let begin = CLOCK.raw();
        (0..500).for_each(|_| drop(span(Cost::Handlers)));
        CLOCK.raw() - begin
    };
    (0..16).map(|_| attempt()).min().unwrap_or_default()
}

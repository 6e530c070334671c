//! Spans that are measured by the processor's time stamp counter, one category at a time.
//!
//! A thread watches one category. The counter is read where the thread turns to that category or
//! away from it, and nowhere else. So what reading takes can be found out in place, by comparing
//! how long a program takes while the category is watched and while none is.

use std::cell::Cell;
use std::sync::LazyLock;

use quanta::Clock;

use super::Cost;

/// The time stamp counter, or the system's monotonic clock on a processor whose counter is not
/// steady.
static CLOCK: LazyLock<Clock> = LazyLock::new(Clock::new);

/// The number of time without a span. The categories have lower ones.
const OUTSIDE: u8 = 5;
/// The number of no time at all. A thread that watches it reads no counter, and decides as often
/// whether to as a thread that watches a category.
const NEVER: u8 = 6;

thread_local! {
    static METER: Meter = const {
        Meter {
            now: Cell::new(OUTSIDE),
            watched: Cell::new(NEVER),
            ticks: Cell::new(0),
        }
    };
}

/// The meter of a thread, which notes what its time is spent on. Categories are kept as numbers.
struct Meter {
    /// The category of the innermost span.
    now: Cell<u8>,
    watched: Cell<u8>,
    /// How far the counter went in the watched category: its readings where the category ends, less
    /// those where the category begins.
    ticks: Cell<u64>,
}

impl Meter {
    /// From now on, the thread's time is spent on another category. Returns the one before.
    #[inline]
    fn turn_to(&self, cost: u8) -> u8 {
        let (before, watched) = (self.now.replace(cost), self.watched.get());
        if (before == watched) != (cost == watched) {
            let ticks = self.ticks.get();
            self.ticks.set(match cost == watched {
                true => ticks.wrapping_sub(CLOCK.raw()),
                false => ticks.wrapping_add(CLOCK.raw()),
            });
        }
        before
    }
}

/// A span of a thread's time that is spent on one category, from the call of [`span`] until this is
/// dropped. What a span within another takes is not part of the outer one's time.
#[derive(Debug)]
pub struct Span {
    before: u8,
}

/// Begins a span, on this thread. Spans end in the opposite order.
#[inline]
pub fn span(cost: Cost) -> Span {
    Span { before: METER.with(|meter| meter.turn_to(cost as u8)) }
}

impl Drop for Span {
    #[inline]
    fn drop(&mut self) {
        METER.with(|meter| meter.turn_to(self.before));
    }
}

/// Runs something on this thread, outside of any span, and watches a category meanwhile, or none.
/// Returns what the run returned, and how many nanoseconds it has spent on that category. With each
/// span of the category they contain once the time that it takes to read the counter.
pub fn watch<T>(cost: Option<Cost>, runs: impl FnOnce() -> T) -> (T, f64) {
    LazyLock::force(&CLOCK);
    METER.with(|meter| {
        meter.ticks.set(0);
        meter.watched.set(cost.map_or(NEVER, |cost| cost as u8));
    });
    let returned = runs();
    METER.with(|meter| {
        meter.watched.set(NEVER);
        (returned, CLOCK.delta_as_nanos(0, meter.ticks.get()) as f64)
    })
}

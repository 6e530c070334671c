//! Where a thread's time goes that handles and sends messages, by what the paper calls them: with
//! the feature `costs`, and without it nothing of this is compiled.
//!
//! A span begins where its guard is made and ends where that is dropped; what a span within it
//! takes is not its own. To look at the clock takes longer than much of what is measured: what that
//! takes is measured by itself, and taken off.

/// What time is spent on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cost {
    /// What verbs does: requests are posted, doorbells rung, the NIC takes turns.
    Base,
    /// To find out that something has happened.
    Notification,
    /// Credits, and the buffers that they stand for.
    FlowControl,
    /// To make messages, to take them apart, and to run what they are for.
    Semantics,
    /// The handlers themselves.
    Handlers,
}

#[cfg(feature = "costs")]
pub(crate) use clock::span;
#[cfg(feature = "costs")]
pub use clock::{Costs, taken};

#[cfg(not(feature = "costs"))]
pub(crate) use nothing::span;

#[cfg(not(feature = "costs"))]
mod nothing {
    use super::Cost;

    pub struct Span;

    #[inline(always)]
    pub fn span(_: Cost) -> Span {
        Span
    }
}

#[cfg(feature = "costs")]
mod clock {
    use std::cell::Cell;
    use std::sync::OnceLock;
    use std::time::{Duration, Instant};

    use super::Cost;

    /// What a thread has spent on each.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct Costs {
        nanos: [u64; 5],
        looks: [u64; 5],
    }

    impl Costs {
        /// On one of them.
        pub fn on(&self, cost: Cost) -> Duration {
            let looks = self.looks[cost as usize] as f64 * a_look();
            Duration::from_nanos(self.nanos[cost as usize].saturating_sub(looks as u64))
        }
    }

    thread_local! {
        static NOW: Cell<Option<(Cost, Instant)>> = const { Cell::new(None) };
        static COSTS: Cell<Costs> = const { Cell::new(Costs { nanos: [0; 5], looks: [0; 5] }) };
    }

    /// What this thread has spent since this was asked before.
    pub fn taken() -> Costs {
        COSTS.take()
    }

    /// How many nanoseconds of each part of a span go to its being measured.
    fn a_look() -> f64 {
        const SPANS: u32 = 100_000;
        static A_LOOK: OnceLock<f64> = OnceLock::new();
        *A_LOOK.get_or_init(|| {
            let counted = COSTS.get();
            let start = Instant::now();
            (0..SPANS).for_each(|_| drop(span(Cost::Handlers)));
            let took = start.elapsed();
            COSTS.set(counted);
            // Each is measured at its beginning and at its end.
            took.as_nanos() as f64 / f64::from(2 * SPANS)
        })
    }

    /// While there is this, time is spent on something.
    pub struct Span {
        before: Option<Cost>,
    }

    fn turn_to(cost: Option<Cost>) -> Option<Cost> {
        let (before, now) = (NOW.get(), Instant::now());
        if let Some((cost, since)) = before {
            let mut costs = COSTS.get();
            costs.nanos[cost as usize] += (now - since).as_nanos() as u64;
            costs.looks[cost as usize] += 1;
            COSTS.set(costs);
        }
        NOW.set(cost.map(|cost| (cost, now)));
        before.map(|(cost, _)| cost)
    }

    /// Time is spent on this from here on.
    pub fn span(cost: Cost) -> Span {
        Span { before: turn_to(Some(cost)) }
    }

    impl Drop for Span {
        fn drop(&mut self) {
            turn_to(self.before);
        }
    }
}

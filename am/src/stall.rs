//! Reports of waits that take long.

use std::fmt;
use std::time::{Duration, Instant};

/// How long a process waits before it reports what it waits for, if nothing else is configured.
pub const USUAL: Duration = Duration::from_secs(60);

/// The times of a wait at which it is reported: after a configured time, and then after twice as
/// long each time.
#[derive(Clone, Copy, Debug)]
pub struct Stall {
    since: Instant,
    next: Duration,
}

impl Stall {
    /// A wait that begins now, and is reported after `first`; never if `first` is
    /// [`Duration::MAX`].
    pub fn after(first: Duration) -> Self {
        Self { since: Instant::now(), next: first }
    }

    /// Reports the wait if it is time to. `what` says who waits for what; the report adds for how
    /// long.
    pub fn report<W: fmt::Display>(&mut self, what: impl FnOnce() -> W) {
        let waited = self.since.elapsed();
        if waited < self.next {
            return;
        }
        self.next = self.next.saturating_mul(2);
        let text = format!("{}, for {:.1} s so far", what(), waited.as_secs_f64());
        // A program without a subscriber would hear nothing, and its user would see only that
        // nothing goes on.
        match tracing::dispatcher::has_been_set() {
            true => tracing::warn!("{text}"),
            false => {
                // In one write, which the lines of other processes don't break up.
                let line = format!("doorbell: {text}\n");
                eprint!("{line}");
            }
        }
    }
}

//! The deadline of a wait for a peer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use crate::link::Link;

/// The deadline of a wait, which counts from when the task begins to sleep. While the task spins,
/// no clock is read and there is no timer.
pub(super) struct Deadline<'l> {
    within: Option<Duration>,
    /// The timer, once the task has begun to sleep.
    sleeper: Option<Box<Sleeper<'l>>>,
}

/// A task that sleeps until a peer does something. The peer is probed for signs of life meanwhile.
struct Sleeper<'l> {
    link: &'l Arc<Link>,
    until: Option<Pin<Box<Sleep>>>,
}

impl<'l> Sleeper<'l> {
    fn new(link: &'l Arc<Link>, within: Option<Duration>) -> Self {
        link.begin_sleep();
        let until = within.and_then(|within| Instant::now().checked_add(within));
        // The waiting thread may have no runtime, or one without timers.
        let _here = until.map(|_| link.endpoint.runtime.enter());
        Self { link, until: until.map(|until| Box::pin(sleep_until(until))) }
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        self.link.end_sleep();
    }
}

impl<'l> Deadline<'l> {
    /// Makes a deadline, or none if the task waits as long as the peer is there.
    #[inline]
    pub const fn of(within: Option<Duration>) -> Self {
        Self { within, sleeper: None }
    }

    /// Returns the time that the wait may take, which is [`Duration::MAX`] if there is no bound.
    pub fn within(&self) -> Duration {
        self.within.unwrap_or(Duration::MAX)
    }

    /// Returns whether the deadline is over, and has the task woken when it will be.
    pub fn poll(&mut self, link: &'l Arc<Link>, context: &mut Context<'_>) -> Poll<()> {
        let new = || Box::new(Sleeper::new(link, self.within));
        match &mut self.sleeper.get_or_insert_with(new).until {
            Some(until) => until.as_mut().poll(context),
            None => Poll::Pending,
        }
    }
}

//! How long somebody waits for a peer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use crate::link::Link;

/// The time in which somebody wants to have what a link brings, from when it begins to sleep. While
/// that spins, no clock is read and there is no timer.
pub(crate) struct Deadline<'l> {
    within: Option<Duration>,
    /// There when it has begun to sleep.
    sleeper: Option<Box<Sleeper<'l>>>,
}

/// Somebody who sleeps until a peer does something. The peer is to show meanwhile that it is alive.
struct Sleeper<'l> {
    link: &'l Arc<Link>,
    until: Option<Pin<Box<Sleep>>>,
}

impl<'l> Sleeper<'l> {
    fn new(link: &'l Arc<Link>, within: Option<Duration>) -> Self {
        link.begin_sleep();
        let until = within.and_then(|within| Instant::now().checked_add(within));
        // Who waits may have no runtime, or one that has no timers.
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
    /// So long, or as long as the peer is there.
    #[inline]
    pub const fn of(within: Option<Duration>) -> Self {
        Self { within, sleeper: None }
    }

    /// How long that is, if it is bounded.
    pub fn within(&self) -> Duration {
        self.within.unwrap_or(Duration::MAX)
    }

    /// Whether the time is over; if it is not, who waits is woken then.
    pub fn poll(&mut self, link: &'l Arc<Link>, context: &mut Context<'_>) -> Poll<()> {
        let new = || Box::new(Sleeper::new(link, self.within));
        match &mut self.sleeper.get_or_insert_with(new).until {
            Some(until) => until.as_mut().poll(context),
            None => Poll::Pending,
        }
    }
}

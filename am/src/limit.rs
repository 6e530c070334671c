//! How long somebody waits for a peer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use crate::link::Link;

/// The time in which somebody wants to have what a link brings, from when it begins to sleep. While that
/// spins, no clock is read and there is no timer.
pub(crate) struct Limit<'l> {
    within: Option<Duration>,
    sleep: Option<Pin<Box<Sleep>>>,
    waits: Option<Waits<'l>>,
}

/// Somebody who waits for a peer, which is to show meanwhile that it is alive.
struct Waits<'l>(&'l Arc<Link>);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.ends_to_wait();
    }
}

impl<'l> Limit<'l> {
    /// As long, or as long as the peer is there.
    #[inline]
    pub const fn of(within: Option<Duration>) -> Self {
        Self { within, sleep: None, waits: None }
    }

    /// How long that is, if it is bounded.
    pub fn within(&self) -> Duration {
        self.within.unwrap_or(Duration::MAX)
    }

    /// Whether the time is over; if it is not, who waits is woken then.
    pub fn poll(&mut self, link: &'l Arc<Link>, context: &mut Context<'_>) -> Poll<()> {
        self.waits.get_or_insert_with(|| {
            link.begins_to_wait();
            Waits(link)
        });
        if self.sleep.is_none() {
            let until = self.within.and_then(|within| Instant::now().checked_add(within));
            let Some(until) = until else { return Poll::Pending };
            // Who waits may have no runtime, or one that has no timers.
            let _here = link.endpoint.shared.runtime.enter();
            self.sleep = Some(Box::pin(sleep_until(until)));
        }
        match &mut self.sleep {
            Some(sleep) => sleep.as_mut().poll(context),
            None => Poll::Pending,
        }
    }
}

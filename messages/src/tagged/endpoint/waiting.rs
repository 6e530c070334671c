//! Waiting for requests that were posted: for one, and for any of several.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use doorbell_verbs::floor::PolledWait;

use super::shared::Shared;

/// The state of waiting for an outcome. Whoever waits has the NIC make progress meanwhile.
pub struct Waits {
    shared: Arc<Shared>,
    wait: Option<PolledWait>,
}

impl Waits {
    pub fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: shared.clone(), wait: None }
    }

    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Waits until `find` finds something, and has a task woken by `arm` when it may.
    pub fn poll_until<T>(
        &mut self,
        context: &mut Context<'_>,
        find: impl FnMut() -> Option<T>,
        arm: impl FnMut(&Waker),
    ) -> Poll<T> {
        let bundle = self.shared.bundle();
        let wait = self.wait.get_or_insert_with(|| PolledWait::new(bundle.nic()));
        let polled = bundle.poll_until(wait, context, find, arm);
        if polled.is_ready() {
            self.wait = None;
        }
        polled
    }
}

impl fmt::Debug for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waits").finish_non_exhaustive()
    }
}

/// A request that was posted: a [`Sending`](super::Sending) or a [`Receiving`](super::Receiving).
/// The trait is implemented by these alone.
pub trait Request: Future + Unpin + sealed::Sealed {
    /// Returns whether the request's outcome was taken.
    fn is_over(&self) -> bool;
}

pub(super) mod sealed {
    pub trait Sealed {}
}

/// Waits for the first outcome of several requests, and returns it with the request's place among
/// them. Requests whose outcomes were taken before are passed over; if all were, this returns
/// `None`.
///
/// ```
/// use doorbell_messages::{Endpoint, Match, wait_any};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anyhow::Result<()> {
/// let far = Endpoint::open("shm").await?;
/// let near = Endpoint::open("shm").await?;
/// let peer = near.connect(far.name()).await?;
/// let mut receives = [1, 2].map(|bits| far.receive(Match::exactly(bits)));
/// peer.send(2, "two").await?;
/// peer.send(1, "one").await?;
/// while let Some((place, message)) = wait_any(&mut receives).await {
///     assert_eq!(message?.bits, place as u64 + 1);
/// }
/// # Ok(())
/// # }
/// ```
pub async fn wait_any<R: Request>(requests: &mut [R]) -> Option<(usize, R::Output)> {
    std::future::poll_fn(|context| {
        let mut waits = false;
        for (place, request) in requests.iter_mut().enumerate() {
            if request.is_over() {
                continue;
            }
            waits = true;
            if let Poll::Ready(outcome) = std::pin::Pin::new(request).poll(context) {
                return Poll::Ready(Some((place, outcome)));
            }
        }
        if waits { Poll::Pending } else { Poll::Ready(None) }
    })
    .await
}

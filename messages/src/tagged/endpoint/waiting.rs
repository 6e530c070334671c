//! Waiting for requests that were posted: for one, and for any of several.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use doorbell_am::Bundle;
use doorbell_verbs::Nic;
use doorbell_verbs::floor::{HasNic, PolledWait};

use super::core::Core;
use super::shared::Shared;

/// The state of waiting for an outcome. Whoever waits has the NIC make progress meanwhile.
#[derive(Default)]
pub struct Waits(Option<PolledWait<Keeper>>);

/// The endpoint, which a wait keeps.
struct Keeper(Arc<Shared>);

impl HasNic for Keeper {
    fn nic(&self) -> &Nic {
        self.0.bundle().nic()
    }
}

impl AsRef<Bundle> for Keeper {
    fn as_ref(&self) -> &Bundle {
        self.0.bundle()
    }
}

impl Waits {
    /// Waits until `find` finds something, and has a task woken by `arm` when it may.
    pub fn poll_until<T>(
        &mut self,
        core: &Core,
        context: &mut Context<'_>,
        mut find: impl FnMut() -> Option<T>,
        arm: impl FnMut(&Waker),
    ) -> Poll<T> {
        if self.0.is_none() {
            self.0 = Shared::of(core).map(|shared| PolledWait::new(Keeper(shared)));
        }
        // Everything has its outcome at an endpoint that was dropped.
        let Some(wait) = &mut self.0 else {
            return find().map_or(Poll::Pending, Poll::Ready);
        };
        let polled = Bundle::poll_until(wait, context, find, arm);
        if polled.is_ready() {
            self.0 = None;
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

//! Waiting for what comes by a link, while the progress engine handles what comes.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use doorbell_verbs::floor::{HeldNic, Look};

use super::deadline::Deadline;
use crate::link::{Awaiting, Link, SendSide};
use crate::shared::Deferring;

/// A result that a task waits for on a link.
pub(super) trait Awaited {
    /// The result, or why it does not come.
    type Output;

    /// Returns the call whose answer is put into `kept` at once if it comes in this task's own
    /// look.
    #[inline]
    fn here<'k>(
        &self,
        _link: &'k Arc<Link>,
        _kept: &'k mut Option<Self::Output>,
    ) -> Option<Awaiting<'k>> {
        None
    }

    /// Notes that the result was put into `kept`.
    #[inline]
    fn came(&mut self) {}

    /// Takes the result, if it has come.
    fn find(&mut self, link: &Arc<Link>, out: &mut SendSide) -> Option<Self::Output>;

    /// Has the waker woken when the result may have come.
    fn wait(&mut self, out: &mut SendSide, waker: &Waker);

    /// Returns whether the link has to be told when the wait is given up.
    fn is_due(&self) -> bool;

    /// Gives the wait up.
    fn leave(&mut self, link: &Arc<Link>, out: &mut SendSide);
}

/// Waits until a result has come by a link, or the deadline is over, which gives `None`.
#[inline]
pub(super) async fn found<'l, A: Awaited>(
    link: &'l Arc<Link>,
    awaited: A,
    deadline: &mut Deadline<'l>,
) -> Option<A::Output> {
    let mut kept = None;
    found_since(link, None, awaited, &mut kept, deadline).await;
    kept
}

/// Waits like [`found`], and puts the result where the caller says instead of moving it through
/// futures. Before the link's count of changes goes beyond `seen`, the result can't have come.
#[inline]
pub(super) async fn found_since<'l, A: Awaited>(
    link: &'l Arc<Link>,
    seen: Option<u32>,
    awaited: A,
    kept: &mut Option<A::Output>,
    deadline: &mut Deadline<'l>,
) {
    let look = OnLink { link, awaited, seen, sleeps: false, woke: false, kept };
    let mut wait = Deferring(link.endpoint.nic.wait_for(look));
    let mut pended = 0;
    // Not a future of its own, since all of this would have to be moved into that.
    std::future::poll_fn(|context| match Pin::new(&mut wait).poll(context) {
        Poll::Pending => pends(&mut pended, wait.0.look().sleeps, link, deadline, context),
        found => found,
    })
    .await;
}

/// Returns whether the deadline of a pending wait is over. A task that only spins does not read the
/// clock, unless it spins on and on because other messages come all the time.
#[cold]
fn pends<'l>(
    pended: &mut u8,
    sleeps: bool,
    link: &'l Arc<Link>,
    deadline: &mut Deadline<'l>,
    context: &mut Context<'_>,
) -> Poll<()> {
    const SPINS: u8 = 64;
    *pended = (*pended + 1).min(SPINS);
    if sleeps || *pended == SPINS { deadline.poll(link, context) } else { Poll::Pending }
}

/// A task that looks for its result, and handles what comes meanwhile.
struct OnLink<'l, 'k, A: Awaited> {
    link: &'l Arc<Link>,
    awaited: A,
    /// The link's count of changes when the result was last looked for.
    seen: Option<u32>,
    /// Whether the task has slept, or was about to.
    sleeps: bool,
    woke: bool,
    kept: &'k mut Option<A::Output>,
}

impl<A: Awaited> Look for OnLink<'_, '_, A> {
    type Output = ();

    #[inline]
    fn look(&mut self, nic: HeldNic<'_>) -> Option<()> {
        let here = self.awaited.here(self.link, self.kept);
        let endpoint = &self.link.endpoint;
        // Fast path: most looks find nothing, which is seen without a call.
        if !endpoint.signals.are_quiet() {
            self.woke |= endpoint.progress.look(nic, here);
        }
        if self.kept.is_some() {
            self.awaited.came();
            return Some(());
        }
        self.peek()
    }

    #[inline]
    fn peek(&mut self) -> Option<()> {
        let changes = self.link.changes();
        if self.seen == Some(changes) {
            return None;
        }
        self.seen = Some(changes);
        *self.kept = self.awaited.find(self.link, &mut self.link.send_side());
        self.kept.is_some().then_some(())
    }

    fn register(&mut self, waker: &Waker) {
        self.seen = None;
        self.sleeps = true;
        self.awaited.wait(&mut self.link.send_side(), waker);
    }

    fn woke(&mut self) -> bool {
        std::mem::take(&mut self.woke)
    }
}

impl<A: Awaited> Drop for OnLink<'_, '_, A> {
    #[inline]
    fn drop(&mut self) {
        if self.awaited.is_due() {
            self.awaited.leave(self.link, &mut self.link.send_side());
        }
    }
}

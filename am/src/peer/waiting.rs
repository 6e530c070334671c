//! Waiting for what a link brings.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use doorbell_verbs::floor::{AtHand, Look};

use super::deadline::Deadline;
use crate::link::{Awaiting, Link, SendSide};

/// Something that comes by a link, or never.
pub(crate) trait Awaited {
    /// What it is, or why it does not come.
    type Found;

    /// Where it is put if it comes while it is looked for, where that can be.
    #[inline]
    fn here<'k>(
        &self,
        _link: &'k Arc<Link>,
        _kept: &'k mut Option<Self::Found>,
    ) -> Option<Awaiting<'k>> {
        None
    }

    /// It was put there.
    #[inline]
    fn came(&mut self) {}

    /// It, if it has come.
    fn find(&mut self, link: &Arc<Link>, out: &mut SendSide) -> Option<Self::Found>;

    /// Has the waker called when it may have come.
    fn wait(&mut self, out: &mut SendSide, waker: &Waker);

    /// Whether somebody would still have to be told that it is not waited for any more.
    fn is_due(&self) -> bool;

    /// It is not waited for any more.
    fn leave(&mut self, out: &mut SendSide);
}

/// Waits until something has come by a link, or the time for that is over.
#[inline]
pub(crate) async fn found<'l, A: Awaited>(
    link: &'l Arc<Link>,
    awaited: A,
    deadline: &mut Deadline<'l>,
) -> Option<A::Found> {
    let mut kept = None;
    found_since(link, None, awaited, &mut kept, deadline).await;
    kept
}

/// As [`found`], of what had not come when the link had changed so often. It is kept where the
/// caller says, and not handed through all that waits for it.
#[inline]
pub(crate) async fn found_since<'l, A: Awaited>(
    link: &'l Arc<Link>,
    seen: Option<u32>,
    awaited: A,
    kept: &mut Option<A::Found>,
    deadline: &mut Deadline<'l>,
) {
    let look = OnLink { link, awaited, seen, sleeps: false, woke: false, kept };
    let mut wait = link.endpoint.nic.wait_for(look);
    let mut pended = 0;
    // Not a future of its own, which all of this would have to be moved into.
    std::future::poll_fn(|context| match Pin::new(&mut wait).poll(context) {
        Poll::Pending => pends(&mut pended, wait.look().sleeps, link, deadline, context),
        found => found,
    })
    .await;
}

/// Whether the time is over of somebody who lets others run. It is not looked at for one who only
/// spins, unless that goes on and on, since other things come all the time.
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

/// Looks for it, and handles meanwhile what comes.
struct OnLink<'l, 'k, A: Awaited> {
    link: &'l Arc<Link>,
    awaited: A,
    /// What the link had changed when it was looked at last.
    seen: Option<u32>,
    /// Whether it has slept, or was about to.
    sleeps: bool,
    woke: bool,
    kept: &'k mut Option<A::Found>,
}

impl<A: Awaited> Look for OnLink<'_, '_, A> {
    type Found = ();

    #[inline]
    fn look(&mut self, nic: AtHand<'_>) -> Option<()> {
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
            self.awaited.leave(&mut self.link.send_side());
        }
    }
}

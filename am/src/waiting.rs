//! Waiting for what a link brings.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use doorbell_verbs::Memory;
use doorbell_verbs::floor::{HeldNic, Look};

use crate::error::{SendError, Undeliverable};
use crate::expected::Expected;
use crate::limit::Limit;
use crate::link::{Answer, Link, Out};
use crate::poller::Awaiting;

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
    fn find(&mut self, link: &Arc<Link>, out: &mut Out) -> Option<Self::Found>;

    /// Has the waker called when it may have come.
    fn wait(&mut self, out: &mut Out, waker: &Waker);

    /// Whether somebody would still have to be told that it is not waited for any more.
    fn is_due(&self) -> bool;

    /// It is not waited for any more.
    fn leave(&mut self, out: &mut Out);
}

/// Waits until something has come by a link, or the time for that is over.
#[inline]
pub(crate) async fn found<'l, A: Awaited>(
    link: &'l Arc<Link>,
    awaited: A,
    limit: &mut Limit<'l>,
) -> Option<A::Found> {
    let mut kept = None;
    found_since(link, None, awaited, &mut kept, limit).await;
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
    limit: &mut Limit<'l>,
) {
    let look = OnLink { link, awaited, seen, sleeps: false, woke: false, kept };
    let mut wait = link.endpoint.shared.nic.wait_for(look);
    let mut pended = 0;
    // Not a future of its own, which all of this would have to be moved into.
    std::future::poll_fn(|context| match Pin::new(&mut wait).poll(context) {
        Poll::Pending => pends(&mut pended, wait.look().sleeps, link, limit, context),
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
    limit: &mut Limit<'l>,
    context: &mut Context<'_>,
) -> Poll<()> {
    const SPINS: u8 = 64;
    *pended = (*pended + 1).min(SPINS);
    if sleeps || *pended == SPINS { limit.poll(link, context) } else { Poll::Pending }
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
    fn look(&mut self, nic: HeldNic<'_>) -> Option<()> {
        let here = self.awaited.here(self.link, self.kept);
        self.woke |= self.link.endpoint.shared.look(true, nic, here).woke;
        if self.kept.is_some() {
            self.awaited.came();
            return Some(());
        }
        let changes = self.link.changes();
        if self.seen == Some(changes) {
            return None;
        }
        self.seen = Some(changes);
        *self.kept = self.awaited.find(self.link, &mut self.link.out());
        self.kept.is_some().then_some(())
    }

    fn register(&mut self, waker: &Waker) {
        self.seen = None;
        self.sleeps = true;
        self.awaited.wait(&mut self.link.out(), waker);
    }

    fn woke(&mut self) -> bool {
        std::mem::take(&mut self.woke)
    }
}

impl<A: Awaited> Drop for OnLink<'_, '_, A> {
    #[inline]
    fn drop(&mut self) {
        if self.awaited.is_due() {
            self.awaited.leave(&mut self.link.out());
        }
    }
}

/// A credit.
#[derive(Default)]
pub(crate) struct Admission {
    /// Among those who wait.
    place: Option<u64>,
}

impl Awaited for Admission {
    type Found = Result<(), SendError>;

    #[inline]
    fn find(&mut self, link: &Arc<Link>, out: &mut Out) -> Option<Self::Found> {
        match link.admit(out) {
            Ok(true) => Some(Ok(())),
            Ok(false) => None,
            Err(why) => Some(Err(why)),
        }
    }

    fn wait(&mut self, out: &mut Out, waker: &Waker) {
        out.wait(&mut self.place, waker);
    }

    #[inline]
    fn is_due(&self) -> bool {
        self.place.is_some()
    }

    fn leave(&mut self, out: &mut Out) {
        self.place.take().into_iter().for_each(|place| out.leave(place));
    }
}

/// What has a number by which it comes.
pub(crate) trait Numbered: Sized {
    type Found;

    fn expected(out: &mut Out) -> &mut Expected<Self>;

    fn found(self) -> Self::Found;

    /// Where an answer is put, if it is one.
    #[inline]
    fn answer(_kept: &mut Option<Self::Found>) -> Option<&mut Option<Answer>> {
        None
    }

    /// The link is over.
    fn lost(why: SendError) -> Self::Found;
}

/// The answer to a call.
impl Numbered for Answer {
    type Found = Self;

    #[inline]
    fn expected(out: &mut Out) -> &mut Expected<Self> {
        &mut out.calls
    }

    #[inline]
    fn found(self) -> Self {
        self
    }

    #[inline]
    fn answer(kept: &mut Option<Self>) -> Option<&mut Option<Self>> {
        Some(kept)
    }

    fn lost(_: SendError) -> Self {
        Err(Undeliverable::PeerGone)
    }
}

/// Memory that is being placed.
impl Numbered for Memory {
    type Found = Result<Self, SendError>;

    fn expected(out: &mut Out) -> &mut Expected<Self> {
        out.sources.get_or_insert_default()
    }

    fn found(self) -> Self::Found {
        Ok(self)
    }

    fn lost(why: SendError) -> Self::Found {
        Err(why)
    }
}

/// What comes by its number, until it has.
pub(crate) struct Coming<T> {
    number: Option<u16>,
    what: PhantomData<T>,
}

impl<T> Coming<T> {
    #[inline]
    pub fn by(number: u16) -> Self {
        Self { number: Some(number), what: PhantomData }
    }

    /// There is nothing to wait for.
    pub const fn nothing() -> Self {
        Self { number: None, what: PhantomData }
    }

    /// It is waited for elsewhere from here on.
    pub fn hand_on(&mut self) -> Self {
        Self { number: self.number.take(), what: PhantomData }
    }
}

impl<T: Numbered> Awaited for Coming<T> {
    type Found = T::Found;

    #[inline]
    fn here<'k>(
        &self,
        link: &'k Arc<Link>,
        kept: &'k mut Option<T::Found>,
    ) -> Option<Awaiting<'k>> {
        Some(Awaiting { link, call: self.number?, answer: T::answer(kept)? })
    }

    #[inline]
    fn came(&mut self) {
        self.number = None;
    }

    #[inline]
    fn find(&mut self, link: &Arc<Link>, out: &mut Out) -> Option<T::Found> {
        match T::expected(out).take(self.number?) {
            Some(what) => {
                self.number = None;
                Some(what.found())
            }
            None => link.gone(out).map(T::lost),
        }
    }

    fn wait(&mut self, out: &mut Out, waker: &Waker) {
        self.number.into_iter().for_each(|number| T::expected(out).wait(number, waker));
    }

    #[inline]
    fn is_due(&self) -> bool {
        self.number.is_some()
    }

    fn leave(&mut self, out: &mut Out) {
        self.number.take().into_iter().for_each(|number| T::expected(out).abandon(number));
    }
}

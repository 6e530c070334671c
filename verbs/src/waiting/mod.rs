//! Waiting, and making progress meanwhile.

pub(crate) mod blocking;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use crate::hand::{AtHand, Hand};
use crate::nic::Nic;
use crate::progress::{Held, Look, Precedence, Shared, Stint};
use crate::sync::{Mutex, locked};
use crate::wakers::Place;

/// Somebody's waiting for something of a NIC. When it is dropped, whatever duty it had is
/// another's.
pub(crate) struct Waiting<'s> {
    shared: &'s Shared,
    stint: Stint,
}

impl<'s> Waiting<'s> {
    #[inline]
    pub fn new(shared: &'s Shared) -> Self {
        Self { shared, stint: Stint::default() }
    }

    #[inline]
    pub fn poll<L: Look>(
        &mut self,
        context: &mut Context<'_>,
        look: &mut L,
    ) -> Poll<(L::Found, Hand<'s>)> {
        let found = self.shared.wait(context, &mut self.stint, look);
        found.map(|(found, machine)| (found, Hand::new(self.shared, machine)))
    }

    /// The same with the NIC in hand already.
    #[inline]
    pub fn poll_holding<L: Look>(
        &mut self,
        machine: Held<'s>,
        context: &mut Context<'_>,
        look: &mut L,
    ) -> Poll<(L::Found, Hand<'s>)> {
        let found = self.shared.take_turns(machine, context, &mut self.stint, look);
        found.map(|(found, machine)| (found, Hand::new(self.shared, machine)))
    }
}

impl Drop for Waiting<'_> {
    #[inline]
    fn drop(&mut self) {
        self.shared.end(&mut self.stint);
    }
}

/// Waits for what a look at memory finds, and comes back with the NIC in hand.
#[must_use = "a future does nothing unless it is awaited"]
pub struct UntilInHand<'n, L> {
    look: Glance<'n, L>,
    waiting: Waiting<'n>,
}

struct Glance<'n, L> {
    look: L,
    shared: &'n Shared,
    place: Place,
}

impl<L> Drop for Glance<'_, L> {
    fn drop(&mut self) {
        self.shared.bystanders.leave(&mut self.place);
    }
}

impl<T, L: FnMut() -> Option<T>> Look for Glance<'_, L> {
    type Found = T;

    #[inline]
    fn look(&mut self, _: AtHand<'_>) -> Option<T> {
        (self.look)()
    }

    fn register(&mut self, waker: &Waker) {
        self.shared.bystanders.enter(&mut self.place, waker);
    }
}

impl<'n, T, L: FnMut() -> Option<T>> UntilInHand<'n, L> {
    #[inline]
    pub(crate) fn new(shared: &'n Shared, look: L) -> Self {
        Self {
            look: Glance { look, shared, place: Place::default() },
            waiting: Waiting::new(shared),
        }
    }
}

impl<L> Unpin for UntilInHand<'_, L> {}

impl<L> fmt::Debug for UntilInHand<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UntilInHand")
            .field("nic", &self.look.shared.address)
            .finish_non_exhaustive()
    }
}

impl<'n, T, L: FnMut() -> Option<T>> Future for UntilInHand<'n, L> {
    type Output = (T, Hand<'n>);

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        this.waiting.poll(context, &mut this.look)
    }
}

/// Waits for what a look at memory finds.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Until<'n, L>(pub(crate) UntilInHand<'n, L>);

impl<L> fmt::Debug for Until<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nic = &self.0.look.shared.address;
        f.debug_struct("Until").field("nic", nic).finish_non_exhaustive()
    }
}

impl<T, L: FnMut() -> Option<T>> Future for Until<'_, L> {
    type Output = T;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        Pin::new(&mut self.0).poll(context).map(|(found, _)| found)
    }
}

/// Waits for what somebody looks for. See [`Nic::wait_for`](crate::Nic::wait_for).
#[must_use = "a future does nothing unless it is awaited"]
pub struct WaitFor<'n, L> {
    look: L,
    waiting: Waiting<'n>,
}

impl<'n, L> WaitFor<'n, L> {
    #[inline]
    pub(crate) fn new(shared: &'n Shared, look: L) -> Self {
        Self { look, waiting: Waiting::new(shared) }
    }

    /// What looks for it.
    pub fn look(&mut self) -> &mut L {
        &mut self.look
    }
}

impl<L> Unpin for WaitFor<'_, L> {}

impl<L> fmt::Debug for WaitFor<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nic = &self.waiting.shared.address;
        f.debug_struct("WaitFor").field("nic", nic).finish_non_exhaustive()
    }
}

impl<L: Look> Future for WaitFor<'_, L> {
    type Output = L::Found;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<L::Found> {
        let this = &mut *self;
        this.waiting.poll(context, &mut this.look).map(|(found, hand)| {
            hand.let_go_soon();
            found
        })
    }
}

/// The state of a wait that is made of polls and is no future, as that of a reader of a byte
/// stream. The state is kept from one poll to the next, and borrows nothing.
///
/// A program may stop polling in the middle of a wait without saying so. If the wait had the duty
/// of taking turns with the device by then, the watch takes that over within about a millisecond.
pub struct PolledWait {
    nic: Nic,
    stint: Stint,
}

impl PolledWait {
    /// Makes the state of a wait for something of `nic`.
    pub fn new(nic: &Nic) -> Self {
        Self { nic: nic.clone(), stint: Stint::default() }
    }

    /// Waits for what `look` finds, making progress meanwhile.
    #[inline]
    pub fn poll<L: Look>(&mut self, context: &mut Context<'_>, look: &mut L) -> Poll<L::Found> {
        let shared = self.nic.shared();
        shared.wait(context, &mut self.stint, look).map(|(found, machine)| {
            Hand::new(shared, machine).let_go_soon();
            found
        })
    }
}

impl Drop for PolledWait {
    fn drop(&mut self) {
        self.nic.shared().end(&mut self.stint);
    }
}

impl fmt::Debug for PolledWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PolledWait").field(&self.nic).finish()
    }
}

/// Whether a future was woken, by somebody on whichever thread.
struct Woken {
    flag: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.flag.store(true, Ordering::Release);
        if let Some(waker) = locked(&self.waker).take() {
            waker.wake();
        }
    }
}

struct Flag<'f>(&'f Woken);

impl Look for Flag<'_> {
    type Found = ();

    fn look(&mut self, _: AtHand<'_>) -> Option<()> {
        self.0.flag.swap(false, Ordering::Acquire).then_some(())
    }

    fn register(&mut self, waker: &Waker) {
        *locked(&self.0.waker) = Some(waker.clone());
    }

    fn precedence(&self) -> Precedence {
        Precedence::Watches
    }
}

/// Awaits a future that something of the NIC's will wake, and makes progress until then: for what
/// happens now and then.
pub(crate) async fn attend<F: Future>(shared: &Shared, future: F) -> F::Output {
    let woken = Arc::new(Woken { flag: AtomicBool::new(false), waker: Mutex::new(None) });
    let waker = Waker::from(woken.clone());
    let mut future = std::pin::pin!(future);
    let mut waiting = Waiting::new(shared);
    std::future::poll_fn(move |context| {
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Poll::Ready(output);
            }
            if waiting.poll(context, &mut Flag(&woken)).is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await
}

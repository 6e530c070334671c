//! Awaiting a plain future that some event of a NIC wakes, while making progress.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::state::Waiting;
use crate::progress::{HeldNic, Look, Precedence, ProgressEngine};
use crate::sync::wakers::WakerCell;

/// Whether a future was woken, on whichever thread.
struct Woken {
    flag: AtomicBool,
    waker: WakerCell,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.flag.store(true, Ordering::Release);
        self.waker.wake();
    }
}

/// A look that finds something when the awaited future was woken.
struct Flag<'f>(&'f Woken);

impl Look for Flag<'_> {
    type Output = ();

    fn look(&mut self, _: HeldNic<'_>) -> Option<()> {
        self.0.flag.swap(false, Ordering::Acquire).then_some(())
    }

    fn register(&mut self, waker: &Waker) {
        self.0.waker.set(waker);
    }

    fn precedence(&self) -> Precedence {
        Precedence::Watches
    }
}

/// Awaits a future that an event of the NIC wakes, and makes progress until then. It is meant for
/// rare events, such as the end of a connection.
pub(crate) async fn with_progress<F: Future>(engine: &ProgressEngine, future: F) -> F::Output {
    let woken = Arc::new(Woken { flag: AtomicBool::new(false), waker: WakerCell::default() });
    let waker = Waker::from(woken.clone());
    let mut future = std::pin::pin!(future);
    let mut waiting = Waiting::new(engine);
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

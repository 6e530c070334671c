//! Waiting without a runtime: a thread that runs one future, and keeps the watch while it sleeps.

use std::cell::Cell;
use std::future::Future;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};

use crate::progress::{Next, Patrol, Shared};
use crate::sync::{AtomicBool, Ordering};
use crate::sys::thread::wait_either;

thread_local! {
    /// Whether this thread waits here: then no runtime polls what it runs.
    static BLOCKED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread keeps the watch itself while it sleeps.
pub(crate) fn is_blocked() -> bool {
    BLOCKED.get()
}

/// What wakes a thread that waits.
#[derive(Default)]
struct Bell {
    rung: AtomicBool,
    /// Once it sleeps: what is written here ends the sleep.
    wakes: OnceLock<UnixStream>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        if !self.rung.swap(true, Ordering::SeqCst)
            && let Some(mut wakes) = self.wakes.get()
        {
            // If there is no room, more than enough is there to be read.
            let _ = wakes.write(&[1]);
        }
    }
}

/// Runs a future on this thread. While it waits, the thread sees to the NIC as the watch does, for
/// the runtime that was to may not run.
pub(crate) fn block_on<F: Future>(shared: &Arc<Shared>, future: F) -> F::Output {
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(bell.clone());
    let mut future = pin!(future);
    let mut sleep: Option<UnixStream> = None;
    let mut patrol = Patrol::default();
    loop {
        if let Poll::Ready(output) = poll(future.as_mut(), &waker) {
            return output;
        }
        if bell.rung.swap(false, Ordering::SeqCst) {
            std::thread::yield_now();
            continue;
        }
        let Some(ends) = &mut sleep else {
            // Without descriptors it does not sleep.
            sleep = UnixStream::pair().ok().and_then(|(wakes, ends)| {
                wakes.set_nonblocking(true).and(ends.set_nonblocking(true)).ok()?;
                bell.wakes.set(wakes).ok().map(|()| ends)
            });
            continue;
        };
        // Where a thread runs the NIC, there is nothing to see to.
        let looks = !shared.is_dedicated() && wait_either(shared.watch.readiness(), &*ends);
        if !looks {
            let _ = wait_either(&*ends, &*ends);
            let _ = ends.read(&mut [0; 64]);
            continue;
        }
        loop {
            match shared.patrol(&mut patrol) {
                Next::Again => {}
                Next::HandOver => {
                    shared.watch.tick();
                    break;
                }
                Next::Rest => break,
            }
            if bell.rung.load(Ordering::SeqCst) {
                // The device is not armed, and this thread does not come back, perhaps.
                shared.watch.tick();
                break;
            }
        }
    }
}

fn poll<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    /// Puts back what was before, also if the future panics.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            BLOCKED.set(self.0);
        }
    }
    let _before = Before(BLOCKED.replace(true));
    future.poll(&mut Context::from_waker(waker))
}

/// Yields in Tokio's own way. A plain wake-up of ourselves would call an idle worker to steal us.
/// But where the thread is blocked, Tokio would wait for it.
pub(crate) fn let_others_run<T>(context: &mut Context<'_>) -> Poll<T> {
    if BLOCKED.get() {
        context.waker().wake_by_ref();
    } else {
        let _ = pin!(tokio::task::yield_now()).poll(context);
    }
    Poll::Pending
}

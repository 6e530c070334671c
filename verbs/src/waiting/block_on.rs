//! Waiting without a runtime: a thread that runs one future, and keeps the watch while it sleeps.

use std::future::Future;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Poll, Wake, Waker};

use crate::progress::{ProgressEngine, WatchState, WatchStep, poll_blocked};
use crate::sync::{AtomicBool, Ordering};
use crate::sys::thread::wait_either;

/// The waker of a thread that waits.
#[derive(Default)]
struct ThreadWaker {
    rung: AtomicBool,
    /// The writing end of a pair of sockets, once the thread sleeps: a byte ends the sleep.
    wakes: OnceLock<UnixStream>,
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        if !self.rung.swap(true, Ordering::SeqCst)
            && let Some(mut wakes) = self.wakes.get()
        {
            // A full socket has more than enough bytes to be read.
            let _ = wakes.write(&[1]);
        }
    }
}

/// Runs a future on this thread. While it waits, the thread keeps the watch, since the runtime that
/// was to keep it may not run.
pub(crate) fn block_on<F: Future>(engine: &Arc<ProgressEngine>, future: F) -> F::Output {
    let thread_waker = Arc::new(ThreadWaker::default());
    let waker = Waker::from(thread_waker.clone());
    let mut future = pin!(future);
    let mut sleep: Option<UnixStream> = None;
    let mut watch_state = WatchState::default();
    loop {
        if let Poll::Ready(output) = poll_blocked(future.as_mut(), &waker) {
            return output;
        }
        if thread_waker.rung.swap(false, Ordering::SeqCst) {
            std::thread::yield_now();
            continue;
        }
        let Some(ends) = &mut sleep else {
            // If no descriptors are left, the thread does not sleep.
            sleep = UnixStream::pair().ok().and_then(|(wakes, ends)| {
                wakes.set_nonblocking(true).and(ends.set_nonblocking(true)).ok()?;
                thread_waker.wakes.set(wakes).ok().map(|()| ends)
            });
            continue;
        };
        // A dedicated thread needs no watch.
        let looks = !engine.is_dedicated() && wait_either(&engine.watch.readiness, &*ends);
        if !looks {
            let _ = wait_either(&*ends, &*ends);
            let _ = ends.read(&mut [0; 64]);
            continue;
        }
        loop {
            match engine.watch_once(&mut watch_state) {
                WatchStep::Again => {}
                WatchStep::HandOver => {
                    engine.watch.tick();
                    break;
                }
                WatchStep::Rest => break,
            }
            if thread_waker.rung.load(Ordering::SeqCst) {
                // The device is not armed, and this thread may not come back.
                engine.watch.tick();
                break;
            }
        }
    }
}

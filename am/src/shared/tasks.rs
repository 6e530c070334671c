//! The tasks of asynchronous handlers, and the room that they and their requests take.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::shared::{Counters, contained};

/// The part of the room, beyond the room of all, that is left for peers with few handlers.
const LEFT_FOR_FEW: usize = 16;

/// The number of handlers that are few for a peer.
pub(crate) const FEW: usize = 16;

/// The tasks of an endpoint's asynchronous handlers. None waits for another, so that handlers may
/// wait for each other.
pub(crate) struct Tasks {
    runtime: Handle,
    counters: Arc<Counters>,
    /// The tasks that are under way, and the bytes that their requests keep.
    taken: Taken,
    /// The most tasks of all peers.
    most: usize,
    /// The most bytes that the requests of all tasks keep.
    most_bytes: usize,
}

/// The counts of what tasks take.
#[derive(Default)]
struct Taken {
    tasks: AtomicUsize,
    bytes: AtomicUsize,
}

impl Tasks {
    /// Creates the tasks of an endpoint: up to `most` are under way at a time, and their requests
    /// keep up to `most_bytes`.
    pub fn new(
        runtime: Handle,
        counters: Arc<Counters>,
        most: usize,
        most_bytes: usize,
    ) -> Arc<Self> {
        Arc::new(Self { runtime, counters, taken: Taken::default(), most, most_bytes })
    }

    /// Reserves room for a task whose request keeps `bytes`, or returns `None` if there is none. A
    /// peer with few handlers finds room beyond the room of all, so that others can't keep it out.
    pub fn reserve(
        self: &Arc<Self>,
        bytes: usize,
        has_few: impl FnOnce() -> bool,
    ) -> Option<Reserved> {
        let reserved = self.take(bytes);
        let tasks = self.taken.tasks.load(Ordering::Relaxed);
        let held = self.taken.bytes.load(Ordering::Relaxed);
        let fits = |part: usize| {
            let beyond = |most: usize| most.saturating_add(part * (most / LEFT_FOR_FEW));
            tasks <= beyond(self.most) && held <= beyond(self.most_bytes)
        };
        (fits(0) || fits(1) && has_few()).then_some(reserved)
    }

    /// Takes room whether or not there is any, for an answer that is there already. Requests find less
    /// room meanwhile.
    pub fn take(self: &Arc<Self>, bytes: usize) -> Reserved {
        self.taken.tasks.fetch_add(1, Ordering::Relaxed);
        self.taken.bytes.fetch_add(bytes, Ordering::Relaxed);
        Reserved { tasks: self.clone(), bytes }
    }

    /// Starts a task, which owns `debt` until its end. If the future waits for something when it is
    /// first polled, `waits` is called with the debt; if it panics, `panicked` is.
    pub fn spawn<D: Send + Sync + 'static>(
        &self,
        task: impl Future<Output = ()> + Send + 'static,
        debt: D,
        waits: impl FnOnce(&D) + Send + 'static,
        panicked: impl FnOnce(D) + Send + 'static,
    ) -> AbortHandle {
        // Unboxed, the future would take its size again in each future that holds it until it runs.
        let task = Box::pin(task);
        let counters = self.counters.clone();
        let run = async move {
            if !ends(task, || waits(&debt)).await {
                counters.panics.fetch_add(1, Ordering::Relaxed);
                panicked(debt);
            }
        };
        self.runtime.spawn(run).abort_handle()
    }
}

/// Runs a task to its end, drops it, and returns whether it ended without a panic. A panic's
/// payload is dropped here, since dropping it may panic again. Calls `waits` if the task is not
/// done when it is first polled.
async fn ends(mut task: Pin<Box<impl Future<Output = ()>>>, waits: impl FnOnce()) -> bool {
    let mut waits = Some(waits);
    let ended = poll_fn(|context| match contained(|| task.as_mut().poll(context)) {
        Some(Poll::Ready(())) => Poll::Ready(true),
        Some(Poll::Pending) => {
            if let Some(waits) = waits.take() {
                waits();
            }
            Poll::Pending
        }
        None => Poll::Ready(false),
    });
    ended.await
}

/// The room of a task and its request. Dropping the value frees the room.
pub(crate) struct Reserved {
    tasks: Arc<Tasks>,
    bytes: usize,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let Taken { tasks, bytes } = &self.tasks.taken;
        tasks.fetch_sub(1, Ordering::Relaxed);
        bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

//! The tasks of asynchronous handlers, a bounded number of which run at a time.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use crate::shared::{Counters, contained};

/// The tasks of an endpoint's asynchronous handlers.
pub(crate) struct Tasks {
    runtime: Handle,
    counters: Arc<Counters>,
    /// The permits to run.
    slots: Semaphore,
    /// The number of tasks that run or wait for a permit.
    begun: AtomicUsize,
    /// The most tasks that may run or wait.
    most: usize,
}

impl Tasks {
    /// Creates the tasks of an endpoint, of which `running` run at a time and `waiting` more wait.
    pub fn new(
        runtime: Handle,
        counters: Arc<Counters>,
        running: usize,
        waiting: usize,
    ) -> Arc<Self> {
        let slots = Semaphore::new(running.min(Semaphore::MAX_PERMITS));
        let most = running.saturating_add(waiting);
        Arc::new(Self { runtime, counters, slots, begun: AtomicUsize::new(0), most })
    }

    /// Reserves room for a task, or returns `None` if there is none. Peers that are connected can't
    /// exceed the room, but tasks of peers that have gone take some of it until they end.
    pub fn reserve(self: &Arc<Self>) -> Option<Reserved> {
        let reserved = Reserved(self.clone());
        (self.begun.fetch_add(1, Ordering::Relaxed) < self.most).then_some(reserved)
    }

    /// Starts a task, which runs once it has a permit. The task owns `debt` until its end, and
    /// calls `panicked` with it if the future panics.
    pub fn spawn<D: Send + 'static>(
        &self,
        reserved: Reserved,
        task: impl Future<Output = ()> + Send + 'static,
        debt: D,
        panicked: impl FnOnce(D) + Send + 'static,
    ) -> AbortHandle {
        // Unboxed, the future would take its size again in each future that holds it until it runs.
        let task = Box::pin(task);
        let run = async move {
            let tasks = &*reserved.0;
            let _slot = tasks.slots.acquire().await;
            if !ends(task).await {
                tasks.counters.panics.fetch_add(1, Ordering::Relaxed);
                panicked(debt);
            }
        };
        self.runtime.spawn(run).abort_handle()
    }
}

/// Runs a task to its end, drops it, and returns whether it ended without a panic. A panic's
/// payload is dropped here, since dropping it may panic again.
async fn ends(mut task: Pin<Box<impl Future<Output = ()>>>) -> bool {
    let ended = poll_fn(|context| match contained(|| task.as_mut().poll(context)) {
        Some(poll) => poll.map(|()| true),
        None => Poll::Ready(false),
    });
    ended.await
}

/// The room of a task that runs or waits. Dropping the value frees the room.
pub(crate) struct Reserved(Arc<Tasks>);

impl Drop for Reserved {
    fn drop(&mut self) {
        self.0.begun.fetch_sub(1, Ordering::Relaxed);
    }
}

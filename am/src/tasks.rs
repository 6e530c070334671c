//! Asynchronous handlers: tasks, of which so many run at a time.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use crate::contained::contained;
use crate::links::Core;
use crate::owed::TaskDebt;

/// The asynchronous handlers of an endpoint.
pub(crate) struct Tasks {
    runtime: Handle,
    /// How many more may run.
    slots: Semaphore,
    /// How many run or wait until they may, and the most of them.
    begun: AtomicUsize,
    most: usize,
}

impl Tasks {
    /// With so many that run at a time, and so many besides that wait.
    pub fn new(runtime: Handle, running: usize, waiting: usize) -> Self {
        let slots = Semaphore::new(running.min(Semaphore::MAX_PERMITS));
        let most = running.saturating_add(waiting);
        Self { runtime, slots, begun: AtomicUsize::new(0), most }
    }

    /// Makes room for a task, if there is some. Peers that are connected have no more requests
    /// under way than there is room for: but what tasks of others still do counts, too.
    pub fn reserve(&self, endpoint: &Arc<Core>) -> Option<Begun> {
        let begun = Begun(endpoint.clone());
        (self.begun.fetch_add(1, Ordering::Relaxed) < self.most).then_some(begun)
    }

    /// Starts a task, which runs when there is a slot for it.
    pub fn spawn(
        &self,
        begun: Begun,
        task: impl Future<Output = ()> + Send + 'static,
        debt: TaskDebt,
    ) -> AbortHandle {
        // Unboxed, the future would take its size again in each future that holds it until it runs.
        let task = Box::pin(task);
        let run = async move {
            let Core { tasks, shared, .. } = &*begun.0;
            let _slot = tasks.slots.acquire().await;
            if !ends(task).await {
                shared.counters.panics.fetch_add(1, Ordering::Relaxed);
                debt.panicked();
            }
        };
        self.runtime.spawn(run).abort_handle()
    }
}

/// Runs a task to its end, and drops it. Whether it did not panic: what it panicked with is dropped
/// here, since that may panic again.
async fn ends(mut task: Pin<Box<impl Future<Output = ()>>>) -> bool {
    let ended = poll_fn(|context| match contained(|| task.as_mut().poll(context)) {
        Some(poll) => poll.map(|()| true),
        None => Poll::Ready(false),
    });
    ended.await
}

/// The room of a task that runs or waits, until it is over, however that came.
pub(crate) struct Begun(Arc<Core>);

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.tasks.begun.fetch_sub(1, Ordering::Relaxed);
    }
}

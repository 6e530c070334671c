//! Letting other tasks run, without depending on what they do.

use std::future::poll_fn;
use std::task::Poll;

/// Lets other tasks run, and goes on afterwards on any worker thread of the runtime.
///
/// A task that yields by Tokio's own function goes on behind the tasks of its own thread alone: if
/// one of these blocks the thread, the task that has yielded waits as long.
pub(crate) async fn yield_to_any() {
    let mut yielded = false;
    poll_fn(move |context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

//! Futures that are dropped before they are done.

use std::task::Poll;

/// Polls a future at most `polls` times, woken or not, and then drops the future, complete or not.
pub async fn abandoned(polls: u64, future: impl Future) {
    let mut future = std::pin::pin!(future);
    let mut left = polls;
    std::future::poll_fn(|context| {
        if left == 0 || future.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        left -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

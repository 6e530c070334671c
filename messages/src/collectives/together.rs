//! Awaiting several futures concurrently.

use std::future::{Future, poll_fn};
use std::task::Poll;

/// Awaits futures concurrently, until all are done or one has failed. The outputs are in the order
/// of the futures.
pub async fn all<T, E>(
    futures: impl IntoIterator<Item = impl Future<Output = Result<T, E>>>,
) -> Result<Vec<T>, E> {
    let mut futures: Vec<_> = futures.into_iter().map(|future| Some(Box::pin(future))).collect();
    let mut outputs: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (place, output) in futures.iter_mut().zip(&mut outputs) {
            let Some(future) = place else { continue };
            match future.as_mut().poll(context) {
                Poll::Ready(Err(why)) => return Poll::Ready(Err(why)),
                Poll::Ready(Ok(value)) => (*place, *output) = (None, Some(value)),
                Poll::Pending => {}
            }
        }
        let is_done = futures.iter().all(Option::is_none);
        if is_done { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await?;
    Ok(outputs.into_iter().flatten().collect())
}

//! Awaiting several futures concurrently.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Awaits futures concurrently, until all are done or one has failed.
pub(in crate::group) async fn all<E>(
    futures: Vec<impl Future<Output = Result<(), E>>>,
) -> Result<(), E> {
    let mut futures: Vec<_> = futures.into_iter().map(|future| Some(Box::pin(future))).collect();
    poll_fn(|context| {
        for place in &mut futures {
            let Some(future) = place else { continue };
            match future.as_mut().poll(context) {
                Poll::Ready(Err(why)) => return Poll::Ready(Err(why)),
                Poll::Ready(Ok(())) => *place = None,
                Poll::Pending => {}
            }
        }
        let done = futures.iter().all(Option::is_none);
        if done { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
}

/// Awaits two futures concurrently, and returns both results.
pub(in crate::group) async fn both<A: Future, B: Future>(
    first: A,
    second: B,
) -> (A::Output, B::Output) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let (mut one, mut other) = (None, None);
    poll_fn(|context| {
        if one.is_none()
            && let Poll::Ready(output) = first.as_mut().poll(context)
        {
            one = Some(output);
        }
        if other.is_none()
            && let Poll::Ready(output) = second.as_mut().poll(context)
        {
            other = Some(output);
        }
        match (one.take(), other.take()) {
            (Some(one), Some(other)) => Poll::Ready((one, other)),
            (first, second) => {
                (one, other) = (first, second);
                Poll::Pending
            }
        }
    })
    .await
}

//! Work that blocks, beside a program's asynchronous tasks.

use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::thread;

/// The result of a thread, and the task that waits for it.
struct Outcome<T> {
    result: Option<thread::Result<T>>,
    waker: Option<Waker>,
}

/// Does work on a thread of its own, while the caller's runtime serves what else there is.
///
/// # Errors
/// When the thread can't be started.
pub async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let outcome = Arc::new(Mutex::new(Outcome { result: None, waker: None }));
    let told = outcome.clone();
    let run = move || {
        let result = catch_unwind(AssertUnwindSafe(work));
        let mut outcome = told.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.result = Some(result);
        let waker = outcome.waker.take();
        drop(outcome);
        waker.into_iter().for_each(Waker::wake);
    };
    thread::Builder::new().name("job-aside".to_owned()).spawn(run)?;
    let result = poll_fn(|context| {
        let mut outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                outcome.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    });
    Ok(result.await.unwrap_or_else(|panic| resume_unwind(panic)))
}

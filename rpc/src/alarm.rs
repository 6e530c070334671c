//! Alarms at points in time, for futures that are polled by a Tokio runtime or by anything else.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use doorbell_verbs::floor::locked;
use pin_project_lite::pin_project;
use tokio::runtime::{Handle, Id};
use tokio::time::{Instant, Sleep, sleep_until};

pin_project! {
    /// A future that is ready at a point in time. Within a Tokio runtime that is a timer of the
    /// runtime, and elsewhere a timer of a thread, which runs while such timers wait.
    ///
    /// A future may be polled in one runtime and then in another, when the first has ended. So the
    /// timer is made anew in each.
    pub struct Alarm {
        at: Instant,
        runtime: Option<Id>,
        #[pin]
        timer: Either,
    }
}

pin_project! {
    #[project = Projected]
    enum Either {
        OfRuntime { #[pin] sleep: Sleep },
        OfThread { timer: Timer },
    }
}

impl Alarm {
    /// An alarm that is ready at the time `at`.
    pub fn at(at: Instant) -> Self {
        let runtime = current_runtime();
        Self { at, runtime, timer: Either::new(at, runtime) }
    }
}

impl Either {
    fn new(at: Instant, runtime: Option<Id>) -> Self {
        match runtime {
            Some(_) => Self::OfRuntime { sleep: sleep_until(at) },
            None => Self::OfThread { timer: Timer { at: at.into_std(), number: None } },
        }
    }
}

fn current_runtime() -> Option<Id> {
    Handle::try_current().ok().map(|runtime| runtime.id())
}

impl Future for Alarm {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        let runtime = current_runtime();
        if runtime != *this.runtime {
            *this.runtime = runtime;
            this.timer.set(Either::new(*this.at, runtime));
        }
        match this.timer.project() {
            Projected::OfRuntime { sleep } => sleep.poll(context),
            Projected::OfThread { timer } => timer.poll(context),
        }
    }
}

/// The error of a future that was not ready in time.
#[derive(Debug)]
pub struct Late;

/// Runs a future until a deadline, if there is one.
///
/// # Errors
/// When the future is not ready by then.
pub async fn until<F: Future>(deadline: Option<Instant>, future: F) -> Result<F::Output, Late> {
    let mut future = pin!(future);
    let Some(deadline) = deadline else { return Ok(future.await) };
    // A future that is ready at once needs no timer.
    let mut alarm = pin!(None);
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        Poll::Pending => {
            if alarm.is_none() {
                alarm.set(Some(Alarm::at(deadline)));
            }
            let alarm = alarm.as_mut().as_pin_mut().expect("it has been set");
            alarm.poll(context).map(|()| Err(Late))
        }
    })
    .await
}

/// A timer of the thread of timers. Dropping it removes it from the thread's table.
#[derive(Debug)]
pub struct Timer {
    at: std::time::Instant,
    /// The number of the timer in the thread's table, once it was polled.
    number: Option<u64>,
}

impl Timer {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.at <= std::time::Instant::now() {
            return Poll::Ready(());
        }
        let mut table = locked(&TIMERS.table);
        let number = *self.number.get_or_insert_with(|| {
            table.numbers += 1;
            table.numbers
        });
        let is_first = table.waiting.keys().next().is_none_or(|first| (self.at, number) < *first);
        table.waiting.insert((self.at, number), context.waker().clone());
        if !table.runs {
            let thread = std::thread::Builder::new().name("doorbell-timers".to_owned());
            // A process that can't start a thread waits until something else wakes the task.
            table.runs = thread.spawn(run).is_ok();
        } else if is_first {
            TIMERS.changed.notify_one();
        }
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            locked(&TIMERS.table).waiting.remove(&(self.at, number));
        }
    }
}

static TIMERS: Timers = Timers {
    table: Mutex::new(Table { waiting: BTreeMap::new(), numbers: 0, runs: false }),
    changed: Condvar::new(),
};

/// The timers of this process that no runtime has.
struct Timers {
    table: Mutex<Table>,
    /// Tells the thread that another timer is the first one now.
    changed: Condvar,
}

struct Table {
    /// The tasks that wait, by the times at which they are woken and the numbers of their timers.
    waiting: BTreeMap<(std::time::Instant, u64), Waker>,
    /// The number that was drawn last.
    numbers: u64,
    /// Whether the thread runs.
    runs: bool,
}

/// Wakes the tasks of timers as their times come, until no timer is left.
fn run() {
    let mut table = locked(&TIMERS.table);
    while let Some((&(at, number), _)) = table.waiting.first_key_value() {
        let left = at.saturating_duration_since(std::time::Instant::now());
        if left.is_zero() {
            let waker = table.waiting.remove(&(at, number));
            drop(table);
            // A waker is the program's own code, and must not take the thread down.
            let wake = std::panic::AssertUnwindSafe(|| waker.into_iter().for_each(Waker::wake));
            let _ = std::panic::catch_unwind(wake);
            table = locked(&TIMERS.table);
            continue;
        }
        let waited = TIMERS.changed.wait_timeout(table, left);
        table = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    table.runs = false;
}

//! Wakers that are due, until their thread holds neither a lock nor the NIC.
//!
//! A waker is code of the program's. Its task may be polled at once, which takes the locks of links
//! and the NIC, or it may panic. So whoever has a task to wake under a lock puts the waker on the
//! list of its thread by [`wake_later`], and the last [`Deferral`] of the thread to be dropped wakes
//! the tasks. A waker that panics harms neither its thread nor the tasks behind it.
//!
//! A deferral is a part of the guard of each link's sending side, is held around the poller's lock,
//! and is held by each wait for as long as the NIC may be held. As long as nobody is to be woken, a
//! deferral costs two changes of a word of its thread.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::shared::contained;

/// The bit of a thread's state that is set when wakers are due.
const DUE: u32 = 1;
/// The count of one deferral in a thread's state.
const DEFERRAL: u32 = 2;

/// The most wakers that a thread keeps memory for. A wake-up of more tasks allocates.
const MOST_KEPT: usize = 64;

thread_local! {
    /// The number of deferrals of this thread, and whether wakers are due.
    static STATE: Cell<u32> = const { Cell::new(0) };
    static LIST: RefCell<Vec<Due>> = const { RefCell::new(Vec::new()) };
}

/// A waker, and what is due with it.
enum Due {
    Wake(Waker),
    Drop(Waker),
}

impl Due {
    fn run(self) {
        contained(|| match self {
            Self::Wake(waker) => waker.wake(),
            Self::Drop(waker) => drop(waker),
        });
    }
}

/// Wakes a task when this thread's last deferral is dropped. The caller holds a deferral.
#[cold]
pub(crate) fn wake_later(waker: Waker) {
    put(Due::Wake(waker));
}

/// Drops a waker when this thread's last deferral is dropped: with the waker, a task may go that
/// waits for something of the link whose lock this thread holds. The caller holds a deferral.
#[cold]
pub(crate) fn drop_later(waker: Waker) {
    put(Due::Drop(waker));
}

fn put(due: Due) {
    debug_assert!(STATE.get() >= DEFERRAL, "a deferral is held");
    let mut due = Some(due);
    let _ = LIST.try_with(|list| list.borrow_mut().extend(due.take()));
    match due {
        None => STATE.set(STATE.get() | DUE),
        // The thread ends, and has no list any more.
        Some(due) => due.run(),
    }
}

/// Wakes the tasks that are to be woken, if this thread has no deferral but that of a wait which
/// does not hold the NIC now. A wait may spin on for a while before its own deferral ends.
#[inline]
pub(crate) fn wake_without_nic() {
    if STATE.get() == DEFERRAL | DUE {
        STATE.set(DUE);
        run_due();
        STATE.set(STATE.get() + DEFERRAL);
    }
}

/// Does what is due, for a thread that has no deferral.
#[cold]
fn run_due() {
    STATE.set(0);
    let mut due = LIST.try_with(RefCell::take).unwrap_or_default();
    due.drain(..).for_each(Due::run);
    due.shrink_to(MOST_KEPT);
    // The list's memory is used again, so that waking a few tasks does not allocate.
    let _ = LIST.try_with(|list| {
        let mut list = list.borrow_mut();
        if list.capacity() == 0 {
            *list = due;
        }
    });
}

/// A time in which this thread wakes no task of the program. The tasks are woken when the thread's
/// last deferral is dropped.
pub(crate) struct Deferral(PhantomData<*const ()>);

impl Deferral {
    #[inline]
    pub fn new() -> Self {
        STATE.set(STATE.get() + DEFERRAL);
        Self(PhantomData)
    }
}

impl Drop for Deferral {
    #[inline]
    fn drop(&mut self) {
        let left = STATE.get() - DEFERRAL;
        STATE.set(left);
        if left == DUE {
            run_due();
        }
    }
}

/// A future that holds a deferral in each poll: a wait, which holds the NIC while it looks.
pub(crate) struct Deferring<F>(pub F);

impl<F: Future + Unpin> Future for Deferring<F> {
    type Output = F::Output;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let _deferral = Deferral::new();
        Pin::new(&mut self.0).poll(context)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::task::Wake;

    use super::*;

    /// Counts its wake-ups, and then does what it is told to.
    struct Does<F: Fn() + Send + Sync>(AtomicUsize, F);

    impl<F: Fn() + Send + Sync> Wake for Does<F> {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
            (self.1)();
        }
    }

    fn does<F: Fn() + Send + Sync + 'static>(does: F) -> (Arc<Does<F>>, Waker) {
        let task = Arc::new(Does(AtomicUsize::new(0), does));
        (task.clone(), task.into())
    }

    #[test]
    fn tasks_are_woken_behind_the_last_deferral_also_behind_a_waker_that_panics() {
        let ((first, panics), (second, sleeps)) = (does(|| panic!("as it is to")), does(|| ()));
        let outer = Deferral::new();
        let inner = Deferral::new();
        [panics, sleeps].into_iter().for_each(wake_later);
        drop(inner);
        assert_eq!(first.0.load(Ordering::SeqCst), 0);
        drop(outer);
        assert_eq!([&first.0, &second.0].map(|woken| woken.load(Ordering::SeqCst)), [1, 1]);
        drop(Deferral::new());
        assert_eq!(second.0.load(Ordering::SeqCst), 1, "once");
    }

    #[test]
    fn a_waker_that_takes_the_lock_under_which_its_task_was_woken_finds_the_lock_free() {
        let lock = Arc::new(Mutex::new(()));
        let its = lock.clone();
        let (task, waker) = does(move || {
            let _deferral = Deferral::new();
            let _free = its.try_lock().expect("nobody holds the lock");
            wake_later(Waker::noop().clone());
        });
        let deferral = Deferral::new();
        let locked = lock.lock().expect("no panic");
        wake_later(waker.clone());
        drop(locked);
        wake_without_nic();
        assert_eq!(task.0.load(Ordering::SeqCst), 1, "the wait does not hold the NIC");
        wake_later(waker);
        let under_another = Deferral::new();
        wake_without_nic();
        assert_eq!(task.0.load(Ordering::SeqCst), 1, "a lock may be held");
        drop((under_another, deferral));
        assert_eq!((task.0.load(Ordering::SeqCst), STATE.get()), (2, 0));
    }
}

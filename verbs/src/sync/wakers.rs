//! A list of wakers, in which each waiting task has a place of its own.

use std::collections::BTreeMap;

use std::task::{Poll, Waker};

use crate::sync::{AtomicUsize, Mutex, Ordering, fence, locked};

/// A list of wakers, in order of arrival. A task removes its own entry when its wait ends, so the
/// list holds only tasks that wait.
#[derive(Default)]
pub(crate) struct Wakers {
    count: AtomicUsize,
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    wakers: BTreeMap<u64, Waker>,
    next: u64,
}

/// The place of one task in a list of wakers, or no place yet.
#[derive(Default)]
pub(crate) struct Place(Option<u64>);

impl Place {
    #[inline]
    pub fn is_taken(&self) -> bool {
        self.0.is_some()
    }
}

impl Wakers {
    /// Returns whether any task waits. A fence stands between entering the list and the next look
    /// for what the task waits for. A caller that puts a fence between changing that and calling
    /// this either sees the task here, or is seen by the task.
    #[inline]
    pub fn any(&self) -> bool {
        self.count.load(Ordering::SeqCst) != 0
    }

    pub fn enter(&self, place: &mut Place, waker: &Waker) {
        let mut list = locked(&self.list);
        let number = *place.0.get_or_insert_with(|| {
            list.next += 1;
            list.next
        });
        list.wakers.entry(number).or_insert_with(|| waker.clone()).clone_from(waker);
        self.count.store(list.wakers.len(), Ordering::SeqCst);
        drop(list);
        fence(Ordering::SeqCst);
    }

    /// Waits until `look` finds something. The caller that makes it appear wakes the waiting tasks
    /// afterwards.
    pub async fn until<T>(&self, mut look: impl FnMut() -> Option<T>) -> T {
        /// Takes the task off the list when its future is dropped.
        struct Stay<'w>(&'w Wakers, Place);
        impl Drop for Stay<'_> {
            fn drop(&mut self) {
                self.0.leave(&mut self.1);
            }
        }
        let mut stay = Stay(self, Place::default());
        std::future::poll_fn(move |context| {
            stay.0.enter(&mut stay.1, context.waker());
            look().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    pub fn leave(&self, place: &mut Place) {
        if let Some(number) = place.0.take() {
            let mut list = locked(&self.list);
            list.wakers.remove(&number);
            self.count.store(list.wakers.len(), Ordering::SeqCst);
        }
    }

    /// Wakes the task that has waited longest, and takes it off the list. The task enters the list
    /// again if it must wait on.
    pub fn wake_one(&self) {
        let mut list = locked(&self.list);
        let first = list.wakers.pop_first();
        self.count.store(list.wakers.len(), Ordering::SeqCst);
        drop(list);
        if let Some((_, waker)) = first {
            waker.wake();
        }
    }

    /// Wakes all tasks, and returns whether there was any.
    #[inline]
    pub fn wake_all(&self) -> bool {
        self.any() && self.wake_some()
    }

    #[cold]
    fn wake_some(&self) -> bool {
        let mut list = locked(&self.list);
        let woken = std::mem::take(&mut list.wakers);
        self.count.store(0, Ordering::SeqCst);
        drop(list);
        let any = !woken.is_empty();
        woken.into_values().for_each(Waker::wake);
        any
    }
}

//! Those who wait for something, each with a place of its own.

use std::collections::BTreeMap;

use std::task::{Poll, Waker};

use crate::sync::{AtomicUsize, Mutex, Ordering, fence, locked};

/// Wakers, in the order in which they came. Each takes itself off when its waiting ends, so nobody
/// is called in vain, and there are no more than wait.
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

/// A place among wakers, if somebody has one.
#[derive(Default)]
pub(crate) struct Place(Option<u64>);

impl Place {
    #[inline]
    pub fn is_taken(&self) -> bool {
        self.0.is_some()
    }
}

impl Wakers {
    /// Whether somebody waits. There is a fence between entering and whatever is looked at next;
    /// with another between changing that and asking here, one of the two sees the other.
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

    /// Waits until a look finds something. Whoever makes it be there wakes those who wait
    /// afterwards.
    pub async fn until<T>(&self, mut look: impl FnMut() -> Option<T>) -> T {
        /// Whoever is dropped waits no more.
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

    /// Calls who has waited longest. It is off the list then, and enters itself anew if it must.
    pub fn wake_one(&self) {
        let mut list = locked(&self.list);
        let first = list.wakers.pop_first();
        self.count.store(list.wakers.len(), Ordering::SeqCst);
        drop(list);
        if let Some((_, waker)) = first {
            waker.wake();
        }
    }

    /// Calls all of them. Whether there was one.
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

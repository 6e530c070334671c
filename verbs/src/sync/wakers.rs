//! A list of wakers, in which each waiting task has a place of its own, and a cell for one waker.
//!
//! A waker is code of the program's: to clone, wake or drop it may panic, or come back to this
//! crate. So none of the three is done while a lock is held, and a waker that panics harms neither
//! the thread that runs the NIC nor the tasks that are to be woken behind it.

use std::collections::BTreeMap;
use std::task::{Poll, Waker};

use super::contained;

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
        let known = place.0.is_some_and(|number| {
            locked(&self.list).wakers.get(&number).is_some_and(|known| known.will_wake(waker))
        });
        if !known {
            let waker = waker.clone();
            let mut list = locked(&self.list);
            let number = *place.0.get_or_insert_with(|| {
                list.next += 1;
                list.next
            });
            let old = list.wakers.insert(number, waker);
            self.count.store(list.wakers.len(), Ordering::SeqCst);
            drop(list);
            drop(old);
        }
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

    /// Takes a task off the list. Returns whether the task was woken before, and so taken off.
    pub fn leave(&self, place: &mut Place) -> bool {
        let Some(number) = place.0.take() else { return false };
        let mut list = locked(&self.list);
        let old = list.wakers.remove(&number);
        self.count.store(list.wakers.len(), Ordering::SeqCst);
        drop(list);
        old.is_none()
    }

    /// Wakes the task that has waited longest, and takes it off the list. The task enters the list
    /// again if it must wait on.
    pub fn wake_one(&self) {
        let mut list = locked(&self.list);
        let first = list.wakers.pop_first();
        self.count.store(list.wakers.len(), Ordering::SeqCst);
        drop(list);
        if let Some((_, waker)) = first {
            wake(waker);
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
        woken.into_values().for_each(wake);
        any
    }
}

/// Wakes a task, whose waker may panic.
pub(crate) fn wake(waker: Waker) {
    contained("a waker", || waker.wake());
}

/// The waker of one task, if the task sleeps.
#[derive(Default)]
pub(crate) struct WakerCell(Mutex<Option<Waker>>);

impl WakerCell {
    pub fn set(&self, waker: &Waker) {
        if locked(&self.0).as_ref().is_some_and(|known| known.will_wake(waker)) {
            return;
        }
        let waker = waker.clone();
        let old = locked(&self.0).replace(waker);
        drop(old);
    }

    /// Wakes the task, and returns whether there was one.
    pub fn wake(&self) -> bool {
        let waker = locked(&self.0).take();
        waker.map(wake).is_some()
    }
}

#[cfg(all(test, not(verbs_loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::task::Wake;

    use super::*;

    /// Notes that it was woken, and then does what it is told to.
    struct Does<F: Fn() + Send + Sync>(AtomicBool, F);

    impl<F: Fn() + Send + Sync> Wake for Does<F> {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
            (self.1)();
        }
    }

    fn waker<F: Fn() + Send + Sync + 'static>(does: F) -> (Arc<Does<F>>, Waker) {
        let task = Arc::new(Does(AtomicBool::new(false), does));
        (task.clone(), task.into())
    }

    /// Regression test for a bug: the tasks behind one whose waker panicked were taken off the list
    /// and not woken, and so slept for ever; and the thread that ran the NIC ended.
    #[test]
    fn tasks_are_woken_behind_one_whose_waker_panics() {
        let wakers = Wakers::default();
        let ((first, panics), (second, sleeps)) = (waker(|| panic!("as it is to")), waker(|| ()));
        wakers.enter(&mut Place::default(), &panics);
        wakers.enter(&mut Place::default(), &sleeps);
        assert!(wakers.wake_all());
        assert!(first.0.load(Ordering::SeqCst) && second.0.load(Ordering::SeqCst));
        wakers.enter(&mut Place::default(), &panics);
        wakers.wake_one();
        assert!(!wakers.any());
    }

    /// A task that takes another one off the list when its waker is dropped.
    struct Leaves(Arc<Wakers>, Mutex<Place>);

    impl Wake for Leaves {
        fn wake(self: Arc<Self>) {}
    }

    impl Drop for Leaves {
        fn drop(&mut self) {
            self.0.leave(&mut locked(&self.1));
        }
    }

    /// Regression test for a bug: wakers were dropped under the lock of their list. One with which
    /// a task goes that waits, too, waited for that lock for ever.
    #[test]
    fn a_waker_whose_drop_takes_another_task_off_the_list_finds_the_list_unlocked() {
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let (wakers, mut place) = (Arc::new(Wakers::default()), Place::default());
            let leaving = || {
                let mut other = Place::default();
                wakers.enter(&mut other, &waker(|| ()).1);
                Waker::from(Arc::new(Leaves(wakers.clone(), Mutex::new(other))))
            };
            wakers.enter(&mut place, &leaving());
            wakers.enter(&mut place, &leaving());
            wakers.leave(&mut place);
            assert!(!wakers.any());
            let _ = done.send(());
        });
        let waited = is_done.recv_timeout(std::time::Duration::from_secs(20));
        waited.expect("nobody waits for the lock");
    }

    /// Regression test for a bug: a task was woken under the lock that it takes when it is polled.
    #[test]
    fn a_task_that_is_polled_by_its_waker_registers_again() {
        let cell = Arc::new(WakerCell::default());
        let (done, is_done) = std::sync::mpsc::channel();
        let (polled, wakes) = {
            let cell = cell.clone();
            waker(move || cell.set(Waker::noop()))
        };
        cell.set(&wakes);
        std::thread::spawn(move || {
            let _ = done.send(cell.wake());
        });
        let waited = is_done.recv_timeout(std::time::Duration::from_secs(20));
        assert_eq!((waited, polled.0.load(Ordering::SeqCst)), (Ok(true), true));
    }
}

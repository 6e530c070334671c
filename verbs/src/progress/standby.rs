//! Those who wait while somebody else runs the NIC.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::task::Waker;

use crate::sync::{AtomicUsize, Ordering, locked};

/// Those who would take the duty, in the order in which they came. Each takes itself off when its
/// waiting ends, so nobody is called in vain.
#[derive(Default)]
pub(super) struct Standby {
    count: AtomicUsize,
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    wakers: BTreeMap<u64, Waker>,
    next: u64,
}

impl Standby {
    #[inline]
    pub fn any(&self) -> bool {
        self.count.load(Ordering::SeqCst) != 0
    }

    pub fn enter(&self, place: &mut Option<u64>, waker: &Waker) {
        let mut list = locked(&self.list);
        let place = *place.get_or_insert_with(|| {
            list.next += 1;
            list.next
        });
        list.wakers.insert(place, waker.clone());
        self.count.store(list.wakers.len(), Ordering::SeqCst);
    }

    pub fn leave(&self, place: &mut Option<u64>) {
        if let Some(place) = place.take() {
            let mut list = locked(&self.list);
            list.wakers.remove(&place);
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
}

/// Those who look at memory that peers write, and so may find something whenever anything arrives.
#[derive(Default)]
pub(super) struct Bystanders {
    count: AtomicUsize,
    wakers: Mutex<Vec<Waker>>,
}

impl Bystanders {
    pub fn enter(&self, waker: &Waker) {
        let mut wakers = locked(&self.wakers);
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
        self.count.store(wakers.len(), Ordering::SeqCst);
    }

    #[inline]
    pub fn stir(&self) {
        if self.count.load(Ordering::SeqCst) != 0 {
            self.stir_all();
        }
    }

    #[cold]
    fn stir_all(&self) {
        let mut wakers = locked(&self.wakers);
        let woken = std::mem::take(&mut *wakers);
        self.count.store(0, Ordering::SeqCst);
        drop(wakers);
        woken.into_iter().for_each(Waker::wake);
    }
}

//! Those who wait while somebody else runs the NIC.

use std::sync::Mutex;
use std::task::Waker;

use crate::sync::{AtomicUsize, Ordering, locked};
use crate::wakers::Wakers;

/// Those who would take the duty, in the order in which they came. Each takes itself off when its
/// waiting ends, so nobody is called in vain.
#[derive(Default)]
pub(super) struct Standby {
    count: AtomicUsize,
    wakers: Mutex<Wakers>,
}

impl Standby {
    #[inline]
    pub fn any(&self) -> bool {
        self.count.load(Ordering::SeqCst) != 0
    }

    fn change<R>(&self, does: impl FnOnce(&mut Wakers) -> R) -> R {
        let mut wakers = locked(&self.wakers);
        let result = does(&mut wakers);
        self.count.store(wakers.len(), Ordering::SeqCst);
        result
    }

    pub fn enter(&self, place: &mut Option<u64>, waker: &Waker) {
        self.change(|wakers| wakers.enter(place, waker));
    }

    pub fn leave(&self, place: &mut Option<u64>) {
        if place.is_some() {
            self.change(|wakers| wakers.leave(place));
        }
    }

    /// Calls who has waited longest. It is off the list then, and enters itself anew if it must.
    pub fn wake_one(&self) {
        if let Some(waker) = self.change(Wakers::first) {
            waker.wake();
        }
    }

    /// Calls all of them.
    pub fn wake_all(&self) {
        self.change(Wakers::all).for_each(Waker::wake);
    }
}

/// Those who look at memory that peers write, and so may find something whenever anything arrives.
#[derive(Default)]
pub(super) struct Bystanders(Standby);

impl Bystanders {
    pub fn enter(&self, place: &mut Option<u64>, waker: &Waker) {
        self.0.enter(place, waker);
    }

    pub fn leave(&self, place: &mut Option<u64>) {
        self.0.leave(place);
    }

    #[inline]
    pub fn stir(&self) {
        if self.0.any() {
            self.stir_all();
        }
    }

    #[cold]
    fn stir_all(&self) {
        self.0.wake_all();
    }
}

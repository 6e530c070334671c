//! Those who wait for the same, until they are woken or go.

use std::collections::BTreeMap;
use std::task::Waker;

/// Wakers, each with a place by which its owner finds it again: who goes takes it along, so that no
/// task is kept by what it waited for once.
#[derive(Default)]
pub(crate) struct Wakers {
    list: BTreeMap<u64, Waker>,
    next: u64,
}

impl Wakers {
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Enters a waker, or another one in its place.
    pub fn enter(&mut self, place: &mut Option<u64>, waker: &Waker) {
        let place = *place.get_or_insert_with(|| {
            self.next += 1;
            self.next
        });
        self.list.insert(place, waker.clone());
    }

    pub fn leave(&mut self, place: &mut Option<u64>) {
        if let Some(place) = place.take() {
            self.list.remove(&place);
        }
    }

    /// The one that has waited longest.
    pub fn first(&mut self) -> Option<Waker> {
        self.list.pop_first().map(|(_, waker)| waker)
    }

    pub fn all(&mut self) -> impl Iterator<Item = Waker> + use<> {
        std::mem::take(&mut self.list).into_values()
    }
}

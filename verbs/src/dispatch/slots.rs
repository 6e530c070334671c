//! Where completions wait for the futures of their requests: the dispatcher's side of a queue.

use std::task::Waker;

use crate::sync::{AtomicU64, Mutex, Ordering, locked};

/// A queue, and a slot for each request that was posted to it and is not done, or whose future has
/// not looked yet.
///
/// A future looks, registers its waker, and looks again; whoever completes puts the completion
/// there first, and wakes then. Both are done with the slots locked, so none is missed.
pub(crate) struct Slots<Q, T> {
    inside: Mutex<Inside<Q, T>>,
    /// How many completions there were: so a look that finds nothing is a load.
    completed: AtomicU64,
}

struct Inside<Q, T> {
    queue: Q,
    /// As many as there were futures at a time.
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

enum Slot<T> {
    Free,
    /// Its request is under way.
    Waiting(Option<Waker>),
    Done(T),
    /// Its future was dropped.
    Abandoned,
}

impl<Q, T> Inside<Q, T> {
    fn release(&mut self, index: u32) {
        self.slots[index as usize] = Slot::Free;
        self.free.push(index);
    }
}

impl<Q, T> Slots<Q, T> {
    pub fn new(queue: Q) -> Self {
        let inside = Inside { queue, slots: Vec::new(), free: Vec::new() };
        Self { inside: Mutex::new(inside), completed: AtomicU64::new(0) }
    }

    /// Does something with the queue.
    pub fn queue<R>(&self, does: impl FnOnce(&mut Q) -> R) -> R {
        does(&mut locked(&self.inside).queue)
    }

    /// Posts a request that completes in the slot of the number given. While that is done nothing
    /// else is posted, so requests leave in the order in which they were.
    ///
    /// # Errors
    /// What posting it says.
    #[inline]
    pub fn post<E>(&self, post: impl FnOnce(&mut Q, u32) -> Result<(), E>) -> Result<u32, E> {
        let mut inside = locked(&self.inside);
        let inside = &mut *inside;
        let index = inside.free.pop().unwrap_or_else(|| {
            if inside.slots.is_empty() {
                // Most have few requests at a time, and there may be many queue pairs.
                inside.slots.reserve_exact(1);
            }
            inside.slots.push(Slot::Free);
            inside.slots.len() as u32 - 1
        });
        // It may be complete before this returns.
        inside.slots[index as usize] = Slot::Waiting(None);
        match post(&mut inside.queue, index) {
            Ok(()) => Ok(index),
            Err(why) => {
                inside.release(index);
                Err(why)
            }
        }
    }

    /// Puts a completion into its slot. Who is to be woken for it; none, if nobody waits yet.
    #[inline]
    pub fn complete(&self, index: u32, completion: impl FnOnce() -> T) -> Option<Waker> {
        let mut inside = locked(&self.inside);
        let woken = match inside.slots.get_mut(index as usize) {
            Some(slot @ Slot::Waiting(_)) => {
                match std::mem::replace(slot, Slot::Done(completion())) {
                    Slot::Waiting(waker) => waker,
                    _ => None,
                }
            }
            Some(Slot::Abandoned) => {
                inside.release(index);
                None
            }
            // Every request completes once.
            Some(Slot::Free | Slot::Done(_)) | None => None,
        };
        self.completed.fetch_add(1, Ordering::Release);
        woken
    }

    /// How many requests were completed.
    #[inline]
    pub fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }

    /// The completion in a slot, which is free then.
    pub fn take(&self, index: u32) -> Option<T> {
        let mut inside = locked(&self.inside);
        let slot = &mut inside.slots[index as usize];
        match std::mem::replace(slot, Slot::Free) {
            Slot::Done(completion) => {
                inside.free.push(index);
                Some(completion)
            }
            other => {
                *slot = other;
                None
            }
        }
    }

    /// Has a waker woken when a slot is filled.
    pub fn wait(&self, index: u32, waker: &Waker) {
        if let Slot::Waiting(waiting) = &mut locked(&self.inside).slots[index as usize] {
            waiting.get_or_insert_with(|| waker.clone()).clone_from(waker);
        }
    }

    /// Nobody awaits the request in a slot any more.
    pub fn abandon(&self, index: u32) {
        let mut inside = locked(&self.inside);
        match inside.slots[index as usize] {
            Slot::Waiting(_) => inside.slots[index as usize] = Slot::Abandoned,
            Slot::Done(_) => inside.release(index),
            Slot::Free | Slot::Abandoned => {}
        }
    }
}

#[cfg(all(test, not(verbs_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_used_again_when_its_future_has_looked_or_is_gone() {
        let slots = Slots::<(), u8>::new(());
        let post = || slots.post(|(), _| Ok::<(), ()>(())).unwrap();
        assert_eq!((post(), post(), post()), (0, 1, 2));
        assert!(slots.complete(1, || 7).is_none());
        assert_eq!((slots.take(0), slots.take(1)), (None, Some(7)));
        slots.abandon(0);
        assert_eq!(post(), 1, "the other is still under way");
        slots.complete(0, || 8);
        slots.complete(2, || 9);
        slots.abandon(2);
        assert_eq!((post(), post(), post()), (2, 0, 3));
        assert_eq!(slots.completed(), 3);
    }

    #[test]
    fn a_request_that_is_refused_leaves_no_slot_taken() {
        let slots = Slots::<(), u8>::new(());
        assert_eq!(slots.post(|(), _| Err("full")), Err("full"));
        assert_eq!(slots.post(|(), _| Ok::<(), ()>(())), Ok(0));
    }
}

//! Slots, in which completions wait for the futures of their requests.

use std::task::Waker;

use crate::sync::{AtomicU64, Mutex, Ordering, locked};

/// A queue, with a slot for each request whose future has not taken the completion yet.
///
/// A future looks into its slot, registers its waker, and looks again. The dispatcher fills the
/// slot first, and wakes the task then. Both lock the slots, so no wake-up is lost.
pub(crate) struct Slots<Q, T> {
    inside: Mutex<Inside<Q, T>>,
    /// The number of completed requests. A look that finds the number unchanged takes no lock.
    completed: AtomicU64,
}

struct Inside<Q, T> {
    queue: Q,
    /// The slots of all requests: as many as there ever were futures at a time.
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

enum Slot<T> {
    Free,
    /// The request is under way. The waker is that of its future, once the future sleeps.
    Waiting(Option<Waker>),
    Done(T),
    /// The future was dropped while its request was under way.
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

    /// Runs `does` with the queue.
    pub fn queue<R>(&self, does: impl FnOnce(&mut Q) -> R) -> R {
        does(&mut locked(&self.inside).queue)
    }

    /// Posts a request by calling `post` with the number of a slot, into which the completion will
    /// go. The slots stay locked meanwhile, so requests leave in the order of these calls.
    ///
    /// # Errors
    /// Returns the error of `post`.
    #[inline]
    pub fn post<E>(&self, post: impl FnOnce(&mut Q, u32) -> Result<(), E>) -> Result<u32, E> {
        let mut inside = locked(&self.inside);
        let inside = &mut *inside;
        let index = inside.free.pop().unwrap_or_else(|| {
            if inside.slots.is_empty() {
                // Most queue pairs have few requests at a time, and there may be many queue pairs.
                inside.slots.reserve_exact(1);
            }
            inside.slots.push(Slot::Free);
            inside.slots.len() as u32 - 1
        });
        // The request may complete before this returns.
        inside.slots[index as usize] = Slot::Waiting(None);
        match post(&mut inside.queue, index) {
            Ok(()) => Ok(index),
            Err(why) => {
                inside.release(index);
                Err(why)
            }
        }
    }

    /// Puts a completion into its slot, and returns the waker of the future if that sleeps.
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

    /// Returns the number of completed requests.
    #[inline]
    pub fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }

    /// Takes the completion out of a slot, and frees the slot.
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

    /// Registers a waker, to be woken when the slot holds a completion.
    pub fn wait(&self, index: u32, waker: &Waker) {
        match &locked(&self.inside).slots[index as usize] {
            Slot::Waiting(Some(known)) if known.will_wake(waker) => return,
            Slot::Waiting(_) => {}
            _ => return,
        }
        // A waker is the program's code, and is neither cloned nor dropped under the lock.
        let mut waker = Some(waker.clone());
        if let Slot::Waiting(waiting) = &mut locked(&self.inside).slots[index as usize] {
            std::mem::swap(waiting, &mut waker);
        }
    }

    /// Gives up a slot whose future was dropped: the completion will be discarded.
    pub fn abandon(&self, index: u32) {
        let mut inside = locked(&self.inside);
        let slot = &mut inside.slots[index as usize];
        let old = match slot {
            Slot::Waiting(_) => Some(std::mem::replace(slot, Slot::Abandoned)),
            Slot::Done(_) => {
                inside.release(index);
                None
            }
            Slot::Free | Slot::Abandoned => None,
        };
        drop(inside);
        drop(old);
    }
}

#[cfg(all(test, not(verbs_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_reused_when_its_future_has_taken_the_completion_or_was_dropped() {
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
    fn a_refused_request_takes_no_slot() {
        let slots = Slots::<(), u8>::new(());
        assert_eq!(slots.post(|(), _| Err("full")), Err("full"));
        assert_eq!(slots.post(|(), _| Ok::<(), ()>(())), Ok(0));
    }
}

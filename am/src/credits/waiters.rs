//! Tasks that wait for a credit, in the order in which they came.

use std::collections::VecDeque;
use std::task::Waker;

use crate::shared::{drop_later, wake_later};

/// The tasks that wait for a credit of a link. Wakers are the program's code, and this table is
/// under the lock of a link. So tasks are woken, and wakers dropped, once the lock is released.
#[derive(Default)]
pub(crate) struct Waiters {
    /// The tasks, each with its ticket. The task that has waited longest is first.
    queue: VecDeque<(u64, Waker)>,
    /// The ticket that was given out last.
    last: u64,
}

impl Waiters {
    /// Has `waker` woken when there is a credit. A task without a ticket gets one, and goes to the
    /// end of the queue; a task with a ticket keeps its place as long as it was not woken.
    pub fn wait(&mut self, ticket: &mut Option<u64>, waker: &Waker) {
        let number = *ticket.get_or_insert_with(|| {
            self.last += 1;
            self.last
        });
        match self.queue.iter_mut().find(|(ticket, _)| *ticket == number) {
            Some((_, there)) if there.will_wake(waker) => {}
            Some((_, there)) => drop_later(std::mem::replace(there, waker.clone())),
            None => self.queue.push_back((number, waker.clone())),
        }
    }

    /// Takes a task off the queue, and returns whether the task was woken before that.
    pub fn leave(&mut self, ticket: u64) -> bool {
        let place = self.queue.iter().position(|(number, _)| *number == ticket);
        let left = place.and_then(|place| self.queue.remove(place));
        let was_woken = left.is_none();
        left.into_iter().for_each(|(_, waker)| drop_later(waker));
        was_woken
    }

    /// Returns whether no task waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Wakes up to `count` tasks, and returns whether there were any.
    pub fn wake(&mut self, count: usize) -> bool {
        let count = count.min(self.queue.len());
        self.queue.drain(..count).for_each(|(_, waker)| wake_later(waker));
        count > 0
    }

    /// Wakes all tasks, since the link is over.
    pub fn wake_all(self) {
        self.queue.into_iter().for_each(|(_, waker)| wake_later(waker));
    }
}

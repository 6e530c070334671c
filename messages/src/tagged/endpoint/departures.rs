//! Counts of the messages that have left by a lane, by which their senders know that theirs has.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;

/// The number of a message among those that wait on a lane, from one on. They leave in this order.
pub type Ticket = u64;

/// How many messages have left by a lane, which whoever waits for one reads without a lock. A
/// sender needs no memory of its own for the outcome.
#[derive(Debug, Default)]
pub struct Departures {
    left: AtomicU64,
    /// Whether no message leaves any more.
    has_ended: AtomicBool,
}

/// The part of the departures that stands under the lock of the lane's queue.
#[derive(Debug, Default)]
pub struct Waiting {
    /// The ticket that was given out last.
    last: Ticket,
    /// The tasks that sleep until their messages have left, in no particular order.
    tasks: Vec<(Ticket, Waker)>,
    /// The tasks that are to be woken once the lock is released.
    due: Vec<Waker>,
}

impl Departures {
    /// Returns whether a message has left; `None` if that is still to come.
    ///
    /// # Errors
    /// When the message never leaves.
    #[inline]
    pub fn of(&self, ticket: Ticket) -> Option<Result<(), NeverLeaves>> {
        let has_ended = self.has_ended.load(Ordering::Acquire);
        if self.left.load(Ordering::Acquire) >= ticket {
            return Some(Ok(()));
        }
        has_ended.then_some(Err(NeverLeaves))
    }

    /// Notes that the next message has left.
    pub fn leaves(&self, waiting: &mut Waiting) {
        // Under the lock of the queue, so nobody else counts.
        let left = self.left.load(Ordering::Relaxed) + 1;
        self.left.store(left, Ordering::Release);
        if !waiting.tasks.is_empty() {
            let whose = waiting.tasks.extract_if(.., |(ticket, _)| *ticket <= left);
            waiting.due.extend(whose.map(|(_, waker)| waker));
        }
    }

    /// Notes that no message leaves any more.
    pub fn end(&self, waiting: &mut Waiting) {
        self.has_ended.store(true, Ordering::Release);
        waiting.due.extend(waiting.tasks.drain(..).map(|(_, waker)| waker));
    }
}

/// The error of a message whose lane has ended before the message could leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NeverLeaves;

impl Waiting {
    /// Returns the ticket of a message that is put behind the others.
    pub fn ticket(&mut self) -> Ticket {
        self.last += 1;
        self.last
    }

    /// Has a task woken when a message has left, which has not left yet. Returns the waker of the
    /// task that has waited for the message until now, to be dropped without the lock.
    pub fn wake_later(&mut self, ticket: Ticket, waker: Waker) -> Option<Waker> {
        match self.tasks.iter_mut().find(|(of, _)| *of == ticket) {
            Some((_, there)) => Some(std::mem::replace(there, waker)),
            None => {
                self.tasks.push((ticket, waker));
                None
            }
        }
    }

    /// Takes the tasks that are to be woken without the lock.
    #[inline]
    pub fn take_due(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_left_in_the_order_of_their_tickets_until_the_lane_ends() {
        let (departures, mut waiting) = (Departures::default(), Waiting::default());
        let tickets = [waiting.ticket(), waiting.ticket(), waiting.ticket()];
        for ticket in tickets {
            assert!(waiting.wake_later(ticket, Waker::noop().clone()).is_none());
            assert!(waiting.wake_later(ticket, Waker::noop().clone()).is_some());
        }
        assert_eq!(tickets.map(|ticket| departures.of(ticket)), [None; 3]);
        departures.leaves(&mut waiting);
        assert_eq!(waiting.take_due().len(), 1);
        assert_eq!(tickets.map(|ticket| departures.of(ticket)), [Some(Ok(())), None, None]);
        departures.end(&mut waiting);
        assert_eq!(waiting.take_due().len(), 2);
        let never = Some(Err(NeverLeaves));
        assert_eq!(tickets.map(|ticket| departures.of(ticket)), [Some(Ok(())), never, never]);
    }
}

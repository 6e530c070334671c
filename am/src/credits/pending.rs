//! Numbered operations under way, such as calls, and their results.

use std::task::Waker;

use crate::shared::{drop_later, wake_later};
use crate::wire::MOST_CREDITS;

/// A table of operations under way, with the tasks that wait for their results: the reply table of
/// calls, for example. Each operation has a number from 1 on, which messages carry. The table grows
/// to the most operations that were under way at a time.
///
/// Wakers are the program's code, and the table is under the lock of a link. So tasks are woken, and
/// wakers dropped, once the lock is released.
pub(crate) struct PendingTable<T> {
    places: Vec<Place<T>>,
    /// The number of the first free place, which holds the number of the next; 0 if there is none.
    free: u16,
}

/// What was found of an operation whose result comes by a ticket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moving {
    /// A task waits for the result.
    Awaited,
    /// No task waits for the result any more.
    Abandoned,
    /// No such operation is under way.
    Unknown,
}

/// A place of the table, for one operation.
enum Place<T> {
    Free {
        next: u16,
    },
    /// The result is to come. The waker is that of the task that sleeps until then, if one does.
    Awaited(Option<Waker>),
    /// The result has come.
    Here(T),
    /// The result is to come, and no task waits for it any more.
    Abandoned,
    /// The result of a message between endpoints is to come, for which no task has ever waited.
    Unawaited,
    /// The result comes by this ticket instead, which the waiting task has not noted yet.
    Moved(u64),
}

impl<T> Default for PendingTable<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: 0 }
    }
}

impl<T> PendingTable<T> {
    /// Returns whether there is a number for one more operation.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.free != 0 || self.places.len() < MOST_CREDITS
    }

    /// Returns whether exactly one number is free, so that an operation may have waited for it.
    pub fn has_one_free(&mut self) -> bool {
        let free = self.free;
        self.places.len() >= MOST_CREDITS
            && matches!(self.place(free), Some(Place::Free { next: 0 }))
    }

    /// Begins an operation for whose result no task waits, and returns its number.
    pub fn begin_unawaited(&mut self) -> u16 {
        let number = self.begin();
        if let Some(place) = self.place(number) {
            *place = Place::Unawaited;
        }
        number
    }

    /// Begins an operation, and returns its number. There is [room](Self::has_room).
    #[inline]
    pub fn begin(&mut self) -> u16 {
        let number = self.free;
        if let Some(place @ &mut Place::Free { next }) = self.place(number) {
            *place = Place::Awaited(None);
            self.free = next;
            return number;
        }
        // Exactly as much as is needed, since there may be thousands of idle peers.
        if self.places.len() == self.places.capacity() {
            self.places.reserve_exact(self.places.len().max(1));
        }
        self.places.push(Place::Awaited(None));
        self.places.len() as u16
    }

    /// Frees a place, and returns what was there.
    #[inline]
    fn leave(&mut self, number: u16) -> Option<Place<T>> {
        let free = Place::Free { next: self.free };
        let left = std::mem::replace(self.place(number)?, free);
        self.free = number;
        Some(left)
    }

    #[inline]
    fn place(&mut self, number: u16) -> Option<&mut Place<T>> {
        self.places.get_mut(usize::from(number).checked_sub(1)?)
    }

    /// Keeps the result of an operation for the task that waits for it. Returns whether the task
    /// was woken, or `None` if no such operation is under way.
    #[inline]
    pub fn complete(&mut self, number: u16, what: T) -> Option<bool> {
        let place = self.place(number)?;
        match place {
            Place::Awaited(waker) => {
                let waker = waker.take();
                *place = Place::Here(what);
                let woke = waker.is_some();
                waker.into_iter().for_each(wake_later);
                Some(woke)
            }
            Place::Abandoned | Place::Unawaited => {
                self.leave(number);
                Some(false)
            }
            Place::Free { .. } | Place::Here(_) | Place::Moved(_) => None,
        }
    }

    /// Notes that the result of an operation comes by a ticket. The number is free once the waiting
    /// task has noted that, for which the task is woken, or at once if no task waits.
    pub fn move_to(&mut self, number: u16, ticket: u64) -> Moving {
        match self.place(number) {
            Some(place @ Place::Awaited(_)) => {
                let before = std::mem::replace(place, Place::Moved(ticket));
                if let Place::Awaited(Some(waker)) = before {
                    wake_later(waker);
                }
                Moving::Awaited
            }
            Some(Place::Abandoned) => {
                self.leave(number);
                Moving::Abandoned
            }
            _ => Moving::Unknown,
        }
    }

    /// Takes the ticket by which the result of an operation comes, and frees the number.
    pub fn take_ticket(&mut self, number: u16) -> Option<u64> {
        let Place::Moved(ticket) = *self.place(number)? else { return None };
        self.leave(number);
        Some(ticket)
    }

    /// Ends an operation whose result the caller hands to the waiting task itself. Returns whether
    /// a task waits.
    #[inline]
    pub fn hand_over(&mut self, number: u16) -> bool {
        let next = self.free;
        let Some(place @ Place::Awaited(_)) = self.place(number) else { return false };
        *place = Place::Free { next };
        self.free = number;
        true
    }

    /// Takes the result of an operation, if it has come.
    #[inline]
    pub fn take(&mut self, number: u16) -> Option<T> {
        self.place(number).filter(|place| matches!(place, Place::Here(_)))?;
        let Some(Place::Here(what)) = self.leave(number) else { return None };
        Some(what)
    }

    /// Has `waker` woken when the result comes.
    pub fn wait(&mut self, number: u16, waker: &Waker) {
        if let Some(Place::Awaited(there)) = self.place(number)
            && !there.as_ref().is_some_and(|there| there.will_wake(waker))
        {
            there.replace(waker.clone()).into_iter().for_each(drop_later);
        }
    }

    /// Notes that no task waits for the result any more. Returns whether the result is still to
    /// come.
    pub fn abandon(&mut self, number: u16) -> bool {
        match self.place(number) {
            Some(place @ Place::Awaited(_)) => {
                if let Place::Awaited(Some(waker)) = std::mem::replace(place, Place::Abandoned) {
                    drop_later(waker);
                }
                true
            }
            _ => {
                drop(self.take(number));
                false
            }
        }
    }

    /// Returns whether the result is still to come.
    pub fn is_pending(&self, number: u16) -> bool {
        let place = usize::from(number).checked_sub(1).and_then(|at| self.places.get(at));
        matches!(place, Some(Place::Awaited(_) | Place::Abandoned | Place::Unawaited))
    }

    /// Returns whether the result is still to come, and no task waits for it any more.
    pub fn is_abandoned(&self, number: u16) -> bool {
        let place = usize::from(number).checked_sub(1).and_then(|at| self.places.get(at));
        matches!(place, Some(Place::Abandoned))
    }

    /// Returns the number of results that are still to come and that no task waits for any more.
    pub fn abandoned(&self) -> usize {
        self.places.iter().filter(|place| matches!(place, Place::Abandoned)).count()
    }

    /// Wakes all waiting tasks, since no result will come any more.
    #[cold]
    pub fn end(&mut self) {
        let waits = |place| {
            if let &mut Place::Awaited(ref mut waker) = place { waker.take() } else { None }
        };
        self.places.iter_mut().filter_map(waits).for_each(wake_later);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_handed_over_once_and_only_if_a_task_awaits_it() {
        let mut table = PendingTable::default();
        let [here, abandoned, awaited] = [(); 3].map(|()| table.begin());
        assert_eq!(table.complete(here, "here"), Some(false));
        table.abandon(abandoned);
        let others = [0, here, abandoned, awaited + 1];
        assert!(!others.iter().any(|&number| table.hand_over(number)));
        assert!(table.hand_over(awaited) && !table.hand_over(awaited));
        assert_eq!(table.begin(), awaited, "it serves again");
        assert_eq!(
            (table.take(here), table.complete(abandoned, "late")),
            (Some("here"), Some(false))
        );
    }

    #[test]
    fn an_operation_has_one_result_and_its_number_is_used_again() {
        let mut table = PendingTable::default();
        let (one, two) = (table.begin(), table.begin());
        assert_eq!((one, two), (1, 2));
        assert_eq!((table.take(one), table.complete(one, 'a')), (None, Some(false)));
        assert_eq!(table.complete(one, 'b'), None, "it is there already");
        assert_eq!((table.take(one), table.take(one)), (Some('a'), None));
        assert_eq!((table.complete(one, 'c'), table.complete(3, 'c')), (None, None));
        assert_eq!(table.begin(), one);
    }

    #[test]
    fn an_abandoned_operation_keeps_its_number_until_the_result_comes() {
        let mut table = PendingTable::default();
        let number = table.begin();
        table.abandon(number);
        let other = table.begin();
        assert_ne!(other, number, "it may still come");
        assert!(table.is_abandoned(number) && !table.is_abandoned(other));
        assert!([number, other].iter().all(|&number| table.is_pending(number)));
        assert!(!table.is_pending(0) && !table.is_pending(other + 1));
        assert_eq!(table.abandoned(), 1);
        assert_eq!((table.complete(number, ()), table.take(number)), (Some(false), None));
        assert_eq!(table.begin(), number);
        table.complete(other, ());
        table.abandon(other);
        assert_eq!(table.begin(), other, "it had come");
    }

    #[test]
    fn an_operation_whose_result_comes_by_a_ticket_frees_its_number_when_its_task_knows() {
        let mut table = PendingTable::<()>::default();
        let [awaited, abandoned, unawaited] =
            [table.begin(), table.begin(), table.begin_unawaited()];
        table.abandon(abandoned);
        assert_eq!(table.move_to(awaited, 5000), Moving::Awaited);
        assert_eq!(table.move_to(abandoned, 5001), Moving::Abandoned);
        for number in [awaited, abandoned, unawaited, 0, 9] {
            assert_eq!(table.move_to(number, 5002), Moving::Unknown, "{number}");
        }
        assert_eq!((table.begin(), table.complete(awaited, ())), (abandoned, None));
        assert_eq!((table.take_ticket(awaited), table.take_ticket(awaited)), (Some(5000), None));
        assert_eq!((table.begin(), table.complete(unawaited, ())), (awaited, Some(false)));
    }

    #[test]
    fn there_are_as_many_numbers_as_a_header_has_room_for() {
        let mut table = PendingTable::<()>::default();
        while table.has_room() {
            table.begin();
        }
        assert_eq!(table.places.len(), MOST_CREDITS);
        for number in [3, 7] {
            table.complete(number, ());
            table.take(number);
            assert_eq!(table.has_one_free(), number == 3);
        }
        assert!(table.has_room());
    }
}

//! Calls of this side whose answers come late, by tickets of the peer.

use std::collections::{BTreeSet, HashMap};
use std::task::Waker;

use crate::shared::{drop_later, wake_later};

/// The requests of this side that the peer answers late: their credits have come back, and their
/// handlers wait for something.
pub(crate) struct LateAnswers<T> {
    /// The calls, by the tickets that the peer has given them.
    calls: HashMap<u64, Late<T>>,
    /// The number of requests that are no calls.
    one_way: usize,
    /// Calls that were given up and that the peer is to be told of: their numbers, or their tickets.
    given_up: BTreeSet<u64>,
}

/// A call whose answer comes late.
enum Late<T> {
    /// The answer is to come. The waker is that of the task that sleeps until then, if one does.
    Awaited(Option<Waker>),
    /// The answer has come.
    Here(T),
    /// The answer is to come, and no task waits for it any more.
    Abandoned,
}

impl<T> Default for LateAnswers<T> {
    fn default() -> Self {
        Self { calls: HashMap::new(), one_way: 0, given_up: BTreeSet::new() }
    }
}

impl<T> LateAnswers<T> {
    /// Returns how many answers there are, or are to come.
    pub fn len(&self) -> usize {
        self.calls.len() + self.one_way
    }

    /// Returns whether nothing is to come, and nothing to be told.
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.given_up.is_empty()
    }

    /// Notes that a call is answered by a ticket. Returns whether the ticket is new.
    pub fn begin(&mut self, ticket: u64) -> bool {
        let is_new = !self.calls.contains_key(&ticket);
        if is_new {
            self.calls.insert(ticket, Late::Awaited(None));
        }
        is_new
    }

    /// Forgets a ticket that belongs to no call.
    pub fn forget(&mut self, ticket: u64) {
        self.calls.remove(&ticket);
    }

    /// Notes that a request that is no call is answered late.
    pub fn begin_one_way(&mut self) {
        self.one_way += 1;
    }

    /// Takes off a request that is no call, since its answer has come. Returns whether there was
    /// one.
    pub fn end_one_way(&mut self) -> bool {
        let left = self.one_way.checked_sub(1);
        self.one_way = left.unwrap_or(0);
        left.is_some()
    }

    /// Keeps the answer to a call for the task that waits for it. Returns whether the task was
    /// woken, or `None` if no such call is under way.
    pub fn complete(&mut self, ticket: u64, answer: T) -> Option<bool> {
        match self.calls.get_mut(&ticket)? {
            Late::Here(_) => None,
            Late::Abandoned => {
                self.calls.remove(&ticket);
                Some(false)
            }
            late => {
                let before = std::mem::replace(late, Late::Here(answer));
                let Late::Awaited(Some(waker)) = before else { return Some(false) };
                wake_later(waker);
                Some(true)
            }
        }
    }

    /// Takes the answer to a call, if it has come.
    pub fn take(&mut self, ticket: u64) -> Option<T> {
        self.calls.get(&ticket).filter(|late| matches!(late, Late::Here(_)))?;
        let Some(Late::Here(answer)) = self.calls.remove(&ticket) else { return None };
        Some(answer)
    }

    /// Has `waker` woken when the answer comes.
    pub fn wait(&mut self, ticket: u64, waker: &Waker) {
        if let Some(Late::Awaited(there)) = self.calls.get_mut(&ticket)
            && !there.as_ref().is_some_and(|there| there.will_wake(waker))
        {
            there.replace(waker.clone()).into_iter().for_each(drop_later);
        }
    }

    /// Notes that no task waits for the answer to a call any more. Returns whether the answer is
    /// still to come.
    pub fn abandon(&mut self, ticket: u64) -> bool {
        if self.take(ticket).is_some() {
            return false;
        }
        let Some(late) = self.calls.get_mut(&ticket) else { return false };
        if let Late::Awaited(Some(waker)) = std::mem::replace(late, Late::Abandoned) {
            drop_later(waker);
        }
        true
    }

    /// Has the peer told that a call was given up.
    pub fn tell_given_up(&mut self, call: u64) {
        self.given_up.insert(call);
    }

    /// Notes that the answer to a call has come, so that the peer need not be told that the call was
    /// given up.
    pub fn needs_no_telling(&mut self, call: u64) {
        self.given_up.remove(&call);
    }

    /// Returns whether the peer is to be told of calls that were given up.
    pub fn has_given_up(&self) -> bool {
        !self.given_up.is_empty()
    }

    /// Takes up to `most` calls that the peer is to be told of.
    pub fn take_given_up(&mut self, most: usize) -> Vec<u64> {
        std::iter::from_fn(|| self.given_up.pop_first()).take(most).collect()
    }

    /// Wakes all waiting tasks, since no answer will come any more.
    pub fn end(&mut self) {
        let waits = |late: &mut Late<T>| match late {
            Late::Awaited(waker) => waker.take(),
            _ => None,
        };
        self.calls.values_mut().filter_map(waits).for_each(wake_later);
        self.given_up.clear();
    }

    /// Forgets the requests that are no calls, since the link is over. Returns how many there were.
    pub fn lose_one_way(&mut self) -> usize {
        std::mem::take(&mut self.one_way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_answer_comes_once_and_only_by_a_ticket_that_was_given() {
        let mut late = LateAnswers::default();
        assert!(late.begin(5000) && late.begin(5001) && !late.begin(5000));
        late.abandon(5001);
        assert_eq!((late.complete(5000, 'a'), late.complete(5000, 'b')), (Some(false), None));
        assert_eq!((late.take(5000), late.take(5000)), (Some('a'), None));
        assert_eq!((late.complete(5001, 'c'), late.complete(5002, 'c')), (Some(false), None));
        assert!(late.is_empty());
    }

    #[test]
    fn a_call_that_is_given_up_stays_until_its_answer_comes() {
        let mut late = LateAnswers::default();
        assert!([5000, 5001].into_iter().all(|ticket| late.begin(ticket)));
        late.complete(5001, 'a');
        assert!(late.abandon(5000) && !late.abandon(5001) && !late.abandon(5002));
        assert_eq!(late.len(), 1);
        assert_eq!((late.complete(5000, 'b'), late.len()), (Some(false), 0));
    }
}

//! What the responder answers with more than an acknowledgement: reads and atomic operations.
//!
//! A read is not copied when it is asked for: its answers are made from memory when they are sent,
//! a packet at a time, with the key looked at each time. So a read that comes again, whole or from
//! its middle on, is carried out again. An atomic operation is carried out once, when it is
//! asked for first, and its result remembered: as many as the peer may have under way.

use std::collections::VecDeque;

use crate::wire::{Psn, RemoteAddr, Rkey};

/// Something to be sent that was asked for.
#[derive(Clone, Copy)]
pub(crate) enum Response {
    /// What is left of a read.
    Read { psn: Psn, address: RemoteAddr, rkey: Rkey, left: u32, begun: bool },
    /// The result of an atomic operation.
    Atomic { psn: Psn, before: u64 },
    /// That what was answered before is not to be had any more.
    Refusal { psn: Psn },
}

impl Response {
    pub fn psn(&self) -> Psn {
        match *self {
            Self::Read { psn, .. } | Self::Atomic { psn, .. } | Self::Refusal { psn } => psn,
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct OwedResponse {
    pub response: Response,
    /// Whether all of it was sent before: the peer may have it, and go on.
    pub repeated: bool,
}

/// What is owed to the peer, in the order of its sequence numbers, and what was.
#[derive(Default)]
pub(crate) struct ResponderResources {
    /// The most that the peer may ask for at a time.
    limit: usize,
    pub owed: VecDeque<OwedResponse>,
    /// The results of the last atomic operations, each in the place of the one that it replaced.
    atomic_results: VecDeque<(Psn, u64)>,
}

impl ResponderResources {
    pub fn set_limit(&mut self, most: u8) {
        self.limit = most.into();
    }

    /// Allocates the tables, with one more for what comes again while all are owed: when a peer
    /// asks for the first time, for many never do.
    #[cold]
    fn allocate(&mut self) {
        self.owed.reserve(self.limit + 1);
        self.atomic_results.reserve(self.limit);
    }

    pub fn clear(&mut self) {
        self.owed.clear();
        self.atomic_results.clear();
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.owed.is_empty()
    }

    /// Whether the peer asks for more at a time than it may. What it asks for again, and perhaps
    /// only because the network was slow, does not count: if it asks for more, it has that.
    #[inline]
    pub fn are_full(&mut self) -> bool {
        if self.owed.capacity() == 0 {
            self.allocate();
        }
        while self.owed.len() >= self.limit && self.owed.front().is_some_and(|owed| owed.repeated) {
            self.owed.pop_front();
        }
        self.owed.len() >= self.limit
    }

    #[inline]
    pub fn add(&mut self, answer: Response) {
        self.owed.push_back(OwedResponse { response: answer, repeated: false });
    }

    /// Adds something that was asked for again. Whatever is owed behind it will be asked for again
    /// as well: its peer has gone back.
    pub fn add_repeated(&mut self, answer: Response, packets: u32) {
        let (psn, mut again) = (answer.psn(), true);
        // What ends before the first that is owed takes nothing from that: it is a late copy.
        let first = self.owed.front().map(|owed| owed.response.psn());
        if first.is_some_and(|first| first.distance_from(psn) >= packets as i32) {
            if self.owed.len() <= self.limit {
                self.owed.push_front(OwedResponse { response: answer, repeated: again });
            }
            return;
        }
        while let Some(last) = self.owed.back()
            && let ahead = last.response.psn().distance_from(psn)
            && ahead >= 0
        {
            // The rest of a read that was not all sent yet is none that was.
            again &= last.repeated || ahead >= packets as i32;
            self.owed.pop_back();
        }
        // A read that was only begun ends where this one begins, and comes whole with it.
        if self.owed.len() <= self.limit {
            self.owed.push_back(OwedResponse { response: answer, repeated: again });
        }
    }

    #[inline]
    pub fn remember(&mut self, psn: Psn, before: u64) {
        if self.atomic_results.len() >= self.limit {
            self.atomic_results.pop_front();
        }
        self.atomic_results.push_back((psn, before));
    }

    /// The result of the atomic operation of this number: the last, for numbers come again.
    pub fn result(&self, psn: Psn) -> Option<u64> {
        let found = self.atomic_results.iter().rev().find(|(other, _)| *other == psn);
        found.map(|&(_, before)| before)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_a_connection_take_as_much_as_is_documented() {
        let mut answers = ResponderResources::default();
        answers.set_limit(16);
        answers.allocate();
        let owed = answers.owed.capacity() * size_of::<OwedResponse>();
        let results = answers.atomic_results.capacity() * size_of::<(Psn, u64)>();
        assert!(owed + results <= 800, "{owed} and {results} bytes");
    }

    /// Who does few atomic operations among many other requests comes back to a number while the
    /// result from a whole circle before is remembered, and was once told that one.
    #[test]
    fn of_two_atomics_of_one_number_the_later_is_answered() {
        let mut answers = ResponderResources::default();
        answers.set_limit(3);
        for (psn, before) in [(5, 10), (6, 11), (5, 12)] {
            answers.remember(Psn::new(psn), before);
        }
        assert_eq!([5, 6, 7].map(|psn| answers.result(Psn::new(psn))), [Some(12), Some(11), None]);
    }
}

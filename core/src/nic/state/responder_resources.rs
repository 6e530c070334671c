//! Responder resources: the responses to reads and atomic operations that the peer is owed, and the
//! results of atomic operations.
//!
//! A read's data is not copied when the request comes: its responses are made from memory when they
//! are sent, a packet at a time, and the key is checked each time. So a duplicate of a read, whole
//! or from its middle on, is executed again. An atomic operation is executed once, when its request
//! first comes, and its result is remembered: as many results as the peer may have operations
//! outstanding.

use std::collections::VecDeque;

use crate::wire::{Psn, RemoteAddr, Rkey};

/// A response that is to be sent.
#[derive(Clone, Copy)]
pub(crate) enum Response {
    /// The remaining packets of the response to a read.
    Read { psn: Psn, address: RemoteAddr, rkey: Rkey, left: u32, begun: bool },
    /// The result of an atomic operation.
    Atomic { psn: Psn, before: u64 },
    /// A NAK, since what was read before may not be read any more.
    Refusal { psn: Psn },
}

impl Response {
    pub fn psn(&self) -> Psn {
        match *self {
            Self::Read { psn, .. } | Self::Atomic { psn, .. } | Self::Refusal { psn } => psn,
        }
    }
}

/// A response that the peer is owed.
#[derive(Clone, Copy)]
pub(crate) struct OwedResponse {
    pub response: Response,
    /// Whether the response was sent before, all of it, and its request came again: the peer may
    /// have it, and go on.
    pub repeated: bool,
}

/// The most responses, or parts of responses, that wait to be sent again.
const MOST_REPAIRS: usize = 64;

/// The responses that the peer is owed, in the order of their sequence numbers, and the results of
/// the last atomic operations.
#[derive(Default)]
pub(crate) struct ResponderResources {
    /// The most reads and atomic operations that the peer may have outstanding.
    limit: usize,
    owed: VecDeque<OwedResponse>,
    /// Responses that were lost, and are sent again before the others: in a box, since few
    /// connections have any.
    #[expect(clippy::box_collection, reason = "a connection without any has no room for them")]
    repairs: Option<Box<VecDeque<OwedResponse>>>,
    /// The results of the last atomic operations, with their sequence numbers, the oldest first.
    atomic_results: VecDeque<(Psn, u64)>,
}

impl ResponderResources {
    pub fn set_limit(&mut self, most: u8) {
        self.limit = most.into();
    }

    /// Allocates the tables, with one more entry for a duplicate that comes while all entries are
    /// owed. That happens when a peer first asks for something, since many never do.
    #[cold]
    fn allocate(&mut self) {
        self.owed.reserve(self.limit + 1);
        self.atomic_results.reserve(self.limit);
    }

    pub fn clear(&mut self) {
        self.clear_owed();
        self.atomic_results.clear();
    }

    /// Forgets the responses that are owed.
    pub fn clear_owed(&mut self) {
        self.owed.clear();
        self.repairs = None;
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.owed.is_empty() && self.repair().is_none()
    }

    fn repair(&self) -> Option<&OwedResponse> {
        self.repairs.as_ref().and_then(|repairs| repairs.front())
    }

    /// The response that is sent next.
    #[inline]
    pub fn front(&self) -> Option<&OwedResponse> {
        self.repair().or(self.owed.front())
    }

    #[inline]
    pub fn front_mut(&mut self) -> Option<&mut OwedResponse> {
        let repair = self.repairs.as_mut().and_then(|repairs| repairs.front_mut());
        repair.or(self.owed.front_mut())
    }

    #[inline]
    pub fn pop_front(&mut self) {
        let repair = self.repairs.as_mut().and_then(|repairs| repairs.pop_front());
        if repair.is_none() {
            self.owed.pop_front();
        }
    }

    /// Adds a response that was lost, and that the peer asks for without going back; a packet of a
    /// read has `mtu` bytes. What is still to be sent for the first time will come anyway: to send it
    /// twice would keep it among those that are owed when the peer has it, and goes on. If many are
    /// to be sent again already, the peer has to ask once more.
    pub fn add_repair(&mut self, mut response: Response, mtu: usize) {
        if let Some(unsent) = self.owed.front() {
            let before = unsent.response.psn().distance_from(response.psn());
            if before <= 0 {
                return;
            }
            if let Response::Read { left, .. } = &mut response {
                *left = (*left).min((before as u32).saturating_mul(mtu as u32));
            }
        }
        let repairs = self.repairs.get_or_insert_default();
        if repairs.len() < MOST_REPAIRS {
            repairs.push_back(OwedResponse { response, repeated: true });
        }
    }

    /// Whether the peer has as many reads and atomic operations outstanding as it may. Repeated
    /// responses do not count, and are dropped to make room: a peer that requests more has received
    /// them.
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

    /// Adds the response to a new request.
    #[inline]
    pub fn add(&mut self, response: Response) {
        self.owed.push_back(OwedResponse { response, repeated: false });
    }

    /// Adds the response to a request that came again. Whatever is owed behind it will be requested
    /// again as well, since the peer has gone back.
    pub fn add_repeated(&mut self, response: Response, packets: u32) {
        let (psn, mut again) = (response.psn(), true);
        // A duplicate that ends before the first response that is owed takes nothing from that: it
        // is a late copy.
        let first = self.owed.front().map(|owed| owed.response.psn());
        if first.is_some_and(|first| first.distance_from(psn) >= packets as i32) {
            if self.owed.len() <= self.limit {
                self.owed.push_front(OwedResponse { response, repeated: again });
            }
            return;
        }
        while let Some(last) = self.owed.back()
            && let ahead = last.response.psn().distance_from(psn)
            && ahead >= 0
        {
            // What was not all sent yet does not count as sent before.
            again &= last.repeated || ahead >= packets as i32;
            self.owed.pop_back();
        }
        // A read of which only the beginning was sent ends where this one begins, and comes whole
        // with it.
        if self.owed.len() <= self.limit {
            self.owed.push_back(OwedResponse { response, repeated: again });
        }
    }

    /// Remembers the result of an atomic operation.
    #[inline]
    pub fn remember(&mut self, psn: Psn, before: u64) {
        if self.atomic_results.len() >= self.limit {
            self.atomic_results.pop_front();
        }
        self.atomic_results.push_back((psn, before));
    }

    /// The result of the last atomic operation with this sequence number. Numbers recur, so an
    /// older one may be remembered as well.
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
        let mut resources = ResponderResources::default();
        resources.set_limit(16);
        resources.allocate();
        let owed = resources.owed.capacity() * size_of::<OwedResponse>();
        let results = resources.atomic_results.capacity() * size_of::<(Psn, u64)>();
        assert!(owed + results <= 800, "{owed} and {results} bytes");
    }

    /// A peer that does few atomic operations among many other requests comes back to a sequence
    /// number while the result from a whole circle before is still remembered. It was once answered
    /// with that older result.
    #[test]
    fn the_later_of_two_atomics_with_one_sequence_number_is_answered() {
        let mut resources = ResponderResources::default();
        resources.set_limit(3);
        for (psn, before) in [(5, 10), (6, 11), (5, 12)] {
            resources.remember(Psn::new(psn), before);
        }
        assert_eq!(
            [5, 6, 7].map(|psn| resources.result(Psn::new(psn))),
            [Some(12), Some(11), None]
        );
    }
}

//! Requests that have given their credits back before their answers, since their handlers wait.

use std::collections::{HashMap, VecDeque};

use super::owed::{DeferredAnswer, RetainedId};
use crate::shared::Reserved;
use crate::wire::awaits::FIRST_TICKET;

/// The most free room that is kept for answers when there are none.
const MOST_KEPT: usize = 64;

/// The requests of a link that have given their credits back, and their answers, which cost credits
/// of this side.
#[derive(Default)]
pub(crate) struct Detached {
    /// Requests whose handlers wait and that have their credits still. Some are answered by now.
    waiting: Vec<RetainedId>,
    /// The number of tickets that were ever given out.
    tickets: u64,
    /// The calls whose handlers have not answered, by their tickets.
    calls: HashMap<u64, RetainedId>,
    /// The number of requests that have given their credits back and whose answers have not left.
    count: usize,
    /// The answers that wait for a credit.
    answers: VecDeque<Waiting>,
    /// Whether the link is over, so that no answer leaves any more.
    ended: bool,
}

/// An answer that waits for a credit.
struct Waiting {
    /// The ticket of the request, or 0 if it is no call.
    ticket: u64,
    answer: DeferredAnswer,
    /// The room that the answer takes among the endpoint's handlers, once it is counted.
    room: Option<Reserved>,
}

impl Detached {
    /// Takes the list of requests whose handlers wait.
    pub(super) fn take_waiting(&mut self) -> Vec<RetainedId> {
        std::mem::take(&mut self.waiting)
    }

    /// Puts the list of requests whose handlers wait back.
    pub(super) fn put_waiting(&mut self, waiting: Vec<RetainedId>) {
        self.waiting = waiting;
    }

    /// Counts a request that gives its credit back. Returns its ticket, or 0 if it is no call.
    pub(super) fn begin(&mut self, call: u16, id: RetainedId) -> u64 {
        self.count += 1;
        if call == 0 {
            return 0;
        }
        self.tickets += 1;
        let ticket = FIRST_TICKET - 1 + self.tickets;
        self.calls.insert(ticket, id);
        ticket
    }

    /// Returns the call with a ticket, if its handler has not answered.
    pub(super) fn call(&self, ticket: u64) -> Option<RetainedId> {
        self.calls.get(&ticket).copied()
    }

    /// Has an answer wait for a credit.
    pub(super) fn answer(&mut self, ticket: u64, answer: DeferredAnswer) {
        self.calls.remove(&ticket);
        if self.calls.is_empty() {
            self.calls.shrink_to(MOST_KEPT);
        }
        if !self.ended {
            self.answers.push_back(Waiting { ticket, answer, room: None });
        }
    }

    /// Returns how many requests have given their credits back and are not answered.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Counts the room of answers that have none, by a function of their lengths. So a peer that
    /// gives no credits has no further requests handled once its answers take all the room.
    pub fn count_room(&mut self, room: impl Fn(usize) -> Reserved) {
        let uncounted = self.answers.iter_mut().rev().take_while(|waiting| waiting.room.is_none());
        uncounted.for_each(|waiting| waiting.room = Some(room(waiting.answer.len())));
    }

    /// Returns how many answers wait for a credit.
    pub fn answers(&self) -> usize {
        self.answers.len()
    }

    /// Returns whether answers wait for a credit.
    pub fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Takes the answer that has waited longest, and the ticket of its request. The caller has a
    /// credit for it.
    pub fn next(&mut self) -> Option<(u64, DeferredAnswer)> {
        let Waiting { ticket, answer, .. } = self.answers.pop_front()?;
        self.count -= 1;
        if self.answers.is_empty() {
            self.answers.shrink_to(MOST_KEPT);
        }
        Some((ticket, answer))
    }

    /// Forgets all answers, since the link is over.
    pub(super) fn end(&mut self) {
        *self = Self { ended: true, tickets: self.tickets, ..Self::default() };
    }
}

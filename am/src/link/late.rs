//! Requests that give their credits back before they are answered, since their handlers wait.
//!
//! Handlers may wait for each other: for requests that their peers send by the same link, and by
//! more of them than the link has credits. So when half of the peer's credits are those of requests
//! whose handlers wait, these requests give their credits back. The peer is told a *ticket* for each
//! call, by which the answer is found, and the call's number is free.
//!
//! The late answer costs a credit in the other direction, as if it was a request. A peer gives that
//! credit back as soon as it has taken the answer, whatever its handlers wait for. A side that owes
//! late answers leaves its last credit to them.
//!
//! A caller that gives up a call tells the peer, which ends the handler.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use doorbell_verbs::floor::HeldNic;
use tokio::task::AbortHandle;

use super::{Answer, Link, SendSide};
use crate::config::MOST_TASKS;
use crate::credits::{DeferredAnswer, Moving, RetainedId};
use crate::shared::handles_several;
use crate::wire::awaits::{self, FIRST_TICKET, Late, Sort};
use crate::wire::{Ask, Content, Header, Kind, MOST_WORDS, SYSTEM};

/// The most answers of a peer that may come late. A peer that has more handlers under way than an
/// endpoint may have breaks the rules.
const MOST_LATE: usize = 2 * MOST_TASKS;

/// The call's number, if the call has no ticket.
#[inline]
fn number_of(call: u64) -> Option<u16> {
    (call < FIRST_TICKET).then_some(call as u16)
}

/// The side that handles requests.
impl Link {
    /// Notes that the asynchronous handler of a retained request waits for something. The request
    /// gives its credit back if many requests of the peer wait.
    pub fn waits(self: &Arc<Self>, id: RetainedId) {
        let out = &mut *self.send_side();
        out.retained.iter_mut().for_each(|retained| retained.waits(id));
        self.relieve(out);
    }

    /// Has requests whose handlers wait give their credits back, if half of the peer's credits are
    /// those of requests without an answer. So some are left for other requests, beside the one that
    /// a side [leaves for answers](SendSide::leave_for_answers).
    pub(super) fn relieve(self: &Arc<Self>, out: &mut SendSide) {
        let unanswered = self
            .received
            .load(Ordering::Relaxed)
            .wrapping_sub(self.answered.load(Ordering::Relaxed));
        if out.outbox.is_none() || 2 * (unanswered as usize) < self.grants() {
            return;
        }
        while let Some((call, ticket)) = out.retained.as_mut().and_then(|all| all.detach()) {
            let words = &[ticket][..usize::from(call != 0)];
            let header =
                Header { kind: Kind::Unanswered, words: words.len(), handler: awaits::LATER, call };
            self.answer(out, header, Content { words, payload: &[] }, HeldNic::none());
        }
        out.leave_for_answers();
    }

    /// Sends late answers that were given just now, as far as there are credits. Those that wait take
    /// room among the endpoint's handlers.
    #[cold]
    pub(super) fn answers_late(self: &Arc<Self>, out: &mut SendSide) {
        self.tell_peer(out);
        let tasks = &self.endpoint.tasks;
        let retained = out.retained.iter_mut();
        retained.for_each(|retained| retained.detached.count_room(|bytes| tasks.take(bytes)));
    }

    /// Sends late answers, and tells the peer which calls were given up, as far as there are
    /// credits.
    #[cold]
    pub(super) fn tell_peer(self: &Arc<Self>, out: &mut SendSide) {
        if out.outbox.is_none() {
            return;
        }
        let mut any = false;
        while out.has_late_answers() && out.calls.has_room() && self.takes_credit(out, 0) {
            let Some((ticket, answer)) = out.retained.as_mut().and_then(|all| all.detached.next())
            else {
                break;
            };
            any = true;
            self.send_late(out, ticket, answer);
        }
        if any {
            out.leave_for_answers();
        }
        while out.has_given_up()
            && out.calls.has_room()
            && self.takes_credit(out, out.left_for_answers)
        {
            let given_up = out.late.as_mut().map(|late| late.take_given_up(MOST_WORDS - 1));
            let mut words = vec![Ask::GiveUp as u64];
            words.extend(given_up.into_iter().flatten());
            let call = out.calls.begin_unawaited();
            let header = Header { kind: Kind::Request, words: words.len(), handler: SYSTEM, call };
            self.send(out, header, Content { words: &words, payload: &[] }, at_once());
        }
        out.late.take_if(|late| late.is_empty());
        out.awaits_credit |= out.has_late_answers() || out.has_given_up();
    }

    /// Sends a late answer, for which a credit was taken.
    fn send_late(self: &Arc<Self>, out: &mut SendSide, ticket: u64, answer: DeferredAnswer) {
        let (late, mut rest, payload) = match answer {
            DeferredAnswer::Reply { handler, words, payload, .. } => {
                (Late { ticket, sort: Sort::Reply, handler }, words, payload)
            }
            DeferredAnswer::Returned(Header { handler, .. }, why) => {
                (Late { ticket, sort: Sort::Returned, handler }, vec![why.code()], Vec::new())
            }
            DeferredAnswer::Nothing { .. } => {
                (Late { ticket, sort: Sort::Nothing, handler: 0 }, Vec::new(), Vec::new())
            }
        };
        rest.insert(0, late.word());
        let call = out.calls.begin_unawaited();
        let words = rest.len();
        let header = Header { kind: Kind::Unanswered, words, handler: awaits::LATE, call };
        self.send(out, header, Content { words: &rest, payload: &payload }, at_once());
    }

    /// Ends the handlers of calls that the peer has given up, which it names by their numbers or
    /// their tickets.
    pub fn give_up_calls(&self, calls: &[u64]) {
        let mut out = self.send_side();
        let tasks = out.retained.as_mut().map(|retained| retained.give_up_all(calls));
        drop(out);
        tasks.iter().flatten().for_each(AbortHandle::abort);
    }
}

/// The side that has sent requests.
impl Link {
    /// Takes in that a request is answered late: a call by its ticket, and a request that is no call
    /// without one. Returns whether a task was woken, or `None` if that makes no sense.
    #[cold]
    pub fn is_answered_late(self: &Arc<Self>, call: u16, tickets: &[u64]) -> Option<bool> {
        let mut out = self.send_side();
        if out.late.as_ref().is_some_and(|late| late.len() >= MOST_LATE) {
            drop(out);
            self.end_overrun();
            return None;
        }
        match (call, tickets) {
            (0, []) => {
                out.one_way = out.one_way.checked_sub(1)?;
                out.late.get_or_insert_default().begin_one_way();
            }
            (1.., &[ticket]) if ticket >= FIRST_TICKET => out.moves_to(call, ticket)?,
            _ => return None,
        }
        out.credits += 1;
        Some(self.come_back(out, 1))
    }

    /// Takes in the late answer to a call. Returns whether a task was woken.
    pub fn answered_late(&self, ticket: u64, answer: impl FnOnce() -> Answer) -> bool {
        let mut out = self.send_side();
        let late = out.late.as_mut();
        let woke = late.and_then(|late| late.complete(ticket, answer())).unwrap_or(false);
        out.late.take_if(|late| late.is_empty());
        self.changed(&mut out);
        woke
    }

    /// Takes in the late answer to a request that is no call. Returns whether one was to come.
    pub fn answered_one_way_late(&self) -> bool {
        let mut out = self.send_side();
        let was_owed = out.late.as_mut().is_some_and(|late| late.end_one_way());
        out.late.take_if(|late| late.is_empty());
        was_owed
    }

    /// Takes the answer to a call, if it has come. The call is known by its number, which is replaced
    /// by its ticket once the call has one.
    #[inline]
    pub fn take_answer(self: &Arc<Self>, out: &mut SendSide, call: &mut u64) -> Option<Answer> {
        let answer = number_of(*call).and_then(|number| out.calls.take(number));
        if answer.is_some() {
            self.number_is_free(out);
            return answer;
        }
        if out.late.is_none() { None } else { self.take_late_answer(out, call) }
    }

    #[cold]
    fn take_late_answer(self: &Arc<Self>, out: &mut SendSide, call: &mut u64) -> Option<Answer> {
        if let Some(number) = number_of(*call) {
            *call = out.calls.take_ticket(number)?;
            self.number_is_free(out);
        }
        let answer = out.late.as_mut()?.take(*call);
        out.late.take_if(|late| late.is_empty());
        answer
    }

    /// Has `waker` woken when the answer to a call comes.
    pub fn wait_for_answer(out: &mut SendSide, call: u64, waker: &Waker) {
        match number_of(call) {
            Some(number) => out.calls.wait(number, waker),
            None => out.late.iter_mut().for_each(|late| late.wait(call, waker)),
        }
    }

    /// Gives a call up. If its answer is still to come, the peer is told.
    #[cold]
    pub fn abandon_call(self: &Arc<Self>, out: &mut SendSide, call: u64) {
        let mut call = call;
        if let Some(number) = number_of(call)
            && let Some(ticket) = out.calls.take_ticket(number)
        {
            call = ticket;
        }
        let is_to_come = match number_of(call) {
            Some(number) => out.calls.abandon(number),
            None => out.late.as_mut().is_some_and(|late| late.abandon(call)),
        };
        if is_to_come && out.stands() {
            out.late.get_or_insert_default().tell_given_up(call);
            self.tell_peer(out);
        } else {
            out.late.take_if(|late| late.is_empty());
        }
        self.number_is_free(out);
    }

    /// Notes that a call has its answer, so that the peer need not be told that it was given up.
    #[cold]
    pub(super) fn is_not_told(out: &mut SendSide, call: u16) {
        out.late.iter_mut().for_each(|late| late.needs_no_telling(call.into()));
    }

    /// Notes that the number of a call is free. Tasks that wait for a number try again.
    #[inline]
    fn number_is_free(self: &Arc<Self>, out: &mut SendSide) {
        if out.awaits_credit && out.calls.has_one_free() {
            self.uses_credits(out, usize::MAX);
        }
    }

    /// Uses credits that have come back: first for messages to the peer's endpoint, and then for up
    /// to `count` tasks, which are woken. Returns whether there were any tasks.
    #[inline]
    pub(super) fn uses_credits(self: &Arc<Self>, out: &mut SendSide, count: usize) -> bool {
        out.awaits_credit && self.uses_awaited_credits(out, count)
    }

    #[cold]
    fn uses_awaited_credits(self: &Arc<Self>, out: &mut SendSide, count: usize) -> bool {
        self.tell_peer(out);
        let woke = out.wake_some(count);
        let tasks = out.waiters.as_ref().is_some_and(|waiters| !waiters.is_empty());
        out.awaits_credit = tasks || out.has_late_answers() || out.has_given_up();
        woke
    }
}

impl SendSide {
    /// Notes that the answer to a call comes by a ticket. Returns `None` if there is no such call, or
    /// another has the ticket.
    fn moves_to(&mut self, call: u16, ticket: u64) -> Option<()> {
        let late = self.late.get_or_insert_default();
        if !late.begin(ticket) {
            return None;
        }
        match self.calls.move_to(call, ticket) {
            Moving::Awaited => {}
            Moving::Abandoned => {
                late.abandon(ticket);
                late.needs_no_telling(call.into());
                late.tell_given_up(ticket);
                self.awaits_credit = true;
            }
            Moving::Unknown => {
                late.forget(ticket);
                return None;
            }
        }
        Some(())
    }

    fn has_late_answers(&self) -> bool {
        self.retained.as_ref().is_some_and(|retained| retained.detached.has_answers())
    }

    fn has_given_up(&self) -> bool {
        self.late.as_ref().is_some_and(|late| late.has_given_up())
    }

    /// Leaves a credit for late answers as long as any are owed, unless this side has only one.
    pub(super) fn leave_for_answers(&mut self) {
        let owes = self.retained.as_ref().is_some_and(|retained| retained.detached.len() > 0);
        let before = self.left_for_answers;
        self.left_for_answers = u16::from(owes && self.credits + self.under_way > 1);
        if self.left_for_answers < before {
            self.wake(1);
        }
    }
}

/// Returns the way in which a message leaves that nobody waits for: at once, unless several messages
/// are being handled.
fn at_once() -> Option<HeldNic<'static>> {
    (!handles_several()).then(HeldNic::none)
}

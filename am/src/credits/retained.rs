//! The requests of a link that handlers have retained, and for how long.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::detached::Detached;
use super::owed::{DeferredAnswer, Owes, Release, RetainedId};
use crate::shared::Reserved;
use crate::wire::awaits::FIRST_TICKET;
use crate::wire::{CALLS_ASKED, Header, MOST_CREDITS};

/// The time that a call is retained before its caller is asked whether it still awaits the answer.
const SOON: Duration = Duration::from_millis(100);
/// The longest time between two such questions.
const LATEST: Duration = Duration::from_secs(1);

/// The most free places that a table keeps when no request is retained.
const MOST_KEPT: usize = 64;

/// The retained requests of a link, each until it is answered or its time is over. There are no
/// more than the peer has credits, and than the endpoint runs asynchronous handlers.
#[derive(Default)]
pub(crate) struct RetainedRequests {
    places: Vec<Place>,
    /// The first free place, which holds the number of the next.
    free: Option<u32>,
    /// The number of requests that were ever retained.
    rounds: u64,
    /// The number of requests that are retained now.
    count: usize,
    /// The requests among them that have given their credits back, and their answers.
    pub detached: Detached,
    /// The task that attends to the requests when their time has come, if one runs, and what wakes
    /// it earlier than it meant to.
    timed: Option<(AbortHandle, Arc<Notify>)>,
    /// The time for which that task has set its timer.
    looks_at: Option<Instant>,
    question: Option<Question>,
    /// The place from which on calls are asked about next.
    next_asked: usize,
}

/// A question to the peer which of its calls it still awaits. The question takes the receive that
/// the peer has for the answer to one of these calls, the carrier. So the carrier may not be
/// answered before the peer has answered the question.
struct Question {
    carrier: (RetainedId, u16),
    calls: Vec<(RetainedId, u16)>,
    answer: Option<DeferredAnswer>,
}

/// A place of the table, with a request or free.
struct Place {
    /// The number of requests that were retained before the place's.
    round: u64,
    request: Option<Request>,
    /// The next free place, if this one is free.
    next: Option<u32>,
}

/// A retained request, with what is known of its handler.
struct Request {
    header: Header,
    since: Instant,
    until: Instant,
    owes: Owes,
    /// The task of the asynchronous handler, once it is known.
    task: Option<AbortHandle>,
    /// Whether the caller has said that it gave the call up.
    given_up: bool,
    /// The ticket by which the request is answered, once it has given its credit back; 0 if it is no
    /// call.
    ticket: Option<u64>,
    /// The room among the endpoint's asynchronous handlers that the request takes, if its handler
    /// has ended and another holds the request.
    _room: Option<Reserved>,
}

impl RetainedRequests {
    /// Retains a request for as long as its sender's patience lasts.
    pub fn retain(&mut self, header: Header, patience: Duration, owes: Owes) -> RetainedId {
        let place = self.free.map_or(self.places.len(), |free| free as usize);
        if place == self.places.len() {
            self.places.push(Place { round: 0, request: None, next: None });
        }
        let since = Instant::now();
        let until = since + patience;
        // The attending task may sleep until the patience of requests that are no calls is over.
        if header.call != 0 && self.looks_at.is_some_and(|at| at > since + LATEST) {
            self.looks_at = None;
            self.timed.iter().for_each(|(_, sooner)| sooner.notify_one());
        }
        self.rounds += 1;
        self.count += 1;
        let at = &mut self.places[place];
        self.free = at.next.take();
        at.round = self.rounds;
        at.request = Some(Request {
            header,
            since,
            until,
            owes,
            task: None,
            given_up: false,
            ticket: None,
            _room: None,
        });
        RetainedId { place, round: at.round }
    }

    /// Returns how many requests are retained.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Notes that the asynchronous handler of a request waits for something, so that the request may
    /// give its credit back.
    pub fn waits(&mut self, id: RetainedId) {
        if self.get(id).is_none() {
            return;
        }
        let mut waiting = self.detached.take_waiting();
        if waiting.len() >= 2 * MOST_CREDITS {
            waiting.retain(|&id| self.get(id).is_some());
        }
        waiting.push(id);
        self.detached.put_waiting(waiting);
    }

    /// Has a request whose handler waits give its credit back. Returns the number of the request's
    /// call, or 0, and the ticket by which it is answered. The carrier of a question keeps its
    /// credit.
    pub fn detach(&mut self) -> Option<(u16, u64)> {
        let carrier = self.question.as_ref().map(|question| question.carrier.0);
        let mut waiting = self.detached.take_waiting();
        let mut stays = None;
        let mut found = None;
        while found.is_none()
            && let Some(id) = waiting.pop()
        {
            if carrier == Some(id) {
                stays = Some(id);
            } else if self.get(id).is_some() {
                found = Some(id);
            }
        }
        waiting.extend(stays);
        self.detached.put_waiting(waiting);
        let id = found?;
        let call = self.get(id)?.header.call;
        let ticket = self.detached.begin(call, id);
        self.get(id)?.ticket = Some(ticket);
        Some((call, ticket))
    }

    /// Gives the room of an asynchronous handler that has ended to its request, which another holds.
    pub fn take_room(&mut self, id: RetainedId, room: Option<Reserved>) {
        if let Some(request) = self.get(id) {
            request._room = room;
        }
    }

    /// Notes that the peer has given calls up, which it names by their numbers or their tickets.
    /// Returns the tasks that are to be ended.
    pub fn give_up_all(&mut self, calls: &[u64]) -> Vec<AbortHandle> {
        let (numbers, tickets): (Vec<u64>, Vec<u64>) =
            calls.iter().partition(|&&call| call < FIRST_TICKET);
        let mut all: Vec<_> =
            tickets.into_iter().filter_map(|ticket| self.detached.call(ticket)).collect();
        if !numbers.is_empty() {
            // No peer has more of these than credits.
            let has_number = |request: &Request| {
                request.ticket.is_none()
                    && request.header.call != 0
                    && numbers.contains(&request.header.call.into())
            };
            all.extend(self.all().filter(|(_, request)| has_number(request)).map(|(id, _)| id));
        }
        all.into_iter().filter_map(|id| self.give_up(id)).collect()
    }

    /// Starts the task that attends to the requests, unless it runs. `starts` gets what wakes the
    /// task when it is to look earlier.
    pub fn time(&mut self, starts: impl FnOnce(Arc<Notify>) -> AbortHandle) {
        self.timed.get_or_insert_with(|| {
            let sooner = Arc::new(Notify::new());
            (starts(sooner.clone()), sooner)
        });
    }

    /// Returns when the attending task is to look next. If no request is retained, the task is
    /// over.
    pub fn next_look(&mut self, now: Instant) -> Option<Instant> {
        let Some(first) = self.all().map(|(_, request)| request.until).min() else {
            (self.timed, self.looks_at) = (None, None);
            return None;
        };
        let oldest = self.calls().map(|(_, request)| request.since).min();
        let ask = oldest.map(|since| now + (now - since).clamp(SOON, LATEST));
        self.looks_at = Some(ask.map_or(first, |ask| ask.min(first)));
        self.looks_at
    }

    /// Ends the attending task, since the link is over. Returns the tasks of the handlers of calls,
    /// whose answers nobody awaits any more.
    pub fn end(&mut self) -> Vec<AbortHandle> {
        self.timed.take().iter().for_each(|(task, _)| task.abort());
        self.detached.end();
        let requests = self.places.iter_mut().filter_map(|place| place.request.as_mut());
        let calls = requests.filter(|request| request.header.call != 0);
        calls.filter_map(|call| call.task.take()).collect()
    }

    fn all(&self) -> impl Iterator<Item = (RetainedId, &Request)> {
        let places = self.places.iter().enumerate();
        places.filter_map(|(place, &Place { round, ref request, .. })| {
            Some((RetainedId { place, round }, request.as_ref()?))
        })
    }

    /// Returns the calls among the requests that have their credits, and that their callers have not
    /// given up, as far as is known.
    fn calls(&self) -> impl Iterator<Item = (RetainedId, &Request)> {
        let asks = |request: &Request| request.header.call != 0 && request.ticket.is_none();
        self.all().filter(move |(_, request)| asks(request) && !request.given_up)
    }

    /// Begins a question about calls that were retained for long, unless one is under way. Returns
    /// the call that carries the question, and all calls that the question is about.
    pub fn ask(&mut self, now: Instant) -> Option<(u16, Vec<u16>)> {
        if self.question.is_some() {
            return None;
        }
        let long = self.calls().filter(|(_, request)| now - request.since >= SOON);
        let mut calls: Vec<_> = long.map(|(id, request)| (id, request.header.call)).collect();
        let &carrier = calls.first()?;
        // Calls that are too many for one question take turns.
        let behind = calls.iter().position(|(id, _)| id.place >= self.next_asked);
        calls.rotate_left(behind.unwrap_or(0));
        calls.truncate(CALLS_ASKED);
        self.next_asked = calls.last().map_or(0, |(id, _)| id.place + 1);
        let numbers = calls.iter().map(|&(_, call)| call).collect();
        self.question = Some(Question { carrier, calls, answer: None });
        Some((carrier.1, numbers))
    }

    /// Takes in the peer's answer to the question that `call` carried: a bit for each call that it
    /// has given up. Returns the tasks to be ended and the answer that was held back, or `None` if
    /// the peer was not asked.
    pub fn hear(
        &mut self,
        call: u16,
        given_up: u64,
    ) -> Option<(Vec<AbortHandle>, Option<DeferredAnswer>)> {
        let Question { calls, answer, .. } =
            self.question.take_if(|question| question.carrier.1 == call)?;
        let given_up = calls.iter().enumerate().filter(|(at, _)| given_up >> at & 1 == 1);
        // A place may be another request's by now, which has another identity.
        let tasks = given_up.filter_map(|(_, &(id, _))| self.give_up(id)).collect();
        Some((tasks, answer))
    }

    fn get(&mut self, id: RetainedId) -> Option<&mut Request> {
        let place = self.places.get_mut(id.place).filter(|place| place.round == id.round)?;
        place.request.as_mut()
    }

    /// Returns whether the sender still waits for the answer.
    pub fn is_awaited(&mut self, id: RetainedId) -> bool {
        self.get(id).is_some_and(|request| !request.given_up)
    }

    /// Notes the task of the asynchronous handler, unless the handler has answered already.
    pub fn set_task(&mut self, id: RetainedId, task: AbortHandle) {
        if let Some(request) = self.get(id) {
            request.task = Some(task);
        }
    }

    /// Notes that the caller has given the call up. Returns the task that is to be ended, if any.
    fn give_up(&mut self, id: RetainedId) -> Option<AbortHandle> {
        let request = self.get(id)?;
        request.given_up = true;
        request.task.take()
    }

    /// Takes off a request that is answered. `answer` makes the answer that is held back, if it has
    /// to be.
    pub fn release(&mut self, id: RetainedId, answer: impl FnOnce() -> DeferredAnswer) -> Release {
        let Some(request) = self.get(id) else { return Release::Never };
        let ticket = request.ticket;
        self.vacate(id.place);
        self.hold_back(id, ticket, answer)
    }

    /// Notes that the holder of a request, or its task, has ended without an answer. If nobody else
    /// owes one, the request is released, and the peer is to be told.
    pub fn end_unanswered(
        &mut self,
        id: RetainedId,
        who: Owes,
        answer: impl FnOnce() -> DeferredAnswer,
    ) -> Release {
        let Some(request) = self.get(id) else { return Release::Never };
        match (request.owes, who) {
            (Owes::HolderAndTask, Owes::Holder) => request.owes = Owes::Task,
            (Owes::HolderAndTask, _) => (request.owes, request.task) = (Owes::Holder, None),
            _ => return self.release(id, answer),
        }
        Release::Never
    }

    /// Holds back the answer of a request that was taken off, if the request carries a question, or
    /// has given its credit back.
    fn hold_back(
        &mut self,
        id: RetainedId,
        ticket: Option<u64>,
        answer: impl FnOnce() -> DeferredAnswer,
    ) -> Release {
        if let Some(ticket) = ticket {
            self.detached.answer(ticket, answer());
            return Release::Late;
        }
        match &mut self.question {
            Some(question) if question.carrier.0 == id => {
                question.answer = Some(answer());
                Release::Deferred
            }
            _ => Release::Now,
        }
    }

    fn vacate(&mut self, place: usize) {
        let at = &mut self.places[place];
        at.request = None;
        at.next = self.free.replace(place as u32);
        self.count -= 1;
        if self.count == 0 && self.places.len() > MOST_KEPT {
            (self.places, self.free) = (Vec::new(), None);
        }
    }

    /// Takes off all requests whose time is over. Returns for each its header, whether it may be
    /// answered now, and the task of its handler if it was a call.
    pub fn take_overdue(
        &mut self,
        now: Instant,
        answer: impl Fn(Header) -> DeferredAnswer,
    ) -> Vec<(Header, Release, Option<AbortHandle>)> {
        let over = self.all().filter(|(_, request)| request.until <= now);
        let over: Vec<_> = over.map(|(id, _)| id).collect();
        let take = |id: RetainedId| {
            let &mut Request { header, ticket, ref mut task, .. } = self.get(id)?;
            let task = task.take();
            self.vacate(id.place);
            let release = self.hold_back(id, ticket, || answer(header));
            Some((header, release, task.filter(|_| header.call != 0)))
        };
        over.into_iter().filter_map(take).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Kind;

    fn header(call: u16) -> Header {
        Header { kind: Kind::Request, words: 0, handler: 0, call }
    }

    const LONG: Duration = Duration::from_secs(3600);

    fn later() -> DeferredAnswer {
        DeferredAnswer::Nothing { call: 0 }
    }

    fn release(retained: &mut RetainedRequests, id: RetainedId) -> bool {
        retained.release(id, later) == Release::Now
    }

    #[test]
    fn a_request_is_released_or_overdue_but_not_both() {
        let mut retained = RetainedRequests::default();
        let mut keep = |call, patience| retained.retain(header(call), patience, Owes::Holder);
        let (one, other) = (keep(1, Duration::ZERO), keep(2, LONG));
        let now = Instant::now();
        let overdue = |retained: &mut RetainedRequests| {
            let all = retained.take_overdue(now, |_| later()).into_iter();
            all.map(|(it, ..)| it.call).collect::<Vec<_>>()
        };
        assert_eq!((overdue(&mut retained), overdue(&mut retained)), (vec![1], vec![]));
        let next = retained.retain(header(3), LONG, Owes::Holder);
        assert!(!release(&mut retained, one), "its place belongs to another request");
        assert!(release(&mut retained, other) && !release(&mut retained, other));
        assert!(release(&mut retained, next) && retained.next_look(now).is_none());
    }

    #[test]
    fn only_the_last_who_owes_an_answer_reports_that_there_is_none() {
        let mut retained = RetainedRequests::default();
        let mut keep = |owes| retained.retain(header(1), LONG, owes);
        let all = [Owes::Holder, Owes::HolderAndTask, Owes::HolderAndTask].map(&mut keep);
        let answered = keep(Owes::HolderAndTask);
        let mut ends = |id, who| retained.end_unanswered(id, who, later) == Release::Now;
        assert!(ends(all[0], Owes::Holder) && !ends(all[0], Owes::Holder));
        assert!(!ends(all[1], Owes::Holder) && ends(all[1], Owes::Task));
        assert!(!ends(all[2], Owes::Task) && ends(all[2], Owes::Holder));
        assert!(release(&mut retained, answered));
        assert_eq!(retained.end_unanswered(answered, Owes::Task, later), Release::Never);
    }

    #[test]
    fn a_caller_is_asked_about_calls_that_are_kept_long_and_not_given_up() {
        let mut retained = RetainedRequests::default();
        let ids = [0, 1, 2, 3].map(|call| retained.retain(header(call), LONG, Owes::Holder));
        let now = Instant::now();
        assert_eq!(retained.ask(now), None);
        let next = retained.next_look(now).expect("some are retained");
        assert!(next >= now + SOON && next <= now + LATEST);
        let then = now + SOON;
        assert_eq!(retained.ask(then), Some((1, vec![1, 2, 3])));
        assert_eq!(retained.ask(then), None, "one question at a time");
        // Only the answer of the call that carries the question waits.
        assert_eq!(retained.release(ids[1], later), Release::Deferred);
        assert!(release(&mut retained, ids[3]));
        let other = retained.retain(header(3), LONG, Owes::Holder);
        assert!(retained.hear(2, 0).is_none(), "it was not asked by that call");
        let (tasks, answer) = retained.hear(1, 0b110).expect("it was asked");
        assert!(tasks.is_empty() && answer.is_some() && retained.hear(1, 0).is_none());
        assert!(!retained.is_awaited(ids[2]) && retained.is_awaited(other));
        assert!(release(&mut retained, ids[2]), "its answer is owed still");
    }

    #[test]
    fn a_request_gives_its_credit_back_once_its_handler_waits_unless_it_carries_a_question() {
        let mut retained = RetainedRequests::default();
        let ids = [1, 2, 0, 3].map(|call| retained.retain(header(call), LONG, Owes::Holder));
        assert_eq!(retained.detach(), None, "no handler waits");
        assert_eq!(retained.ask(Instant::now() + SOON).map(|(carrier, _)| carrier), Some(1));
        ids.into_iter().for_each(|id| retained.waits(id));
        assert!(release(&mut retained, ids[3]), "it has its credit");
        let (one_way, call) = (retained.detach(), retained.detach());
        assert_eq!((one_way, call), (Some((0, 0)), Some((2, FIRST_TICKET))));
        assert_eq!(retained.detach(), None, "one is answered, and one carries the question");
        retained.hear(1, 0);
        assert_eq!(retained.detach(), Some((1, FIRST_TICKET + 1)));
        assert_eq!(retained.release(ids[1], later), Release::Late);
        assert_eq!(retained.detached.len(), 3);
        assert!(matches!(retained.detached.next(), Some((FIRST_TICKET, _))));
        assert_eq!((retained.detached.len(), retained.len()), (2, 2));
    }

    #[test]
    fn calls_that_a_peer_gives_up_are_found_by_number_and_by_ticket() {
        let mut retained = RetainedRequests::default();
        let ids = [1, 2, 3].map(|call| retained.retain(header(call), LONG, Owes::Holder));
        retained.waits(ids[0]);
        assert_eq!(retained.detach(), Some((1, FIRST_TICKET)));
        retained.give_up_all(&[1, 2]);
        assert_eq!(ids.map(|id| retained.is_awaited(id)), [true, false, true], "1 is free again");
        retained.give_up_all(&[0, FIRST_TICKET, FIRST_TICKET + 1]);
        assert_eq!(ids.map(|id| retained.is_awaited(id)), [false, false, true]);
    }

    #[test]
    fn a_table_that_is_empty_again_keeps_few_places_and_knows_no_request_from_before() {
        let mut retained = RetainedRequests::default();
        let mut keep = |call| retained.retain(header(call), LONG, Owes::Holder);
        let ids: Vec<_> = (1..=200).map(&mut keep).collect();
        assert!(ids.iter().all(|&id| release(&mut retained, id)));
        assert_eq!(retained.places.capacity(), 0);
        let next = retained.retain(header(1), LONG, Owes::Holder);
        assert!(!release(&mut retained, ids[0]) && release(&mut retained, next));
    }

    #[test]
    fn calls_that_are_too_many_for_one_question_take_turns() {
        let mut retained = RetainedRequests::default();
        let count = CALLS_ASKED as u16 + 10;
        for call in 1..=count {
            retained.retain(header(call), LONG, Owes::Holder);
        }
        let then = Instant::now() + SOON;
        let mut asked = Vec::new();
        for _ in 0..2 {
            let (carrier, calls) = retained.ask(then).expect("they were retained long");
            asked.extend(calls);
            retained.hear(carrier, 0);
        }
        assert_eq!(asked[..usize::from(count)], (1..=count).collect::<Vec<_>>());
    }
}

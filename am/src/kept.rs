//! The table of a link's requests that handlers have kept, and how long each may be.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::link::Link;
use crate::wire::{CALLS_ASKED, Header};

/// After how long the requester is asked whether a call is still awaited, and how long after the
/// last time at most.
const SOON: Duration = Duration::from_millis(100);
const LATEST: Duration = Duration::from_secs(1);

/// The place of a kept request in its link's table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KeptId {
    place: usize,
    round: u32,
}

/// Who still has to answer a kept request, if only by ending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owes {
    /// Whoever holds the [`Kept`](crate::Kept).
    Holder,
    /// Whoever holds the [`Kept`](crate::Kept), and behind it the task of an asynchronous handler.
    HolderAndTask,
    /// The task: its `Kept` was dropped without a reply.
    Task,
}

/// The requests of a link that handlers have kept, each until it is answered or its time is over:
/// no more than its peer has credits.
#[derive(Default)]
pub(crate) struct KeptRequests {
    places: Vec<Place>,
    /// The first place of the list of free ones.
    free: Option<u16>,
    /// The task that looks at the requests when their time has come, if it runs, and what has it
    /// look before it meant to.
    timed: Option<(AbortHandle, Arc<Notify>)>,
    /// When that task looks next.
    looks_at: Option<Instant>,
    question: Option<Question>,
    /// The place from which on calls are asked about next.
    next_asked: usize,
}

/// An answer that is given later.
pub(crate) type Later = Box<dyn FnOnce(&Arc<Link>) + Send>;

/// Whether an answer to a kept request may be given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Release {
    Now,
    /// It will be, when a question is answered.
    Later,
    /// It is too late, or another owes the answer.
    Never,
}

/// A question to the peer, whether it still awaits calls of its. It takes the receive that the peer
/// has for the answer to one of these calls, which may not be given until the peer has answered the
/// question.
struct Question {
    carrier: (KeptId, u16),
    calls: Vec<(KeptId, u16)>,
    answer: Option<Later>,
}

struct Place {
    /// Counts who had the place before.
    round: u32,
    kept: Option<Request>,
    /// The free place behind this, if this is one.
    next: Option<u16>,
}

/// A kept request.
struct Request {
    header: Header,
    since: Instant,
    until: Instant,
    owes: Owes,
    /// The task of its asynchronous handler, if that is known by now.
    task: Option<AbortHandle>,
    /// Whether its caller has said that nobody awaits the answer.
    given_up: bool,
}

impl KeptRequests {
    pub fn keep(&mut self, header: Header, patience: Duration, owes: Owes) -> KeptId {
        let place = self.free.map_or(self.places.len(), usize::from);
        if place == self.places.len() {
            self.places.push(Place { round: 0, kept: None, next: None });
        }
        let since = Instant::now();
        let until = since + patience;
        // The task may sleep for what is left of the patience of requests that are no calls.
        if header.call != 0 && self.looks_at.is_some_and(|at| at > since + LATEST) {
            self.looks_at = None;
            self.timed.iter().for_each(|(_, sooner)| sooner.notify_one());
        }
        let Place { round, kept, next } = &mut self.places[place];
        self.free = next.take();
        *kept = Some(Request { header, since, until, owes, task: None, given_up: false });
        KeptId { place, round: *round }
    }

    /// Starts the task that looks at the requests when their time has come, unless it runs. It is
    /// given what it is notified by when it is to look sooner.
    pub fn time(&mut self, starts: impl FnOnce(Arc<Notify>) -> AbortHandle) {
        self.timed.get_or_insert_with(|| {
            let sooner = Arc::new(Notify::new());
            (starts(sooner.clone()), sooner)
        });
    }

    /// When the task is to look at the requests next. If none is kept, the task is over.
    pub fn next_look(&mut self, now: Instant) -> Option<Instant> {
        let Some(first) = self.all().map(|(_, kept)| kept.until).min() else {
            (self.timed, self.looks_at) = (None, None);
            return None;
        };
        let oldest = self.calls().map(|(_, kept)| kept.since).min();
        let ask = oldest.map(|since| now + (now - since).clamp(SOON, LATEST));
        self.looks_at = Some(ask.map_or(first, |ask| ask.min(first)));
        self.looks_at
    }

    /// Ends the task that looks at the requests, since the link is over. Returns the tasks of the
    /// calls' handlers, whose answers nobody awaits any more.
    pub fn end(&mut self) -> Vec<AbortHandle> {
        self.timed.take().iter().for_each(|(task, _)| task.abort());
        let calls = self.places.iter_mut().filter_map(|place| place.kept.as_mut());
        calls.filter(|kept| kept.header.call != 0).filter_map(|kept| kept.task.take()).collect()
    }

    fn all(&self) -> impl Iterator<Item = (KeptId, &Request)> {
        let places = self.places.iter().enumerate();
        places.filter_map(|(place, &Place { round, ref kept, .. })| {
            Some((KeptId { place, round }, kept.as_ref()?))
        })
    }

    /// The calls among the requests that their callers have not given up, as far as is known.
    fn calls(&self) -> impl Iterator<Item = (KeptId, &Request)> {
        self.all().filter(|(_, kept)| kept.header.call != 0 && !kept.given_up)
    }

    /// Begins to ask about calls that were kept long, if nothing is asked now. The call by which it
    /// is asked, and all.
    pub fn ask(&mut self, now: Instant) -> Option<(u16, Vec<u16>)> {
        if self.question.is_some() {
            return None;
        }
        let long = self.calls().filter(|(_, kept)| now - kept.since >= SOON);
        let mut calls: Vec<_> = long.map(|(id, kept)| (id, kept.header.call)).collect();
        let &carrier = calls.first()?;
        // Where they are too many for one question, each has its turn.
        let behind = calls.iter().position(|(id, _)| id.place >= self.next_asked);
        calls.rotate_left(behind.unwrap_or(0));
        calls.truncate(CALLS_ASKED);
        self.next_asked = calls.last().map_or(0, |(id, _)| id.place + 1);
        let numbers = calls.iter().map(|&(_, call)| call).collect();
        self.question = Some(Question { carrier, calls, answer: None });
        Some((carrier.1, numbers))
    }

    /// The peer has answered, by the same call, which of the calls it has given up. The tasks that
    /// are to be ended, and the answer that was held back meanwhile. Nothing if it was not asked.
    pub fn told(&mut self, call: u16, given_up: u64) -> Option<(Vec<AbortHandle>, Option<Later>)> {
        let Question { calls, answer, .. } =
            self.question.take_if(|question| question.carrier.1 == call)?;
        let given_up = calls.iter().enumerate().filter(|(at, _)| given_up >> at & 1 == 1);
        // By now a place may be another request's, which has another identity.
        let tasks = given_up.filter_map(|(_, &(id, _))| self.give_up(id)).collect();
        Some((tasks, answer))
    }

    fn get(&mut self, id: KeptId) -> Option<&mut Request> {
        let place = self.places.get_mut(id.place).filter(|place| place.round == id.round)?;
        place.kept.as_mut()
    }

    /// Whether somebody still waits for the answer.
    pub fn is_awaited(&mut self, id: KeptId) -> bool {
        self.get(id).is_some_and(|kept| !kept.given_up)
    }

    /// Notes the task of an asynchronous handler, if that has not answered already.
    pub fn runs(&mut self, id: KeptId, task: AbortHandle) {
        if let Some(kept) = self.get(id) {
            kept.task = Some(task);
        }
    }

    /// The caller has given the call up. The task that is to be ended, if there is one.
    fn give_up(&mut self, id: KeptId) -> Option<AbortHandle> {
        let kept = self.get(id)?;
        kept.given_up = true;
        kept.task.take()
    }

    /// Takes off a request that is answered, now or later.
    pub fn release(&mut self, id: KeptId, answer: impl FnOnce() -> Later) -> Release {
        if self.get(id).is_none() {
            return Release::Never;
        }
        self.vacate(id.place);
        self.when(id, answer)
    }

    /// The holder of a request, or the task, has ended without an answer. If nobody else owes one,
    /// the peer is to be told, now or later.
    pub fn ends(&mut self, id: KeptId, who: Owes, answer: impl FnOnce() -> Later) -> Release {
        let Some(kept) = self.get(id) else { return Release::Never };
        match (kept.owes, who) {
            (Owes::HolderAndTask, Owes::Holder) => kept.owes = Owes::Task,
            (Owes::HolderAndTask, _) => (kept.owes, kept.task) = (Owes::Holder, None),
            _ => return self.release(id, answer),
        }
        Release::Never
    }

    /// Whether a request that was taken off may be answered.
    fn when(&mut self, id: KeptId, answer: impl FnOnce() -> Later) -> Release {
        match &mut self.question {
            Some(question) if question.carrier.0 == id => {
                question.answer = Some(answer());
                Release::Later
            }
            _ => Release::Now,
        }
    }

    fn vacate(&mut self, place: usize) {
        let at = &mut self.places[place];
        at.kept = None;
        at.round = at.round.wrapping_add(1);
        at.next = self.free.replace(place as u16);
    }

    /// Takes off a request whose time is over. Whether it may be answered, by what is made of its
    /// header; and the task of its handler, if it was called.
    pub fn overdue(
        &mut self,
        now: Instant,
        answer: impl FnOnce(Header) -> Later,
    ) -> Option<(Header, Release, Option<AbortHandle>)> {
        let over = |place: &Place| place.kept.as_ref().is_some_and(|kept| kept.until <= now);
        let place = self.places.iter().position(over)?;
        let id = KeptId { place, round: self.places[place].round };
        let Request { header, task, .. } = self.places[place].kept.take()?;
        self.vacate(place);
        let release = self.when(id, || answer(header));
        Some((header, release, task.filter(|_| header.call != 0)))
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

    fn later() -> Later {
        Box::new(|_| ())
    }

    fn release(kept: &mut KeptRequests, id: KeptId) -> bool {
        kept.release(id, later) == Release::Now
    }

    #[test]
    fn a_request_is_released_or_overdue_but_not_both() {
        let mut kept = KeptRequests::default();
        let mut keep = |call, patience| kept.keep(header(call), patience, Owes::Holder);
        let (one, other) = (keep(1, Duration::ZERO), keep(2, LONG));
        let now = Instant::now();
        let overdue =
            |kept: &mut KeptRequests| kept.overdue(now, |_| later()).map(|(it, ..)| it.call);
        assert_eq!((overdue(&mut kept), overdue(&mut kept)), (Some(1), None));
        let next = kept.keep(header(3), LONG, Owes::Holder);
        assert!(!release(&mut kept, one), "its place is another's");
        assert!(release(&mut kept, other) && !release(&mut kept, other));
        assert!(release(&mut kept, next) && kept.next_look(now).is_none());
    }

    #[test]
    fn nobody_but_the_last_who_owes_an_answer_says_that_there_is_none() {
        let mut kept = KeptRequests::default();
        let mut keep = |owes| kept.keep(header(1), LONG, owes);
        let all = [Owes::Holder, Owes::HolderAndTask, Owes::HolderAndTask].map(&mut keep);
        let answered = keep(Owes::HolderAndTask);
        let mut ends = |id, who| kept.ends(id, who, later) == Release::Now;
        assert!(ends(all[0], Owes::Holder) && !ends(all[0], Owes::Holder));
        assert!(!ends(all[1], Owes::Holder) && ends(all[1], Owes::Task));
        assert!(!ends(all[2], Owes::Task) && ends(all[2], Owes::Holder));
        assert!(release(&mut kept, answered));
        assert_eq!(kept.ends(answered, Owes::Task, later), Release::Never);
    }

    #[test]
    fn a_caller_is_asked_about_calls_that_are_kept_long_and_not_given_up() {
        let mut kept = KeptRequests::default();
        let ids = [0, 1, 2, 3].map(|call| kept.keep(header(call), LONG, Owes::Holder));
        let now = Instant::now();
        assert_eq!(kept.ask(now), None);
        let next = kept.next_look(now).expect("some are kept");
        assert!(next >= now + SOON && next <= now + LATEST);
        let then = now + SOON;
        assert_eq!(kept.ask(then), Some((1, vec![1, 2, 3])));
        assert_eq!(kept.ask(then), None, "one question at a time");
        // The answer that might find no receive waits, and others do not.
        assert_eq!(kept.release(ids[1], later), Release::Later);
        assert!(release(&mut kept, ids[3]));
        let other = kept.keep(header(3), LONG, Owes::Holder);
        assert!(kept.told(2, 0).is_none(), "it was not asked by that call");
        let (tasks, answer) = kept.told(1, 0b110).expect("it was asked");
        assert!(tasks.is_empty() && answer.is_some() && kept.told(1, 0).is_none());
        assert!(!kept.is_awaited(ids[2]) && kept.is_awaited(other));
        assert!(release(&mut kept, ids[2]), "its answer is owed still");
    }

    #[test]
    fn calls_that_are_too_many_for_one_question_have_their_turns() {
        let mut kept = KeptRequests::default();
        let count = CALLS_ASKED as u16 + 10;
        for call in 1..=count {
            kept.keep(header(call), LONG, Owes::Holder);
        }
        let then = Instant::now() + SOON;
        let mut asked = Vec::new();
        for _ in 0..2 {
            let (carrier, calls) = kept.ask(then).expect("they are long kept");
            asked.extend(calls);
            kept.told(carrier, 0);
        }
        assert_eq!(asked[..usize::from(count)], (1..=count).collect::<Vec<_>>());
    }
}

//! From received bytes to the handlers that they run.
//!
//! The folder is told which completion of which link has come, takes the messages apart, runs their
//! handlers, and tells links about credits and answers. It says which buffers are to be posted
//! again, and how many messages were handled. Only the holder of the poller runs it.

mod answers;
mod incoming;
mod late;
mod look;
mod questions;
mod requests;

use std::collections::VecDeque;
use std::sync::Arc;

use doorbell_verbs::floor::HeldNic;

use crate::error::Undeliverable;
use crate::handlers::Tables;
use crate::link::Link;
use crate::receives::Arrival;
use crate::shared::{Counters, Runs, contained};
pub(crate) use look::{Looked, Looking};

/// The handler tables of a bundle's endpoints, and the messages that can't be handled yet.
pub(crate) struct Dispatcher {
    /// The handlers of each endpoint, by its number.
    tables: Vec<Option<Tables>>,
    /// Whether requests run their handlers in this look, or wait.
    runs_requests: bool,
    /// Requests that wait for a look that runs them.
    deferred: VecDeque<(Arc<Link>, Arrival)>,
    /// Messages of links that are not open yet.
    early: Vec<(Arc<Link>, Arrival)>,
    counters: Arc<Counters>,
    /// The state of the thread while it runs a handler in this look.
    runs: Runs,
    /// The endpoint and the place of the handler that has collected requests, until it finishes.
    collecting: Option<(usize, u16)>,
}

impl Dispatcher {
    pub fn new(counters: Arc<Counters>) -> Self {
        Self {
            tables: Vec::new(),
            runs_requests: true,
            deferred: VecDeque::new(),
            early: Vec::new(),
            counters,
            runs: Runs::OneOfSeveral,
            collecting: None,
        }
    }

    /// Registers the handlers of endpoint `number`.
    pub fn add(&mut self, number: usize, handlers: Tables) {
        if self.tables.len() <= number {
            self.tables.resize_with(number + 1, || None);
        }
        self.tables[number] = Some(handlers);
    }

    /// Returns whether endpoint `number` has handlers here.
    pub fn serves(&self, number: usize) -> bool {
        self.tables.get(number).is_some_and(Option::is_some)
    }

    /// Removes the handlers of endpoint `number`, and drops the messages that wait for it.
    pub fn remove(&mut self, number: usize) {
        self.early.retain(|(link, _)| link.endpoint.number != number);
        self.deferred.retain(|(link, _)| link.endpoint.number != number);
        drop_table(self.tables.get_mut(number).and_then(Option::take));
    }

    /// Opens a link for its messages. Messages that came before are handled now, but requests take
    /// their turn.
    pub fn open(&mut self, link: &Link, looked: &mut Looked) {
        if link.is_cut_off() {
            return;
        }
        link.set_open();
        let mut looking = Looking::new(HeldNic::none(), None);
        let runs_requests = self.runs_requests;
        self.runs_requests = false;
        let came = |(link, _): &mut (Arc<Link>, _)| link.is_open();
        let early: Vec<_> = self.early.extract_if(.., came).collect();
        for (link, mut arrival) in early {
            take_care_of_waiting(&link, &arrival);
            if let Some(buffer) = self.handle(&link, &mut arrival, &mut looking) {
                link.post(buffer);
            }
        }
        self.runs_requests = runs_requests;
        looked.handled += looking.looked.handled;
        looked.woke |= looking.looked.woke;
    }

    /// Reports `count` requests that were lost with their link, and drops messages that came before
    /// the link was open.
    pub fn lose(&mut self, link: &Arc<Link>, count: usize) {
        let its = |(early, _): &mut (Arc<Link>, _)| Arc::ptr_eq(early, link);
        for (link, mut arrival) in self.early.extract_if(.., its) {
            let buffer = arrival.leave(&link.buffers);
            buffer.into_iter().for_each(|buffer| link.post(buffer));
        }
        (0..count).for_each(|_| self.give_up(link, Undeliverable::PeerGone, None));
    }

    /// Drops all handlers, and all messages that wait.
    pub fn close(&mut self) {
        self.tables.drain(..).for_each(drop_table);
        self.deferred.clear();
        self.early.clear();
    }

    /// Begins a look, which runs the handlers of requests or has requests wait. Requests that have
    /// waited run first.
    #[inline]
    pub fn begin(&mut self, runs_requests: bool, looking: &mut Looking<'_>) {
        self.runs_requests = runs_requests;
        if runs_requests && !self.deferred.is_empty() {
            self.run_deferred(looking);
        }
    }

    /// Returns whether requests wait.
    #[inline]
    pub fn defers(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Returns whether requests of a link wait.
    pub fn defers_any_of(&self, link: &Arc<Link>) -> bool {
        self.deferred.iter().any(|(of, _)| Arc::ptr_eq(of, link))
    }

    #[cold]
    fn run_deferred(&mut self, looking: &mut Looking<'_>) {
        self.runs = Runs::OneOfSeveral;
        while let Some((link, mut arrival)) = self.deferred.pop_front() {
            looking.looked.handled += 1;
            take_care_of_waiting(&link, &arrival);
            self.request(&link, &mut arrival, looking);
            let buffers = &link.buffers;
            arrival.leave(buffers).into_iter().for_each(|buffer| link.post(buffer));
        }
    }
}

/// Prepares for the handling of a message that has waited. A resting link takes care of those whose
/// buffers are to be posted again.
fn take_care_of_waiting(link: &Link, arrival: &Arrival) {
    if arrival.posted && !link.is_awake() {
        link.take_care(arrival.header.kind);
    }
}

/// Drops handlers and what they hold, which may panic.
#[cold]
fn drop_table(table: Option<Tables>) {
    contained(|| drop(table));
}

//! The poller, which hands completions to the links that they belong to.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::Waker;

use doorbell_verbs::{CompletionQueue, Connection, Done, Memory};

use crate::link::Link;
use crate::shared::{Buffers, RECEIVE, Shared};
use crate::wire::Violation;

/// The most completions that are handed out before the NIC takes its next turn.
const MOST_AT_ONCE: usize = 64;

/// An endpoint's completion queue, and the links whose queue pairs complete there.
pub(crate) struct Poller {
    completions: CompletionQueue,
    /// The links of all streams, by the numbers of their queue pairs.
    links: HashMap<u32, Arc<Link>>,
    /// The link that was looked up last, to which the next completion usually belongs.
    recent: Option<(u32, Arc<Link>)>,
    /// Links whose connections are over, and which may still have completions in the queue.
    parting: Vec<Parting>,
}

/// A link whose connection is over, and which may still have completions in the queue.
struct Parting {
    link: Arc<Link>,
    /// How many completions had ever come when the link's last one had come; `None` before that.
    until: Option<usize>,
}

impl Parting {
    /// Returns whether all completions of the link were taken.
    fn is_over(&mut self, completions: &CompletionQueue) -> bool {
        if self.until.is_none() && self.link.common.connection.had_last_receive() {
            self.until = Some(completions.taken().wrapping_add(completions.waiting()));
        }
        self.until.is_some_and(|until| is_past(completions.taken(), until))
    }
}

/// Returns whether `count` has reached `until`, both modulo the word's size.
fn is_past(count: usize, until: usize) -> bool {
    count.wrapping_sub(until).cast_signed() >= 0
}

impl Poller {
    pub fn new(completions: CompletionQueue) -> Self {
        Self { completions, links: HashMap::new(), recent: None, parting: Vec::new() }
    }

    /// Returns how many completions were ever taken.
    pub fn taken(&self) -> usize {
        self.completions.taken()
    }

    /// Has `waker` woken when a completion comes.
    pub fn arm(&mut self, waker: &Waker) {
        self.completions.arm(waker);
    }

    /// Makes a link for a connection that is not established yet. Completions that came before are
    /// not the link's: its number may have been another queue pair's.
    pub fn enter(&mut self, shared: &Arc<Shared>, connection: Connection) -> Arc<Link> {
        let since = self.completions.taken().wrapping_add(self.completions.waiting());
        let link = Arc::new(Link::new(shared, connection, since));
        self.recent = None;
        self.links.insert(link.common.connection.qpn().get(), link.clone());
        link
    }

    /// Forgets a link, so that no more completions go to it. Returns whether the poller knew the
    /// link.
    pub fn forget(&mut self, link: &Arc<Link>) -> bool {
        self.recent = None;
        self.parting.retain(|parting| !Arc::ptr_eq(&parting.link, link));
        let number = link.common.connection.qpn().get();
        let is_there = self.links.get(&number).is_some_and(|there| Arc::ptr_eq(there, link));
        is_there && self.links.remove(&number).is_some()
    }

    /// Forgets all links, because the endpoint is over.
    pub fn clear(&mut self) {
        (self.links, self.recent) = (HashMap::new(), None);
        self.parting = Vec::new();
    }

    /// Returns the links of all streams.
    pub fn links(&self) -> Vec<Arc<Link>> {
        self.links.values().cloned().collect()
    }

    /// Returns the link whose queue pair has a number.
    pub fn link(&self, number: u32) -> Option<Arc<Link>> {
        self.links.get(&number).cloned()
    }

    /// Notes that a link's connection is over. The link is told when all its completions were
    /// taken.
    pub fn part(&mut self, link: Arc<Link>) {
        if !self.parting.iter().any(|parting| Arc::ptr_eq(&parting.link, &link)) {
            self.parting.push(Parting { link, until: None });
        }
    }

    /// Hands out completions to their links. Returns whether a task was woken, and whether more
    /// completions are waiting.
    pub fn look(&mut self, buffers: &Buffers) -> (bool, bool) {
        let (mut woke, mut taken) = (false, 0);
        while taken < MOST_AT_ONCE && self.take(buffers, &mut woke) {
            taken += 1;
        }
        buffers.fill();
        let Self { completions, parting, .. } = self;
        parting.retain_mut(|parting| {
            let over = parting.is_over(completions);
            woke |= over && parting.link.drained();
            !over
        });
        (woke, taken == MOST_AT_ONCE)
    }

    /// Hands out the next completion. Returns whether there was one; `woke` becomes true if a task
    /// was woken.
    fn take(&mut self, buffers: &Buffers, woke: &mut bool) -> bool {
        let before = self.completions.taken();
        let Self { completions, links, recent, .. } = self;
        let Some(mut done) = completions.look() else { return false };
        let number = done.qpn.get();
        if !matches!(recent, Some((recent, _)) if *recent == number) {
            *recent = links.get(&number).map(|link| (number, link.clone()));
        }
        // The completion may be of an earlier queue pair with the same number.
        let link = recent.as_ref().map(|(_, link)| link);
        let link = link.filter(|link| is_past(before, link.since));
        let (id, outcome, attached) = (done.id, done.outcome, done.attached);
        let memory = std::mem::take(&mut done.memory);
        drop(done);
        if id & RECEIVE == 0 {
            let succeeded = outcome.is_ok();
            *woke |=
                link.is_some_and(|link| link.outbound.sent(&link.common, id, memory, succeeded));
            return true;
        }
        buffers.completed();
        let Memory::Buf(buffer) = memory else { return true };
        match (link, outcome) {
            (Some(link), Ok(Done::Received)) => *woke |= link.received(buffer, attached),
            (Some(link), Ok(_)) => {
                buffers.give(buffer);
                *woke |= link.violates(Violation::NoSend);
            }
            _ => buffers.give(buffer),
        }
        true
    }
}

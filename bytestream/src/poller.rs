//! The poller: what has come and what was sent reaches its stream.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::Waker;

use doorbell_verbs::{CompletionQueue, Connection, Done, Memory};

use crate::buffers::RECEIVE;
use crate::hub::Hub;
use crate::link::Link;

/// Completions that are taken at once, before the NIC is to have a turn.
const MOST_AT_ONCE: usize = 64;

/// The completion queue of an endpoint, and the links whose completions are in it.
pub(crate) struct Poller {
    completions: CompletionQueue,
    /// By the numbers of their queue pairs.
    links: HashMap<u32, Arc<Link>>,
    /// The link that was looked up last: what comes next is its, as a rule.
    recent: Option<(u32, Arc<Link>)>,
    /// Links whose connections are over.
    parting: Vec<Parting>,
}

/// A link whose connection is over, and of which something may be in the completion queue.
struct Parting {
    link: Arc<Link>,
    /// How many completions had come when no more could come of the link; not before.
    until: Option<usize>,
}

impl Parting {
    /// Whether all is taken that is the link's.
    fn is_over(&mut self, completions: &CompletionQueue) -> bool {
        if self.until.is_none() && self.link.connection.had_last_receive() {
            self.until = Some(completions.taken().wrapping_add(completions.waiting()));
        }
        self.until.is_some_and(|until| is_past(completions.taken(), until))
    }
}

/// Whether a count, modulo the word's size, has come so far.
fn is_past(count: usize, until: usize) -> bool {
    count.wrapping_sub(until).cast_signed() >= 0
}

impl Poller {
    pub fn new(completions: CompletionQueue) -> Self {
        Self { completions, links: HashMap::new(), recent: None, parting: Vec::new() }
    }

    /// How many completions were ever taken.
    pub fn taken(&self) -> usize {
        self.completions.taken()
    }

    /// Has a waker woken when a completion comes.
    pub fn arm(&mut self, waker: &Waker) {
        self.completions.arm(waker);
    }

    /// Makes a link for a connection that is to be made: completions that come from here on are
    /// the link's.
    pub fn enter(&mut self, hub: &Arc<Hub>, connection: Connection) -> Arc<Link> {
        let since = self.completions.taken().wrapping_add(self.completions.waiting());
        let link = Arc::new(Link::new(hub, connection, since));
        self.recent = None;
        self.links.insert(link.connection.qpn().get(), link.clone());
        link
    }

    /// Forgets a link. Whether there was one.
    pub fn forget(&mut self, link: &Arc<Link>) -> bool {
        self.recent = None;
        self.parting.retain(|parting| !Arc::ptr_eq(&parting.link, link));
        let number = link.connection.qpn().get();
        let is_there = self.links.get(&number).is_some_and(|there| Arc::ptr_eq(there, link));
        is_there && self.links.remove(&number).is_some()
    }

    /// Forgets all links.
    pub fn clear(&mut self) {
        (self.links, self.recent) = (HashMap::new(), None);
        self.parting = Vec::new();
    }

    /// All links.
    pub fn links(&self) -> Vec<Arc<Link>> {
        self.links.values().cloned().collect()
    }

    /// The link of a queue pair.
    pub fn link(&self, number: u32) -> Option<Arc<Link>> {
        self.links.get(&number).cloned()
    }

    /// A link's connection is over: it is told so when all is taken that is the link's.
    pub fn parts(&mut self, link: Arc<Link>) {
        if !self.parting.iter().any(|parting| Arc::ptr_eq(&parting.link, &link)) {
            self.parting.push(Parting { link, until: None });
        }
    }

    /// Takes what is there. Whether somebody was woken, and whether there is more.
    pub fn look(&mut self, hub: &Hub) -> (bool, bool) {
        let (mut woke, mut taken) = (false, 0);
        while taken < MOST_AT_ONCE && self.take(hub, &mut woke) {
            taken += 1;
        }
        hub.buffers.fill();
        let Self { completions, parting, .. } = self;
        parting.retain_mut(|parting| {
            let over = parting.is_over(completions);
            woke |= over && parting.link.drained();
            !over
        });
        (woke, taken == MOST_AT_ONCE)
    }

    /// Takes the next completion. Whether there was one.
    fn take(&mut self, hub: &Hub, woke: &mut bool) -> bool {
        let before = self.completions.taken();
        let Self { completions, links, recent, .. } = self;
        let Some(mut done) = completions.look() else { return false };
        let number = done.qpn.get();
        if !matches!(recent, Some((recent, _)) if *recent == number) {
            *recent = links.get(&number).map(|link| (number, link.clone()));
        }
        // The number may have been another's.
        let link = recent.as_ref().map(|(_, link)| link);
        let link = link.filter(|link| is_past(before, link.since));
        let (id, outcome, attached) = (done.id, done.outcome, done.attached);
        let memory = std::mem::take(&mut done.memory);
        drop(done);
        if id & RECEIVE == 0 {
            *woke |= link.is_some_and(|link| link.outbound.sent(link, id, memory, outcome.is_ok()));
            return true;
        }
        hub.buffers.completed();
        let Memory::Buf(buffer) = memory else { return true };
        match (link, outcome) {
            (Some(link), Ok(Done::Received)) => *woke |= link.received(buffer, attached),
            (Some(link), Ok(_)) => {
                hub.buffers.give(buffer);
                *woke |= link.violates(crate::wire::Violation::NoSend);
            }
            _ => hub.buffers.give(buffer),
        }
        true
    }
}

//! The poller, which hands completions to the links that they belong to.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::Waker;

use doorbell_verbs::{CompletionQueue, Connection, Done, Memory};

use crate::buffers::RECEIVE;
use crate::hub::Hub;
use crate::link::Link;

/// The most completions that are handed out before the NIC takes its next turn.
const MOST_AT_ONCE: usize = 64;

/// An endpoint's completion queue, and the links whose queue pairs complete there.
pub(crate) struct Poller {
    completions: CompletionQueue,
    /// All links, by the numbers of their queue pairs.
    links: HashMap<u32, Arc<Link>>,
    /// The link that was looked up last, which the next completion belongs to as a rule.
    recent: Option<(u32, Arc<Link>)>,
    /// Links whose connections are over, and that may still have completions in the queue.
    parting: Vec<Parting>,
}

/// A link whose connection is over, and that may still have completions in the queue.
struct Parting {
    link: Arc<Link>,
    /// How many completions had ever come when the link's last had; unknown before that.
    until: Option<usize>,
}

impl Parting {
    /// Returns whether all completions of the link were taken.
    fn is_over(&mut self, completions: &CompletionQueue) -> bool {
        if self.until.is_none() && self.link.connection.had_last_receive() {
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

    /// Makes a link for a connection before the connection stands. Completions that came before
    /// are not the link's: its number may have been another queue pair's.
    pub fn enter(&mut self, hub: &Arc<Hub>, connection: Connection) -> Arc<Link> {
        let since = self.completions.taken().wrapping_add(self.completions.waiting());
        let link = Arc::new(Link::new(hub, connection, since));
        self.recent = None;
        self.links.insert(link.connection.qpn().get(), link.clone());
        link
    }

    /// Forgets a link. Returns whether the poller knew the link.
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

    /// Returns all links.
    pub fn links(&self) -> Vec<Arc<Link>> {
        self.links.values().cloned().collect()
    }

    /// Returns the link whose queue pair has a number.
    pub fn link(&self, number: u32) -> Option<Arc<Link>> {
        self.links.get(&number).cloned()
    }

    /// Takes note that a link's connection is over. The link is told when all its completions were
    /// taken.
    pub fn parts(&mut self, link: Arc<Link>) {
        if !self.parting.iter().any(|parting| Arc::ptr_eq(&parting.link, &link)) {
            self.parting.push(Parting { link, until: None });
        }
    }

    /// Hands out completions. Returns whether a task was woken, and whether more are waiting.
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

    /// Hands out the next completion. Returns whether there was one; `woke` becomes true if a task
    /// was woken.
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

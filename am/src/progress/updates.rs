//! What the poller is told of endpoints and links, and has not taken in yet.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use doorbell_verbs::CompletionQueue;
use doorbell_verbs::floor::locked;

use crate::handlers::Tables;
use crate::link::Link;

/// A change of endpoints or links that the poller has to know of.
pub(crate) enum Update {
    /// The endpoint with this number is there, with these handlers.
    Endpoint(usize, Tables),
    /// The endpoint with this number is closed.
    EndpointGone(usize),
    /// A link is being made. Completions with its number are its own only behind so many that had
    /// come to each queue.
    Link(Arc<Link>, [usize; 2]),
    /// A link is over.
    LinkGone(Departure),
    /// A link is open. Its first messages may have come already.
    Opened(Arc<Link>),
}

/// A link that is over, and messages of which may still be in the completion queue.
pub(crate) struct Departure {
    pub link: Arc<Link>,
    /// The number of requests that are lost.
    pub lost: usize,
    /// The number of receives that were promised for the link.
    pub promised: usize,
    /// The count of completions at which all messages of the link are taken, once it is known.
    until: Option<usize>,
}

impl Departure {
    pub fn new(link: Arc<Link>, lost: usize, promised: usize) -> Self {
        Self { link, lost, promised, until: None }
    }

    /// Returns whether all messages of the link are taken from the completion queue.
    pub fn is_over(&mut self, receives: &CompletionQueue) -> bool {
        if self.until.is_none() && self.link.takes_no_more() {
            self.until = Some(receives.taken().wrapping_add(receives.waiting()));
        }
        self.until.is_some_and(|until| is_past(receives.taken(), until))
    }
}

/// Whatever becomes of the poller, no task waits for answers any more.
impl Drop for Departure {
    fn drop(&mut self) {
        if self.link.departs()
            && let Some(owner) = self.link.endpoint.owner.upgrade()
        {
            owner.tell_departed(&self.link);
        }
    }
}

/// Returns whether a wrapping count has reached another.
pub(super) fn is_past(count: usize, until: usize) -> bool {
    count.wrapping_sub(until).cast_signed() >= 0
}

/// The updates that the poller has not taken in. It does so in each look, and before it looks up
/// whose a completion is: a link is announced before anything can come by it, and its number may
/// have been another link's.
#[derive(Default)]
pub(super) struct Inbox {
    updates: Mutex<Vec<Update>>,
    any: AtomicBool,
}

impl Inbox {
    pub fn put(&self, update: Update) {
        locked(&self.updates).push(update);
        self.any.store(true, Ordering::Release);
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    /// Puts updates back that were taken, in front of those that were put since.
    pub fn put_back(&self, mut before: Vec<Update>) {
        if before.is_empty() {
            return;
        }
        let mut updates = locked(&self.updates);
        before.append(&mut updates);
        *updates = before;
        self.any.store(true, Ordering::Release);
    }

    /// Takes all updates at once. More may be put while these are taken in, since handlers may run
    /// meanwhile.
    pub fn take(&self) -> Vec<Update> {
        let mut updates = locked(&self.updates);
        self.any.store(false, Ordering::Relaxed);
        std::mem::take(&mut *updates)
    }
}

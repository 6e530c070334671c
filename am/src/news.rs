//! What the poller is told by others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use doorbell_verbs::CompletionQueue;

use crate::buffers::locked;
use crate::handlers::Tables;
use crate::link::Link;

pub(crate) enum News {
    Endpoint(usize, Tables),
    EndpointGone(usize),
    /// Of whose number completions are another link's, as far as so many had come to each queue.
    Link(Arc<Link>, [usize; 2]),
    /// With so many requests lost, and receives that were promised for it.
    LinkGone(Parting),
    /// A link is open, whose first messages may have come already.
    Opened(Arc<Link>),
}

/// A link that is over. What came by it before is to be handled, and is in receives of it until
/// then.
pub(crate) struct Parting {
    pub link: Arc<Link>,
    /// How many requests are lost.
    pub lost: usize,
    /// How many receives were promised for it.
    pub promised: usize,
    /// How many completions had come when no more could come of it; not before.
    until: Option<usize>,
}

impl Parting {
    pub fn new(link: Arc<Link>, lost: usize, promised: usize) -> Self {
        Self { link, lost, promised, until: None }
    }

    /// Whether all is taken that came by it.
    pub fn is_over(&mut self, receives: &CompletionQueue) -> bool {
        if self.until.is_none() && self.link.takes_no_more() {
            self.until = Some(receives.taken().wrapping_add(receives.waiting()));
        }
        self.until.is_some_and(|until| is_past(receives.taken(), until))
    }
}

/// Whether a count, modulo the word's size, has come so far.
pub(crate) fn is_past(count: usize, until: usize) -> bool {
    count.wrapping_sub(until).cast_signed() >= 0
}

/// News that the poller has not heard: it does in each look, and before it looks up whose a
/// completion is. For a link is told of before anything can come by it, and its number may have
/// been another's.
#[derive(Default)]
pub(crate) struct Inbox {
    news: Mutex<Vec<News>>,
    any: AtomicBool,
}

impl Inbox {
    pub fn tell(&self, news: News) {
        locked(&self.news).push(news);
        self.any.store(true, Ordering::Release);
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    /// Others may tell more while this is heard: handlers may run, and go.
    pub fn take(&self) -> Vec<News> {
        let mut news = locked(&self.news);
        self.any.store(false, Ordering::Relaxed);
        std::mem::take(&mut *news)
    }
}

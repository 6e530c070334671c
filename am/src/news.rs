//! What the poller is told by others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::buffers::locked;
use crate::handlers::Handlers;
use crate::link::Link;

pub(crate) enum News {
    Endpoint(usize, Handlers),
    EndpointGone(usize),
    Link(Arc<Link>),
    /// With so many requests lost.
    LinkGone(Arc<Link>, usize),
    /// A link is open, whose first messages may have come already.
    Opened(Arc<Link>),
}

/// News that the poller has not heard: it does in each look, and before it looks up whose a completion
/// is. For a link is told of before anything can come by it, and its number may have been another's.
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

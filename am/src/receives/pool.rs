//! The pool of an endpoint's receives.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use doorbell_verbs::{Buf, SharedReceiveQueue};

use crate::costs::{Cost, span};
use crate::receives::Spares;

/// The receives that all peers of an endpoint share, and spare buffers of the same length. Spares
/// serve for messages that are sent, and take the place of buffers that handlers retain.
///
/// As many receives are posted as are promised, to peers for their requests and to links for the
/// answers to theirs, and one more, since a message is answered before its buffer is posted again.
pub(crate) struct Buffers {
    queue: SharedReceiveQueue,
    spares: Arc<Spares>,
    /// The most receives beside those that are guaranteed, and the most spare buffers.
    limit: usize,
    /// The most links that have a receive guaranteed, and how many links there are.
    most_guaranteed: usize,
    links: AtomicUsize,
    /// Receives that are not promised any more, and so are not posted again when they complete.
    surplus: AtomicUsize,
    /// The number of receives that are promised.
    receives: AtomicUsize,
    /// The most receives that there ever were.
    most: AtomicUsize,
    /// Receives that are promised to links that are over, and messages of which are not all
    /// handled.
    retiring: AtomicUsize,
}

impl Buffers {
    /// Makes a pool of up to `limit` receives with buffers as the spares are, and one more for each
    /// of up to `most_guaranteed` links. Posts one receive.
    pub fn new(
        queue: SharedReceiveQueue,
        spares: Arc<Spares>,
        limit: usize,
        most_guaranteed: usize,
    ) -> Self {
        let none = || AtomicUsize::new(0);
        let buffers = Self {
            queue,
            spares,
            limit,
            most_guaranteed,
            links: none(),
            surplus: none(),
            receives: none(),
            most: none(),
            retiring: none(),
        };
        buffers.promise_for_answers(1);
        buffers
    }

    /// Returns the queue that the receives are posted to.
    pub fn queue(&self) -> &SharedReceiveQueue {
        &self.queue
    }

    /// Returns the length of each buffer.
    pub fn size(&self) -> usize {
        self.spares.size()
    }

    /// Returns the most receives that there ever were.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// Counts a link that is made.
    pub fn link_comes(&self) {
        self.links.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a link off that is over, or that was not made.
    pub fn link_goes(&self) {
        self.links.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns how many receives there may be beyond the limit, one for each link.
    fn guaranteed(&self) -> usize {
        self.links.load(Ordering::Relaxed).min(self.most_guaranteed)
    }

    /// Returns whether half of the receives stay free if `more` are promised.
    pub fn is_plenty(&self, more: usize) -> bool {
        self.receives.load(Ordering::Relaxed) + more <= self.limit / 2 + self.guaranteed()
    }

    /// Promises up to `count` receives for the requests of a new peer. Some are left for answers,
    /// so that this side can send. Returns how many were promised.
    pub fn promise_to_peer(&self, count: usize) -> usize {
        self.promise(count, self.limit - (self.limit / 4).clamp(1, 64))
    }

    /// Promises up to `count` more receives to a peer that has some. A quarter is left for new
    /// peers and for answers. Returns how many were promised.
    pub fn promise_more(&self, count: usize) -> usize {
        self.promise(count, self.limit / 4 * 3)
    }

    /// Promises up to `count` receives for answers. Returns how many were promised.
    pub fn promise_for_answers(&self, count: usize) -> usize {
        self.promise(count, self.limit)
    }

    fn promise(&self, count: usize, limit: usize) -> usize {
        let (mut found, limit) = (0, limit + self.guaranteed());
        let more = |receives: usize| {
            found = count.min(limit.saturating_sub(receives));
            Some(receives + found)
        };
        // A link that finds none has put itself on the list of starving links before. So either it
        // sees what `release` has freed, or the caller of `release` sees the link.
        let before = self.receives.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        let receives = before.unwrap_or_else(|all| all) + found;
        self.most.fetch_max(receives, Ordering::Relaxed);
        for _ in 0..found {
            if !self.is_spared() {
                self.enqueue(self.take());
            }
        }
        found
    }

    /// Takes back the promise of `count` receives.
    pub fn release(&self, count: usize) {
        // In this order, so that the queue has room for every promised receive at any time.
        self.surplus.fetch_add(count, Ordering::SeqCst);
        self.receives.fetch_sub(count, Ordering::SeqCst);
    }

    /// Notes that the promise of `count` receives to a link that is over will be taken back once
    /// all its messages are handled. The receives are posted again only then, and nobody may have
    /// them before.
    pub fn retire(&self, count: usize) {
        self.retiring.fetch_add(count, Ordering::SeqCst);
    }

    /// Takes back the promise of `count` receives to a link, all messages of which are handled.
    pub fn retired(&self, count: usize) {
        self.release(count);
        self.link_goes();
        self.retiring.fetch_sub(count, Ordering::SeqCst);
    }

    /// Returns whether receives will become free even if no link gives up any.
    pub fn any_retire(&self) -> bool {
        self.retiring.load(Ordering::SeqCst) > 0
    }

    /// Returns whether a receive need not be posted again, and counts it off the surplus.
    fn is_spared(&self) -> bool {
        let less = |surplus: usize| surplus.checked_sub(1);
        self.surplus.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// Posts a buffer that was received into, unless there is a surplus of receives.
    #[inline]
    pub fn post(&self, buffer: Buf) {
        if self.surplus.load(Ordering::Relaxed) == 0 {
            self.enqueue(buffer);
        } else {
            self.post_unless_surplus(buffer);
        }
    }

    #[cold]
    fn post_unless_surplus(&self, buffer: Buf) {
        if self.is_spared() {
            self.give(buffer);
        } else {
            self.enqueue(buffer);
        }
    }

    #[inline]
    fn enqueue(&self, buffer: Buf) {
        let _base = span(Cost::Base);
        let posted = self.queue.post(0, buffer);
        debug_assert!(posted.is_ok(), "the queue has room for all that are promised");
    }

    /// Takes an empty spare buffer, or allocates one.
    #[inline]
    pub fn take(&self) -> Buf {
        self.spares.take()
    }

    /// Gives a buffer back as a spare.
    #[inline]
    pub fn give(&self, buffer: Buf) {
        self.spares.give(buffer, self.limit);
    }
}

//! Buffers: the receives of an endpoint, and what lies ready to take their place.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use doorbell_verbs::{Buf, SharedReceiveQueue};

use crate::costs::{Cost, span};
use crate::lock::locked;

/// The receives of an endpoint, which all its peers draw from, and buffers of the same size that
/// are not posted: for messages that are sent, and to take the place of what a handler keeps.
///
/// As many are posted as are promised, to peers for their requests, and to links for the answers to
/// theirs, and one: what is handled right now is answered before its buffer is posted again.
pub(crate) struct Buffers {
    queue: SharedReceiveQueue,
    size: usize,
    spares: Mutex<Vec<Buf>>,
    /// The most receives, and the most spares that are kept.
    limit: usize,
    /// Receives that are promised no more, and not posted when they come back.
    surplus: AtomicUsize,
    /// How many receives there are, and the most there ever were.
    receives: AtomicUsize,
    most: AtomicUsize,
    /// How many of them are promised to links that are over, of which not all is handled that came.
    retiring: AtomicUsize,
}

impl Buffers {
    /// With one receive.
    pub fn new(queue: SharedReceiveQueue, size: usize, limit: usize) -> Self {
        let spares = Mutex::new(Vec::new());
        let none = || AtomicUsize::new(0);
        let buffers = Self {
            queue,
            size,
            spares,
            limit,
            surplus: none(),
            receives: none(),
            most: none(),
            retiring: none(),
        };
        buffers.promise_for_answers(1);
        buffers
    }

    pub fn queue(&self) -> &SharedReceiveQueue {
        &self.queue
    }

    /// The most receives that there ever were.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// Whether half of the receives are free if so many more are promised.
    pub fn is_plenty(&self, more: usize) -> bool {
        self.receives.load(Ordering::Relaxed) + more <= self.limit / 2
    }

    /// Promises so many receives for requests of a new peer, or as many as there are: but some are
    /// left for answers, so that this side can send. How many.
    pub fn promise_to_peer(&self, count: usize) -> usize {
        self.promise(count, self.limit - (self.limit / 4).clamp(1, 64))
    }

    /// Promises more receives to a peer that has some, as many as there are in three quarters: the
    /// rest is for new ones, and for answers. How many.
    pub fn promise_more(&self, count: usize) -> usize {
        self.promise(count, self.limit / 4 * 3)
    }

    /// Promises so many receives for answers, or as many as there are. How many.
    pub fn promise_for_answers(&self, count: usize) -> usize {
        self.promise(count, self.limit)
    }

    fn promise(&self, count: usize, limit: usize) -> usize {
        let mut found = 0;
        let more = |receives: usize| {
            found = count.min(limit.saturating_sub(receives));
            Some(receives + found)
        };
        // Whoever finds none has said before that it waits: with `release`, one sees the other.
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

    /// So many receives are promised no more.
    pub fn release(&self, count: usize) {
        // In this order: so there is never a promise for which the queue has no room.
        self.surplus.fetch_add(count, Ordering::SeqCst);
        self.receives.fetch_sub(count, Ordering::SeqCst);
    }

    /// So many receives that a link was promised will be promised no more, when all is handled that
    /// came by it: only then are they posted, or others would be promised what is not there.
    pub fn retire(&self, count: usize) {
        self.retiring.fetch_add(count, Ordering::SeqCst);
    }

    /// All is handled.
    pub fn retired(&self, count: usize) {
        self.release(count);
        self.retiring.fetch_sub(count, Ordering::SeqCst);
    }

    /// Whether some will be free, whoever else gives up any.
    pub fn any_retire(&self) -> bool {
        self.retiring.load(Ordering::SeqCst) > 0
    }

    /// Whether one less is to be posted.
    fn is_spared(&self) -> bool {
        let less = |surplus: usize| surplus.checked_sub(1);
        self.surplus.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// Posts a buffer that was received into, or one in its place.
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

    /// A buffer that is not posted: empty.
    #[inline]
    pub fn take(&self) -> Buf {
        let spare = locked(&self.spares).pop();
        spare.unwrap_or_else(|| Buf::with_capacity(self.size))
    }

    /// Keeps a buffer for later.
    #[inline]
    pub fn give(&self, mut buffer: Buf) {
        let mut spares = locked(&self.spares);
        if buffer.capacity() == self.size && spares.len() < self.limit {
            buffer.clear();
            spares.push(buffer);
        }
    }
}

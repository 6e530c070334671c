//! Completion queues: the program's end.

use std::ops::{Deref, DerefMut};

use crate::nic::requests::completion::Completion;
use crate::nic::ring::{Consumer, Gauge, Leaving};

/// The program's end of a completion queue.
pub struct CompletionQueue {
    pub(crate) ring: Consumer<Completion>,
}

impl CompletionQueue {
    /// Takes the next completion, if there is one.
    #[inline]
    pub fn poll(&mut self) -> Option<Completion> {
        self.ring.pop()
    }

    /// Returns the next completion, if there is one, where it stands in the queue. It leaves the
    /// queue when the returned value is dropped. Less is moved than by a [poll](Self::poll).
    #[inline(always)]
    pub fn poll_in_place(&mut self) -> Option<Polled<'_>> {
        self.ring.head().map(|head| Polled(head.leaving()))
    }

    /// Returns the next completion, if there is one, and leaves it in the queue. Unlike
    /// [`len`](Self::len), this reads what the NIC writes only if the queue knows of no completion.
    #[inline(always)]
    pub fn peek(&mut self) -> Option<&Completion> {
        self.ring.head().map(|head| head.stay())
    }

    /// Takes the next completion, which was [seen](Self::peek) before. It is moved once less than
    /// by a [poll](Self::poll).
    ///
    /// # Panics
    /// When the queue is empty.
    #[inline(always)]
    pub fn take(&mut self) -> Completion {
        match self.ring.head() {
            Some(head) => head.take(),
            None => panic!("a completion is taken from a queue that is empty"),
        }
    }

    /// How many completions were ever taken, modulo the word's size.
    #[inline]
    pub fn taken(&self) -> usize {
        self.ring.taken()
    }

    /// Returns a gauge that tells from any thread how many completions the queue ever had, while
    /// another thread takes them.
    pub fn gauge(&self) -> CompletionGauge {
        CompletionGauge(self.ring.gauge())
    }

    /// How many completions wait in the queue.
    #[inline]
    pub fn len(&self) -> usize {
        self.ring.waiting()
    }

    /// Whether no completion waits in the queue.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Tells from any thread how many completions a queue ever had. A thread that is not the queue's
/// reader need not wait for the reader to learn that the queue is empty.
pub struct CompletionGauge(Gauge<Completion>);

impl CompletionGauge {
    /// How many completions ever came to the queue, modulo the word's size. That is more than its
    /// reader has [taken](CompletionQueue::taken), if some wait.
    #[inline]
    pub fn came(&self) -> usize {
        self.0.written()
    }
}

/// A completion where it stands in its queue. It leaves the queue when this value is dropped.
#[derive(Debug)]
pub struct Polled<'a>(Leaving<'a, Completion>);

impl Deref for Polled<'_> {
    type Target = Completion;

    #[inline(always)]
    fn deref(&self) -> &Completion {
        &self.0
    }
}

impl DerefMut for Polled<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Completion {
        &mut self.0
    }
}

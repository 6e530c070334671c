//! Completion queues: the program's end.

use std::ops::{Deref, DerefMut};

use crate::nic::requests::completion::Completion;
use crate::nic::ring::{Consumer, Gauge, Leaving};

/// The program's end of a completion queue.
pub struct CompletionQueue {
    pub(crate) ring: Consumer<Completion>,
}

impl CompletionQueue {
    /// The next completion, if there is one.
    #[inline]
    pub fn poll(&mut self) -> Option<Completion> {
        self.ring.pop()
    }

    /// The next completion, if there is one, where it stands: it leaves the queue when what is
    /// returned is dropped. Less is moved than by a [poll](Self::poll).
    #[inline(always)]
    pub fn poll_in_place(&mut self) -> Option<Polled<'_>> {
        self.ring.head().map(|head| Polled(head.leaving()))
    }

    /// The next completion, if there is one, which stays in the queue. Unlike [`len`](Self::len)
    /// this looks at what the NIC writes only if it knows of none.
    #[inline(always)]
    pub fn peek(&mut self) -> Option<&Completion> {
        self.ring.head().map(|head| head.stay())
    }

    /// The next completion, which [is there](Self::peek): it is moved once less than by a
    /// [poll](Self::poll).
    ///
    /// # Panics
    /// When it is not.
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

    /// What tells from anywhere how many there were, while another takes them.
    pub fn gauge(&self) -> CompletionGauge {
        CompletionGauge(self.ring.gauge())
    }

    /// How many completions wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.ring.waiting()
    }

    /// Whether none waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Tells how many completions a queue ever had, without being its reader: for whoever would else
/// have to wait for that in order to see that there is nothing.
pub struct CompletionGauge(Gauge<Completion>);

impl CompletionGauge {
    /// How many there were, modulo the word's size: more than its reader has
    /// [taken](CompletionQueue::taken), if some wait.
    #[inline]
    pub fn came(&self) -> usize {
        self.0.written()
    }
}

/// A completion where it stands in its queue, which it leaves when this is dropped.
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

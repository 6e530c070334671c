//! A completion queue with one reader, and the NIC in hand.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use doorbell_core::nic::{self, Completion, CompletionGauge, CompletionQueueId, Polled};
use futures_core::Stream;

use crate::hand::{AtHand, Hand};
use crate::nic::Nic;
use crate::progress::{Errand, Look, Shared, Stint, block_on};
use crate::sync::{Mutex, locked};
use crate::waiting::Waiting;

/// What wakes the reader of a completion queue.
#[derive(Default)]
pub(crate) struct Bell(Mutex<Option<Waker>>);

impl Bell {
    /// Whether somebody was woken.
    pub fn ring(&self) -> bool {
        let waker = locked(&self.0).take();
        let woke = waker.is_some();
        waker.into_iter().for_each(Waker::wake);
        woke
    }

    fn set(&self, waker: &Waker) {
        locked(&self.0).get_or_insert_with(|| waker.clone()).clone_from(waker);
    }
}

/// A completion queue that one reader reads: a stream that does not end.
///
/// It can't overflow. Requests of queue pairs that end here begin when there is room for their
/// completions, so a reader who is slow holds them up, and loses none.
///
/// ```
/// # use doorbell::verbs::{Config, Nic, QueuesConfig};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let nic = Nic::open(&format!("shm:completions/{}", std::process::id()), Config::default())?;
/// let mut completions = nic.completion_queue(256)?;
/// let unconnected = nic.domain().queues(&QueuesConfig::new(&completions))?;
/// assert!(completions.poll().is_none());
/// # drop(unconnected);
/// # Ok(())
/// # }
/// ```
pub struct CompletionQueue {
    nic: Nic,
    id: CompletionQueueId,
    /// There until it is dropped.
    queue: Option<nic::CompletionQueue>,
    bell: Arc<Bell>,
    /// Of the stream, from one poll to the next.
    stint: Stint,
}

struct Head<'q> {
    queue: &'q mut nic::CompletionQueue,
    id: CompletionQueueId,
    bell: &'q Bell,
    shared: &'q Shared,
}

impl Look for Head<'_> {
    /// That there is one, which is then taken where it stands: what is handed through all that
    /// waits is written in other pieces each time than it is read in, for which processors wait.
    type Found = ();

    #[inline]
    fn look(&mut self, _: AtHand<'_>) -> Option<()> {
        self.queue.peek().map(|_| ())
    }

    fn register(&mut self, waker: &Waker) {
        self.bell.set(waker);
        self.shared.errands.add(Errand::Arm(self.id));
    }
}

impl fmt::Debug for CompletionQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompletionQueue")
            .field("id", &self.id)
            .field("waiting", &self.waiting())
            .field("nic", &self.nic)
            .finish_non_exhaustive()
    }
}

impl CompletionQueue {
    pub(crate) fn new(nic: Nic, id: CompletionQueueId, queue: nic::CompletionQueue) -> Self {
        let bell = Arc::new(Bell::default());
        nic.shared().with(|machine| machine.control().queues.insert(id, bell.clone()));
        Self { nic, id, queue: Some(queue), bell, stint: Stint::default() }
    }

    /// The NIC that it is of.
    pub fn nic(&self) -> &Nic {
        &self.nic
    }

    /// Which one of its NIC's it is.
    pub fn id(&self) -> CompletionQueueId {
        self.id
    }

    fn head(&mut self) -> Head<'_> {
        let queue = self.queue.as_mut().expect("it is there until this is dropped");
        Head { queue, id: self.id, bell: &self.bell, shared: self.nic.shared() }
    }

    /// The next completion, if there is one already, which stays in the queue. The NIC takes no
    /// turn for it.
    #[inline]
    pub fn peek(&mut self) -> Option<&Completion> {
        self.queue.as_mut().expect("it is there until this is dropped").peek()
    }

    /// The next completion, if there is one already, where it stands in the queue, which it leaves
    /// when what is returned is dropped. The NIC takes no turn for it.
    #[doc(hidden)]
    #[inline]
    pub fn look(&mut self) -> Option<Polled<'_>> {
        self.queue.as_mut().expect("it is there until this is dropped").poll_in_place()
    }

    /// How many completions were ever taken, modulo the word's size.
    #[doc(hidden)]
    #[inline]
    pub fn taken(&self) -> usize {
        self.queue.as_ref().map_or(0, nic::CompletionQueue::taken)
    }

    /// What tells others whether there are completions, while this one takes them.
    ///
    /// # Panics
    /// Never: there is a queue until this is dropped.
    #[doc(hidden)]
    pub fn gauge(&self) -> CompletionGauge {
        self.queue.as_ref().expect("it is there until this is dropped").gauge()
    }

    /// How many completions there are already.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.queue.as_ref().map_or(0, nic::CompletionQueue::len)
    }

    /// Has `waker` woken, once, by the next completion that comes. Look again afterwards.
    pub fn arm(&mut self, waker: &Waker) {
        self.head().register(waker);
    }

    /// The next completion, if there is one. If there is none, the NIC takes a turn, and then it is
    /// looked for once more: so a loop over this needs no runtime.
    #[inline]
    pub fn poll(&mut self) -> Option<Completion> {
        let head = self.head();
        match head.queue.poll() {
            Some(completion) => {
                head.shared.goes_on();
                Some(completion)
            }
            None => {
                head.shared.turn();
                head.queue.poll()
            }
        }
    }

    /// The next completion.
    #[inline]
    pub fn completion(&mut self) -> NextCompletion<'_> {
        let head = self.head();
        NextCompletion { waiting: Waiting::new(head.shared), head }
    }

    pub(crate) fn until_ready<'n>(&mut self, nic: &'n Nic) -> UntilCompletion<'n, '_> {
        assert!(Arc::ptr_eq(nic.shared(), self.nic.shared()), "a completion queue of another NIC");
        UntilCompletion { head: self.head(), waiting: Waiting::new(nic.shared()) }
    }

    /// The next completion, for which this thread waits. It needs no runtime.
    pub fn wait(&mut self) -> Completion {
        let shared = self.nic.shared().clone();
        block_on(&shared, self.completion())
    }
}

impl Stream for CompletionQueue {
    type Item = Completion;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Completion>> {
        let Self { nic, id, queue, bell, stint } = self.get_mut();
        let queue = queue.as_mut().expect("it is there until this is dropped");
        let mut head = Head { queue, id: *id, bell, shared: nic.shared() };
        nic.shared().wait(context, stint, &mut head).map(|((), machine)| {
            let completion = head.queue.take();
            drop(Hand::new(nic.shared(), machine));
            Some(completion)
        })
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        self.nic.shared().end(&mut self.stint);
        if let Some(queue) = self.queue.take() {
            self.nic.shared().run(Errand::DropCompletions(self.id, queue));
        }
    }
}

/// See [`CompletionQueue::completion`].
#[must_use = "a future does nothing unless it is awaited"]
pub struct NextCompletion<'q> {
    head: Head<'q>,
    waiting: Waiting<'q>,
}

impl fmt::Debug for NextCompletion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NextCompletion").field(&self.head.id).finish()
    }
}

impl Future for NextCompletion<'_> {
    type Output = Completion;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Completion> {
        let Self { head, waiting } = &mut *self;
        let ((), hand) = ready!(waiting.poll(context, head));
        let completion = head.queue.take();
        // What waits for its room may leave with this.
        drop(hand);
        Poll::Ready(completion)
    }
}

/// See [`Nic::until_completion`].
#[must_use = "a future does nothing unless it is awaited"]
pub struct UntilCompletion<'n, 'q> {
    head: Head<'q>,
    waiting: Waiting<'n>,
}

impl fmt::Debug for UntilCompletion<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UntilCompletion").field(&self.head.id).finish()
    }
}

impl<'n> Future for UntilCompletion<'n, '_> {
    type Output = Hand<'n>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Hand<'n>> {
        let Self { head, waiting } = &mut *self;
        waiting.poll(context, head).map(|((), hand)| hand)
    }
}

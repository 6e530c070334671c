//! A completion queue with one reader.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use doorbell_core::nic::{
    self, Completion, CompletionGauge, CompletionQueueId, Polled, ResourceError,
};
use futures_core::Stream;

use super::next::{Head, NextCompletion, UntilCompletion};
use crate::control::ControlOp;
use crate::dispatch::ReaderWaker;
use crate::nic::Nic;
use crate::progress::{Look, NicGuard, WaitState};
use crate::waiting::{Waiting, block_on};

/// A completion queue with one reader: a stream without an end.
///
/// The queue can't overflow. Requests whose completions go here start only when there is room for
/// the completions, so a slow reader delays requests, and loses no completion.
///
/// ```
/// # use doorbell_verbs::{Config, Nic, QueuesConfig};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let nic = Nic::builder().open_blocking(&format!("shm:completions/{}", std::process::id()))?;
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
    /// The program's end of the queue, which is taken out when this is dropped.
    queue: Option<nic::CompletionQueue>,
    reader: Arc<ReaderWaker>,
    /// The state of the stream's wait, from one poll to the next.
    wait_state: WaitState,
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
        let reader = Arc::new(ReaderWaker::default());
        nic.engine().with(|adapter| adapter.control().readers.insert(id, reader.clone()));
        Self { nic, id, queue: Some(queue), reader, wait_state: WaitState::default() }
    }

    /// Returns the NIC of the queue.
    pub fn nic(&self) -> &Nic {
        &self.nic
    }

    /// Returns the number by which the NIC knows the queue.
    pub fn id(&self) -> CompletionQueueId {
        self.id
    }

    fn head(&mut self) -> Head<'_> {
        let queue = self.queue.as_mut().expect("the queue is taken out only on drop");
        Head { queue, id: self.id, reader: &self.reader, engine: self.nic.engine() }
    }

    /// Returns the next completion if there is one, and leaves it in the queue. The NIC takes no
    /// turn.
    #[inline]
    pub fn peek(&mut self) -> Option<&Completion> {
        self.queue.as_mut().expect("the queue is taken out only on drop").peek()
    }

    /// Returns the next completion in place if there is one. The completion leaves the queue when
    /// the returned value is dropped. The NIC takes no turn.
    #[doc(hidden)]
    #[inline]
    pub fn look(&mut self) -> Option<Polled<'_>> {
        self.queue.as_mut().expect("the queue is taken out only on drop").poll_in_place()
    }

    /// Returns how many completions were ever taken, modulo the size of a word.
    #[doc(hidden)]
    #[inline]
    pub fn taken(&self) -> usize {
        self.queue.as_ref().map_or(0, nic::CompletionQueue::taken)
    }

    /// Returns a gauge, by which another thread sees whether there are completions.
    ///
    /// # Panics
    /// Never panics: the queue is taken out only when this is dropped.
    #[doc(hidden)]
    pub fn gauge(&self) -> CompletionGauge {
        self.queue.as_ref().expect("the queue is taken out only on drop").gauge()
    }

    /// Returns how many completions are in the queue.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.queue.as_ref().map_or(0, nic::CompletionQueue::len)
    }

    /// Registers `waker`, to be woken once by the next completion. Look again afterwards, since one
    /// may have come meanwhile.
    pub fn arm(&mut self, waker: &Waker) {
        self.head().register(waker);
    }

    /// Returns the next completion, if there is one. If there is none, the NIC takes a turn before
    /// a second look, so a loop over this needs no runtime.
    #[inline]
    pub fn poll(&mut self) -> Option<Completion> {
        let head = self.head();
        match head.queue.poll() {
            Some(completion) => {
                head.engine.count_find();
                Some(completion)
            }
            None => {
                head.engine.turn();
                head.queue.poll()
            }
        }
    }

    /// Waits for the next completion.
    #[inline]
    pub fn completion(&mut self) -> NextCompletion<'_> {
        let head = self.head();
        NextCompletion { waiting: Waiting::new(head.engine), head }
    }

    /// Blocks this thread until there is a completion, and needs no runtime.
    pub fn wait(&mut self) -> Completion {
        let engine = self.nic.engine().clone();
        block_on(&engine, self.completion())
    }
}

impl Stream for CompletionQueue {
    type Item = Completion;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Completion>> {
        let Self { nic, id, queue, reader, wait_state } = self.get_mut();
        let queue = queue.as_mut().expect("the queue is taken out only on drop");
        let mut head = Head { queue, id: *id, reader, engine: nic.engine() };
        nic.engine().wait(context, wait_state, &mut head).map(|((), adapter)| {
            let completion = head.queue.take();
            drop(NicGuard::new(nic.engine(), adapter));
            Some(completion)
        })
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        self.nic.engine().end(&mut self.wait_state);
        if let Some(queue) = self.queue.take() {
            self.nic.engine().submit(ControlOp::DropCompletionQueue(self.id, queue));
        }
    }
}

impl Nic {
    /// Makes a completion queue with the given number of entries. Each receive queue that completes
    /// there reserves one of them.
    ///
    /// # Errors
    /// Returns an error when the number is zero or too large.
    pub fn completion_queue(&self, entries: usize) -> Result<CompletionQueue, ResourceError> {
        let made = self.engine().with(|adapter| adapter.control().nic.completion_queue(entries));
        let (id, queue) = made?;
        Ok(CompletionQueue::new(self.clone(), id, queue))
    }

    /// Makes a completion queue that has the given number of entries at first, and more once more
    /// receive queues complete there. For layers of this workspace.
    ///
    /// # Errors
    /// Returns an error when the number is zero or too large.
    #[doc(hidden)]
    pub fn growing_completion_queue(
        &self,
        entries: usize,
    ) -> Result<CompletionQueue, ResourceError> {
        let made =
            self.engine().with(|adapter| adapter.control().nic.growing_completion_queue(entries));
        let (id, queue) = made?;
        Ok(CompletionQueue::new(self.clone(), id, queue))
    }

    /// Waits until there is a completion, and returns a guard that holds the NIC, unless another
    /// thread has it. A program [peeks](CompletionQueue::peek) at the completion, answers it, and
    /// [takes](CompletionQueue::look) it only then.
    ///
    /// ```
    /// # use doorbell_verbs::work::Send;
    /// # use doorbell_verbs::{CompletionQueue, Memory, Nic, ReceiveQueue, SendQueue};
    /// # type Outcome = Result<(), Box<dyn std::error::Error>>;
    /// # async fn answer(nic: &Nic, send: &mut SendQueue, receive: &mut ReceiveQueue,
    /// #     received: &mut CompletionQueue) -> Outcome {
    /// let mut hand = nic.until_completion(received).await;
    /// let came = received.peek().expect("it was waited for");
    /// came.outcome?;
    /// hand.post(send, Send::inline(b"pong")?.unsignalled())?;
    /// drop(hand);
    /// let mut answered = received.look().expect("it is still there");
    /// let buffer = std::mem::replace(&mut answered.memory, Memory::None);
    /// drop(answered);
    /// receive.post(0, buffer)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// Panics when the queue belongs to another NIC.
    #[doc(hidden)]
    #[inline]
    pub fn until_completion<'q>(
        &self,
        completions: &'q mut CompletionQueue,
    ) -> UntilCompletion<'_, 'q> {
        let own = completions.nic.engine();
        assert!(Arc::ptr_eq(self.engine(), own), "a completion queue of another NIC");
        UntilCompletion { head: completions.head(), waiting: Waiting::new(self.engine()) }
    }
}

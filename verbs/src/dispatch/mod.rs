//! Dispatching of completions to the tasks that wait for them.
//!
//! This folder is handed each completion by the layer that polls the NIC. It hands requests and
//! receives to the NIC's queues, and completions to the futures that await them, and wakes their
//! tasks. It knows queues, wakers and errors, but no NIC.

mod events;
mod reader;
mod slots;

use std::any::Any;
use std::collections::VecDeque;
use std::task::Waker;

use doorbell_core::nic::{
    Completion, Memory, Polled, QueuePairEnds, ReceiveQueue, ReceiveRequest, Refused, SendQueue,
    WorkRequest,
};
use tokio::sync::Semaphore;

pub use events::AsyncEvent;
pub(crate) use reader::ReaderWaker;
pub(crate) use slots::Slots;

use crate::error::PostReceiveError;
use crate::sync::wakers::{Place, Wakers, wake};
use crate::sync::{AtomicU64, Mutex, Ordering, locked};

/// The bit in the number of a request that marks the completion of a receive.
pub(crate) const RECEIVE: u64 = 1 << 63;

/// The queues of one queue pair whose requests are futures: requests under way, and received
/// messages that no future has taken yet.
pub(crate) struct Dispatcher {
    /// Permits, of which each request takes one before it is posted.
    pub room: Semaphore,
    sends: Slots<Option<SendQueue>, Completion>,
    inbox: Mutex<Inbox>,
    /// The number of completed receives. A look that finds the number unchanged takes no lock.
    arrived: AtomicU64,
    /// The tasks that wait for messages.
    receivers: Wakers,
}

struct Inbox {
    queue: Option<ReceiveQueue>,
    /// Receives that have completed: no more than were posted.
    arrived: VecDeque<Completion>,
    over: bool,
}

impl Dispatcher {
    pub fn new(ends: QueuePairEnds, depth: usize) -> Self {
        let QueuePairEnds { send, receive, .. } = ends;
        let inbox = Inbox { queue: Some(receive), arrived: VecDeque::new(), over: false };
        Self {
            room: Semaphore::new(depth),
            sends: Slots::new(Some(send)),
            inbox: Mutex::new(inbox),
            arrived: AtomicU64::new(0),
            receivers: Wakers::default(),
        }
    }

    /// Hands a completion to the future that awaits it, and returns whether a task was woken.
    #[inline]
    pub fn complete(&self, mut done: Polled<'_>) -> bool {
        if done.id & RECEIVE != 0 {
            let mut inbox = locked(&self.inbox);
            if inbox.arrived.capacity() == 0 {
                inbox.arrived.reserve_exact(1);
            }
            inbox.arrived.push_back(taken(&mut done));
            drop(inbox);
            self.arrived.fetch_add(1, Ordering::SeqCst);
            return self.receivers.wake_all();
        }
        let woken = self.sends.complete(done.id as u32, || taken(&mut done));
        self.room.add_permits(1);
        let woke = woken.is_some();
        woken.into_iter().for_each(wake);
        woke
    }

    /// Marks the connection as ended, and wakes the tasks that wait for messages.
    pub fn end(&self) {
        locked(&self.inbox).over = true;
        self.arrived.fetch_add(1, Ordering::SeqCst);
        self.receivers.wake_all();
    }

    /// Takes the program's ends of the two queues, when the queue pair is dropped.
    pub fn take_ends(&self) -> Box<dyn Any + Send> {
        let send = self.sends.queue(Option::take);
        Box::new((send, locked(&self.inbox).queue.take()))
    }
}

/// Requests of futures, and their completions.
impl Dispatcher {
    /// Posts a request to the queue, with a slot for its completion. `then` runs before another
    /// request can be posted to the queue.
    ///
    /// # Errors
    /// Returns the request when the queue refuses it.
    #[inline]
    pub fn post(
        &self,
        mut request: WorkRequest,
        then: impl FnOnce(&SendQueue),
    ) -> Result<u32, Refused<WorkRequest>> {
        request.signalled = true;
        self.sends.post(|queue, index| {
            request.id = u64::from(index);
            // Futures borrow the queue pair, which keeps its ends until it is dropped.
            let queue = queue.as_mut().expect("the queue lives as long as the queue pair");
            queue.post(request)?;
            then(queue);
            Ok(())
        })
    }

    /// Returns the number of completed requests.
    #[inline]
    pub fn completed(&self) -> u64 {
        self.sends.completed()
    }

    /// Takes the completion out of a slot, and frees the slot.
    pub fn take(&self, index: u32) -> Option<Completion> {
        self.sends.take(index)
    }

    /// Registers a waker, to be woken when the slot holds a completion.
    pub fn await_slot(&self, index: u32, waker: &Waker) {
        self.sends.wait(index, waker);
    }

    /// Gives up a slot whose future was dropped: the completion will be discarded.
    pub fn abandon(&self, index: u32) {
        self.sends.abandon(index);
    }
}

/// Receives, and the messages that complete them.
impl Dispatcher {
    /// Posts a receive, and returns whether the doorbell must be rung for it.
    pub fn post_receive(&self, memory: Memory) -> Result<bool, PostReceiveError> {
        let mut inbox = locked(&self.inbox);
        let queue = inbox.queue.as_mut().expect("the queue lives as long as the queue pair");
        match queue.post(receive(memory)) {
            Ok(()) => Ok(queue.is_flushed()),
            Err(refused) => Err(PostReceiveError { why: refused.why, request: refused.request }),
        }
    }

    /// Returns the number of completed receives.
    #[inline]
    pub fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::SeqCst)
    }

    /// Takes the next message, or tells that there will be none.
    pub fn next(&self) -> Option<Arrival> {
        let mut inbox = locked(&self.inbox);
        match inbox.arrived.pop_front() {
            Some(completion) => Some(Arrival::Message(completion)),
            None => inbox.over.then_some(Arrival::Over),
        }
    }

    /// Registers a waker, to be woken by the next message and by the end of the connection.
    pub fn await_message(&self, place: &mut Place, waker: &Waker) {
        self.receivers.enter(place, waker);
    }

    /// Removes the waker again.
    pub fn await_no_message(&self, place: &mut Place) {
        self.receivers.leave(place);
    }
}

/// The next message of a connection, or the news that there will be none.
pub(crate) enum Arrival {
    /// A message has come.
    Message(Completion),
    /// The connection has ended, and no message is left.
    Over,
}

/// Copies a completion out of its queue, and moves its memory.
fn taken(done: &mut Polled<'_>) -> Completion {
    Completion {
        id: done.id,
        qpn: done.qpn,
        outcome: done.outcome,
        len: done.len,
        attached: done.attached,
        memory: std::mem::take(&mut done.memory),
    }
}

/// Makes a receive request that is marked as such.
fn receive(memory: Memory) -> ReceiveRequest {
    ReceiveRequest { id: RECEIVE, memory }
}

//! What of a queue pair its futures share with the NIC.

mod slots;

use std::any::Any;
use std::collections::VecDeque;
use std::task::Waker;

use doorbell_core::nic::{
    Completion, Memory, Polled, QueuePairEnds, ReceiveQueue, Refused, SendQueue, WorkRequest,
};
use tokio::sync::Semaphore;

pub(crate) use slots::Slots;

use crate::error::PostReceiveError;
use crate::pair::{RECEIVE, receive, taken};
use crate::sync::{AtomicU64, Mutex, Ordering, locked};
use crate::wakers::{Place, Wakers};

/// Requests that are under way, and messages that nobody has asked for yet.
pub(crate) struct Pair {
    /// A permit for each request that may be posted.
    pub room: Semaphore,
    sends: Slots<Option<SendQueue>, Completion>,
    inbox: Mutex<Inbox>,
    /// How many receives were completed: so a look that finds nothing is a load.
    arrived: AtomicU64,
    /// Who waits for messages.
    receivers: Wakers,
}

struct Inbox {
    queue: Option<ReceiveQueue>,
    /// No more than were posted.
    arrived: VecDeque<Completion>,
    over: bool,
}

impl Pair {
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

    /// Hands a completion to whoever awaits it. Whether somebody was woken.
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
        woken.into_iter().for_each(Waker::wake);
        woke
    }

    /// The connection is over: who waits for a message is told.
    pub fn end(&self) {
        locked(&self.inbox).over = true;
        self.arrived.fetch_add(1, Ordering::SeqCst);
        self.receivers.wake_all();
    }

    /// The program's ends of its queues, of which nobody has need any more.
    pub fn take_ends(&self) -> Box<dyn Any + Send> {
        let send = self.sends.queue(Option::take);
        Box::new((send, locked(&self.inbox).queue.take()))
    }
}

/// Requests.
impl Pair {
    /// Posts a request to the queue, with a slot for its completion; `then` is done with the queue
    /// before anything else is posted there.
    ///
    /// # Errors
    /// What the queue says, with the request.
    #[inline]
    pub fn post(
        &self,
        mut request: WorkRequest,
        then: impl FnOnce(&SendQueue),
    ) -> Result<u32, Refused<WorkRequest>> {
        request.signalled = true;
        self.sends.post(|queue, index| {
            request.id = u64::from(index);
            // Futures borrow the queue pair, whose end this is until it is dropped.
            let queue = queue.as_mut().expect("it is there as long as the queue pair is");
            queue.post(request)?;
            then(queue);
            Ok(())
        })
    }

    /// How many requests were completed.
    #[inline]
    pub fn completed(&self) -> u64 {
        self.sends.completed()
    }

    /// The completion of the request in a slot, which is free then.
    pub fn take(&self, index: u32) -> Option<Completion> {
        self.sends.take(index)
    }

    /// Has a waker woken when that is there.
    pub fn await_slot(&self, index: u32, waker: &Waker) {
        self.sends.wait(index, waker);
    }

    /// Nobody awaits the request in a slot any more.
    pub fn abandon(&self, index: u32) {
        self.sends.abandon(index);
    }
}

/// Receives.
impl Pair {
    /// Posts a receive. Whether the NIC must be told.
    pub fn post_receive(&self, memory: Memory) -> Result<bool, PostReceiveError> {
        let mut inbox = locked(&self.inbox);
        let queue = inbox.queue.as_mut().expect("it is there as long as the queue pair is");
        match queue.post(receive(memory)) {
            Ok(()) => Ok(queue.is_flushed()),
            Err(refused) => Err(PostReceiveError { why: refused.why, request: refused.request }),
        }
    }

    /// How many receives were completed.
    #[inline]
    pub fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::SeqCst)
    }

    /// The next message, or that there will be none.
    pub fn next(&self) -> Option<Option<Completion>> {
        let mut inbox = locked(&self.inbox);
        match inbox.arrived.pop_front() {
            Some(completion) => Some(Some(completion)),
            None => inbox.over.then_some(None),
        }
    }

    /// Has a waker woken when something of that is there.
    pub fn await_message(&self, place: &mut Place, waker: &Waker) {
        self.receivers.enter(place, waker);
    }

    /// Does so no more.
    pub fn await_no_message(&self, place: &mut Place) {
        self.receivers.leave(place);
    }
}

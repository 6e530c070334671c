//! Where the completions of a queue pair's requests wait for their futures.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

use doorbell_core::nic::{
    Completion, Memory, Polled, QueuePairEnds, ReceiveQueue, SendQueue, WorkRequest,
};
use tokio::sync::Semaphore;

use super::{RECEIVE, receive, taken};
use crate::error::PostReceiveError;
use crate::sync::locked;
use crate::wakers::Wakers;

/// What of a queue pair is its program's, and what its futures share.
pub(crate) struct Pair {
    /// A permit for each request that may be posted.
    pub room: Semaphore,
    sends: Mutex<Sends>,
    inbox: Mutex<Inbox>,
    /// How many completions of either kind there were: so a look that finds nothing is a load.
    completed: AtomicU64,
    arrived: AtomicU64,
}

struct Sends {
    queue: Option<SendQueue>,
    /// As many as there were futures at a time.
    slots: Vec<Slot>,
    free: Vec<u32>,
}

enum Slot {
    Free,
    /// Its request is under way.
    Waiting(Option<Waker>),
    Done(Completion),
    /// Its future was dropped.
    Abandoned,
}

struct Inbox {
    queue: Option<ReceiveQueue>,
    /// No more than were posted.
    arrived: VecDeque<Completion>,
    wakers: Wakers,
    over: bool,
}

impl Pair {
    pub fn new(ends: QueuePairEnds, depth: usize) -> Self {
        let sends = Sends { queue: Some(ends.send), slots: Vec::new(), free: Vec::new() };
        let inbox = Inbox {
            queue: Some(ends.receive),
            arrived: VecDeque::new(),
            wakers: Wakers::default(),
            over: false,
        };
        Self {
            room: Semaphore::new(depth),
            sends: Mutex::new(sends),
            inbox: Mutex::new(inbox),
            completed: AtomicU64::new(0),
            arrived: AtomicU64::new(0),
        }
    }

    /// Hands a completion to whoever awaits it. Whether somebody was woken.
    #[inline]
    pub fn complete(&self, mut done: Polled<'_>) -> bool {
        if done.id & RECEIVE != 0 {
            let mut inbox = locked(&self.inbox);
            inbox.arrived.push_back(taken(&mut done));
            self.arrived.fetch_add(1, Ordering::Release);
            return self.wake(&mut inbox);
        }
        let mut sends = locked(&self.sends);
        let index = done.id as u32;
        let Some(slot) = sends.slots.get_mut(index as usize) else { return false };
        let woken = match slot {
            Slot::Waiting(waker) => {
                let waker = waker.take();
                *slot = Slot::Done(taken(&mut done));
                waker
            }
            Slot::Abandoned => {
                sends.release(index);
                None
            }
            Slot::Free | Slot::Done(_) => return false,
        };
        self.completed.fetch_add(1, Ordering::Release);
        drop(sends);
        self.room.add_permits(1);
        let woke = woken.is_some();
        woken.into_iter().for_each(Waker::wake);
        woke
    }

    fn wake(&self, inbox: &mut Inbox) -> bool {
        let woke = inbox.wakers.len() != 0;
        inbox.wakers.all().for_each(Waker::wake);
        woke
    }

    /// The connection is over: who waits for a message is told.
    pub fn end(&self) {
        let mut inbox = locked(&self.inbox);
        inbox.over = true;
        self.arrived.fetch_add(1, Ordering::Release);
        self.wake(&mut inbox);
    }

    /// The program's ends of its queues, of which nobody has need any more.
    pub fn take_ends(&self) -> Box<dyn Any + Send> {
        let ends = (locked(&self.sends).queue.take(), locked(&self.inbox).queue.take());
        Box::new(ends)
    }
}

impl Sends {
    fn release(&mut self, index: u32) {
        self.slots[index as usize] = Slot::Free;
        self.free.push(index);
    }
}

/// Requests.
impl Pair {
    /// Posts a request to the queue, with a slot for its completion. `then` is done with the queue
    /// locked, so that requests leave in the order in which they were posted.
    ///
    /// # Errors
    /// What the queue says, with the request.
    #[inline]
    pub fn post(
        &self,
        mut request: WorkRequest,
        then: impl FnOnce(&SendQueue),
    ) -> Result<u32, doorbell_core::nic::Refused<WorkRequest>> {
        let mut sends = locked(&self.sends);
        let sends = &mut *sends;
        let index = sends.free.pop().unwrap_or_else(|| {
            sends.slots.push(Slot::Free);
            sends.slots.len() as u32 - 1
        });
        request.id = u64::from(index);
        request.signalled = true;
        // Futures borrow the queue pair, whose end this is until it is dropped.
        let queue = sends.queue.as_mut().expect("it is there as long as the queue pair is");
        if let Err(refused) = queue.post(request) {
            sends.free.push(index);
            return Err(refused);
        }
        sends.slots[index as usize] = Slot::Waiting(None);
        then(queue);
        Ok(index)
    }

    /// How many requests were completed.
    #[inline]
    pub fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }

    /// The completion of the request in a slot, which is free then.
    pub fn take(&self, index: u32) -> Option<Completion> {
        let mut sends = locked(&self.sends);
        let slot = &mut sends.slots[index as usize];
        match std::mem::replace(slot, Slot::Free) {
            Slot::Done(completion) => {
                sends.free.push(index);
                Some(completion)
            }
            other => {
                *slot = other;
                None
            }
        }
    }

    pub fn await_slot(&self, index: u32, waker: &Waker) {
        if let Slot::Waiting(waiting) = &mut locked(&self.sends).slots[index as usize] {
            waiting.get_or_insert_with(|| waker.clone()).clone_from(waker);
        }
    }

    /// Nobody awaits the request in a slot any more.
    pub fn abandon(&self, index: u32) {
        let mut sends = locked(&self.sends);
        match sends.slots[index as usize] {
            Slot::Waiting(_) => sends.slots[index as usize] = Slot::Abandoned,
            Slot::Done(_) => sends.release(index),
            Slot::Free | Slot::Abandoned => {}
        }
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
        self.arrived.load(Ordering::Acquire)
    }

    /// The next message, or that there will be none.
    pub fn next(&self) -> Option<Option<Completion>> {
        let mut inbox = locked(&self.inbox);
        match inbox.arrived.pop_front() {
            Some(completion) => Some(Some(completion)),
            None => inbox.over.then_some(None),
        }
    }

    pub fn await_message(&self, place: &mut Option<u64>, waker: &Waker) {
        locked(&self.inbox).wakers.enter(place, waker);
    }

    /// Awaits it no more.
    pub fn forgo_message(&self, place: &mut Option<u64>) {
        locked(&self.inbox).wakers.leave(place);
    }
}

//! Shared receive queues: the program's end.

use crate::nic::queues::errors::{PostError, Refused};
use crate::nic::requests::work_request::ReceiveRequest;
use crate::nic::ring::{Consumer, Producer, ring};

/// The program's end of a receive queue that several queue pairs draw from.
pub struct SharedReceiveQueue {
    /// The ring of receives, which has room for a few at first, and grows when there are more.
    pub(crate) ring: Producer<ReceiveRequest>,
    /// The most receives that the queue may hold.
    most: usize,
}

/// How many receives a shared queue has room for at first.
const FIRST_RECEIVES: usize = 2;

impl SharedReceiveQueue {
    pub(crate) fn new(depth: usize) -> (Self, Consumer<ReceiveRequest>) {
        let (ring, taken) = ring(depth.min(FIRST_RECEIVES));
        (Self { ring, most: depth }, taken)
    }

    /// How many more receives there is room for.
    #[inline]
    pub fn room(&self) -> usize {
        self.ring.room() + (self.most - self.ring.depth())
    }

    /// Posts a receive, for whichever queue pair's message comes first.
    ///
    /// # Errors
    /// When the queue is full. The receive comes back.
    #[inline(always)]
    pub fn post(&mut self, receive: ReceiveRequest) -> Result<(), Refused<ReceiveRequest>> {
        match self.ring.slot() {
            Some(slot) => slot.fill(receive),
            None => return self.post_beyond((receive, ())),
        }
        Ok(())
    }

    /// Posts a receive that finds no room, after making more room, or refuses it. The receive is
    /// passed within another value, so that the compiler need not keep it in memory before it is
    /// known to come here.
    #[cold]
    fn post_beyond(
        &mut self,
        (receive, ()): (ReceiveRequest, ()),
    ) -> Result<(), Refused<ReceiveRequest>> {
        self.ring.grow((2 * self.ring.depth()).min(self.most));
        match self.ring.slot() {
            Some(slot) => slot.fill(receive),
            None => {
                let why = PostError::SharedFull { depth: self.most };
                return Err(Refused { why, request: Box::new(receive) });
            }
        }
        Ok(())
    }
}

//! Receive queues: the program's end.

use std::sync::Arc;

use crate::nic::config::queue_pair_state::State;
use crate::nic::queues::doorbells::Doorbells;
use crate::nic::queues::errors::{PostError, Refused};
use crate::nic::queues::shared_with_program::SharedWithProgram;
use crate::nic::requests::work_request::ReceiveRequest;
use crate::nic::ring::{Consumer, EmptyRing, Producer, ring};
use crate::wire::Qpn;

/// The program's end of a receive queue.
pub struct ReceiveQueue {
    pub(crate) shared: SharedWithProgram,
    /// The ring of receives, which holds none if receives come from a shared receive queue.
    pub(crate) ring: Producer<ReceiveRequest>,
}

impl ReceiveQueue {
    pub(crate) fn new(shared: SharedWithProgram, depth: usize) -> (Self, Consumer<ReceiveRequest>) {
        let (ring, taken) = ring(depth);
        (Self { shared, ring }, taken)
    }

    /// Makes the end of a queue pair that has no receives of its own.
    pub(crate) fn without(shared: SharedWithProgram, nothing: &EmptyRing<ReceiveRequest>) -> Self {
        Self { shared, ring: nothing.producer() }
    }

    /// The number of the queue pair.
    pub fn qpn(&self) -> Qpn {
        self.shared.qpn
    }

    /// Whether the queue belongs to the NIC with these doorbells.
    pub(crate) fn rings(&self, doorbells: &Arc<Doorbells>) -> bool {
        Arc::ptr_eq(&self.shared.doorbells, doorbells)
    }

    /// How many more receives there is room for.
    #[inline]
    pub fn room(&self) -> usize {
        self.ring.room()
    }

    /// Posts a receive, for which no doorbell is needed: the NIC looks when a message comes.
    ///
    /// # Errors
    /// When the queue is full, or the queue pair is reset. The receive comes back.
    #[inline(always)]
    pub fn post(&mut self, receive: ReceiveRequest) -> Result<(), Refused<ReceiveRequest>> {
        if !self.shared.is_from(State::TAKING_RECEIVES) {
            return Err(self.refuse((receive, false)));
        }
        match self.ring.slot() {
            Some(slot) => slot.fill(receive),
            None => return Err(self.refuse((receive, true))),
        }
        // Whatever is posted to a broken queue pair is to be flushed. The state is looked at again,
        // since the queue pair may have broken meanwhile without the NIC having seen this receive.
        if self.shared.is_from(State::Error) {
            self.shared.doorbells.ring(self.shared.place);
        }
        Ok(())
    }

    /// Whether the queue pair is broken. Then a receive that is posted is flushed in a turn of the
    /// NIC, for which the doorbell was rung, but which somebody must take.
    #[inline]
    pub fn is_flushed(&self) -> bool {
        self.shared.is_from(State::Error)
    }

    #[cold]
    fn refuse(&self, (receive, _): (ReceiveRequest, bool)) -> Refused<ReceiveRequest> {
        let (qpn, state) = (self.shared.qpn, self.shared.state());
        let why = match (self.ring.depth(), state.takes_receives()) {
            (0, _) => PostError::Shared { qpn },
            (_, false) => PostError::State { qpn, state, what: "a receive" },
            (depth, true) => PostError::Full { qpn, depth },
        };
        Refused { why, request: Box::new(receive) }
    }
}

//! Send queues: the program's end.

use std::cell::Cell;
use std::sync::Arc;

use crate::nic::config::queue_pair_state::State;
use crate::nic::queues::doorbells::Doorbells;
use crate::nic::queues::errors::{PostError, Refused};
use crate::nic::queues::posted::Posted;
use crate::nic::queues::shared_with_program::SharedWithProgram;
use crate::nic::requests::memory::LONGEST_MESSAGE;
use crate::nic::requests::plain::Plain;
use crate::nic::requests::work_request::WorkRequest;
use crate::nic::ring::{Consumer, Producer, Slot, ring};
use crate::wire::{Psn, Qpn, Service};

/// The program's end of a send queue.
pub struct SendQueue {
    pub(crate) shared: SharedWithProgram,
    pub(crate) ring: Producer<Posted>,
}

impl SendQueue {
    pub(crate) fn new(shared: SharedWithProgram, depth: usize) -> (Self, Consumer<Posted>) {
        let (ring, taken) = ring(depth);
        (Self { shared, ring }, taken)
    }

    /// The number of the queue pair.
    pub fn qpn(&self) -> Qpn {
        self.shared.qpn
    }

    /// How many more requests there is room for.
    #[inline]
    pub fn room(&self) -> usize {
        self.ring.room()
    }

    /// Writes a request to the queue. The NIC learns of it when the [doorbell](Self::ring) is
    /// rung, of several requests at once if the program likes.
    ///
    /// # Errors
    /// When the queue is full, the queue pair not ready to send, or the message too long. The
    /// request comes back.
    #[inline(always)]
    pub fn post(&mut self, request: WorkRequest) -> Result<(), Refused<WorkRequest>> {
        let reliable = self.shared.service == Service::Rc;
        match request.plain() {
            None => self.put_other(request),
            Some(_) if !reliable => self.put_copied((request, None)),
            plain => {
                let len = request.data.len();
                self.put(request, Some(len), plain)
            }
        }
    }

    /// Writes a request to the queue that is not plain, or not of a reliable connection, if it is
    /// valid.
    #[inline(never)]
    fn put_other(&mut self, request: WorkRequest) -> Result<(), Refused<WorkRequest>> {
        let len = request.len(self.shared.service);
        self.put(request, len, None)
    }

    /// Writes a plain request of another service to the queue. The request is passed within another
    /// value, and so is a copy of its own in memory: otherwise the compiler would keep all plain
    /// requests in memory, most of which are built in their slot.
    #[cold]
    fn put_copied(
        &mut self,
        (request, _): (WorkRequest, Option<Plain>),
    ) -> Result<(), Refused<WorkRequest>> {
        self.put_other(request)
    }

    /// Writes a request of `len` bytes to the queue; without a length the request is not valid.
    #[inline(always)]
    fn put(
        &mut self,
        request: WorkRequest,
        len: Option<u64>,
        plain: Option<Plain>,
    ) -> Result<(), Refused<WorkRequest>> {
        let allowed = self.shared.is_from(State::TAKING_SENDS);
        let fits = len.filter(|&len| allowed && len <= u64::from(LONGEST_MESSAGE));
        match (self.ring.slot(), fits) {
            (Some(slot), Some(len)) => {
                let simple =
                    request.signalled && plain.is_some_and(|plain| !plain.needs_response());
                let (len, ticket) = (len as u32, Cell::new(0));
                let (beyond, placed) = (Cell::new(Psn::new(0)), Cell::new(false));
                slot.fill(Posted {
                    request,
                    len,
                    plain,
                    simple,
                    ticket,
                    psn_beyond: beyond,
                    written_locally: placed,
                    unkept: false,
                });
            }
            _ => return Err(self.refuse((request, len))),
        }
        Ok(())
    }

    /// Whether three quarters of the queue are in use.
    #[inline(always)]
    pub(crate) fn is_short_of_room(&mut self) -> bool {
        self.ring.slot_beside(self.ring.depth() / 4).is_none()
    }

    /// Returns a slot for a message that is sent before it is written to the queue, if the message
    /// could be posted.
    #[inline(always)]
    pub(crate) fn slot_of_copied(&mut self) -> Option<Slot<'_, Posted>> {
        if self.shared.is_from(State::TAKING_SENDS) { self.ring.slot() } else { None }
    }

    /// Refuses a request, and determines why. The request is passed within another value, so that
    /// the compiler need not keep it in memory before it is known to be refused.
    #[cold]
    fn refuse(&self, (request, _): (WorkRequest, Option<u64>)) -> Refused<WorkRequest> {
        let (qpn, state) = (self.shared.qpn, self.shared.state());
        let why = match request.len(self.shared.service) {
            _ if !state.takes_sends() => PostError::State { qpn, state, what: "a send" },
            None => PostError::Unfit { qpn, operation: request.operation.name() },
            Some(len) if len > u64::from(LONGEST_MESSAGE) => PostError::TooLong { len },
            Some(_) => PostError::Full { qpn, depth: self.ring.depth() },
        };
        Refused { why, request: Box::new(request) }
    }

    /// Whether the queue belongs to the NIC with these doorbells.
    #[inline]
    pub(crate) fn rings(&self, doorbells: &Arc<Doorbells>) -> bool {
        Arc::ptr_eq(&self.shared.doorbells, doorbells)
    }

    /// Tells the NIC that requests were posted. They are sent in the NIC's next turn.
    #[inline]
    pub fn ring(&self) {
        self.shared.doorbells.ring(self.shared.place);
    }
}

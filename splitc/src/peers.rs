//! What a process has for each process of its world, itself included.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use doorbell_am as am;
use doorbell_verbs::{Connection, Mapped, ReceiveQueue, Region, RemoteMemory, SendQueue};

use crate::config::Carrier;
use crate::messages::{Batch, Outbox};

/// What a process has for a process of its world.
pub(crate) struct Peer {
    pub rank: usize,
    pub carrier: Cell<Carrier>,
    /// The heap, if loads and stores reach it.
    pub memory: Option<Region>,
    /// What there is for a process that is not this one.
    pub far: Option<Far>,
    /// How many bytes were stored there that it was not told of.
    pub untold: Cell<u64>,
    /// Whether it is among those for which something waits to be sent.
    pub dirty: Cell<bool>,
}

/// What a process has for another one.
pub(crate) struct Far {
    pub messages: am::Peer,
    pub outbox: RefCell<Outbox>,
    /// Messages of operations that were not answered yet, in the order in which they were sent.
    pub pending: RefCell<VecDeque<Batch>>,
    /// How many messages of operations were filled and sent, and how many answered.
    pub sent: Cell<u64>,
    pub answered: Cell<u64>,
    /// Whether stores went there by messages that nothing has confirmed.
    pub unconfirmed: Cell<bool>,
    /// The queue of one-sided requests.
    pub requests: RefCell<SendQueue>,
    pub _receives: ReceiveQueue,
    pub connection: Connection,
    /// The heap, by its key.
    pub heap: RemoteMemory,
    /// Keeps the heap mapped for the NIC, too.
    pub _mapped: Option<Mapped>,
}

/// How an operation goes to a process.
pub(crate) enum Route<'p> {
    /// By loads and stores.
    Memory(&'p Region),
    /// By RDMA.
    OneSided(&'p Far),
    /// By messages.
    Messages(&'p Far),
}

/// What kind of operation is to be carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// A few bytes that others may join.
    Split,
    /// Somebody waits for this operation alone.
    Awaited,
}

/// From how many bytes on one-sided operations serve better than messages.
pub(crate) const BULK: usize = 512;

impl Peer {
    /// How an operation on so many bytes goes.
    #[inline]
    pub fn route(&self, shape: Shape, len: usize) -> Route<'_> {
        match (self.carrier.get(), &self.memory, &self.far) {
            (Carrier::Mapped, Some(memory), _) | (_, Some(memory), None) => Route::Memory(memory),
            (carrier, _, Some(far)) => match carrier {
                Carrier::OneSided => Route::OneSided(far),
                Carrier::Messages => Route::Messages(far),
                _ if shape == Shape::Awaited || len >= BULK => Route::OneSided(far),
                _ => Route::Messages(far),
            },
            (_, None, None) => unreachable!("a process reaches its own heap by loads and stores"),
        }
    }
}

//! The state that a process keeps for each process of its world, itself included.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use doorbell_am as am;
use doorbell_verbs::{Connection, Mapped, ReceiveQueue, Region, RemoteMemory, SendQueue};

use crate::config::Carrier;
use crate::messages::{Batch, Outbox};

/// The state that a process keeps for one process of its world, which may be itself.
pub(crate) struct Peer {
    pub rank: usize,
    pub carrier: Cell<Carrier>,
    /// The peer's heap, if loads and stores reach it: the process's own heap, or a mapped one.
    pub memory: Option<Region>,
    /// The connections to the peer; `None` if the peer is this process itself.
    pub far: Option<Far>,
    /// How many bytes were stored at the peer, without messages, that the peer's counter does not
    /// include yet.
    pub untold: Cell<u64>,
    /// Whether the peer is in the list of peers for which something waits to be sent.
    pub dirty: Cell<bool>,
}

/// The connections of a process to another process, and what is under way on them.
pub(crate) struct Far {
    pub messages: am::Peer,
    pub outbox: RefCell<Outbox>,
    /// The messages of operations that are not answered yet, in the order in which they were sent.
    pub pending: RefCell<VecDeque<Batch>>,
    /// How many messages of operations were sent and, in `answered`, how many were answered.
    pub sent: Cell<u64>,
    pub answered: Cell<u64>,
    /// Whether stores were sent by messages whose arrival is not confirmed yet.
    pub unconfirmed: Cell<bool>,
    /// The send queue for one-sided requests.
    pub requests: RefCell<SendQueue>,
    pub _receives: ReceiveQueue,
    pub connection: Connection,
    /// The place of the NIC that reaches the peer among the NICs of this process.
    pub port: usize,
    /// The address of the peer's NIC.
    pub address: String,
    /// The peer's heap as remote memory, with its key, for one-sided requests.
    pub heap: RemoteMemory,
    /// The mapping of the peer's heap; the NIC uses it, too, for as long as it is held here.
    pub _mapped: Option<Mapped>,
}

/// The way by which an operation reaches a peer.
pub(crate) enum Route<'p> {
    /// Loads and stores on the peer's heap.
    Memory(&'p Region),
    /// One-sided requests to the peer, by RDMA.
    OneSided(&'p Far),
    /// Active Messages to the peer.
    Messages(&'p Far),
}

/// The kind of an operation, by which [`Carrier::Mixed`] chooses between messages and RDMA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// A split-phase operation, which can share a message with others.
    Split,
    /// An operation that is awaited by itself.
    Awaited,
}

/// The number of bytes from which on one-sided operations serve better than messages.
pub(crate) const BULK: usize = 512;

impl Peer {
    /// Whether operations, stores or a count of stores wait here to be sent to the peer.
    #[inline]
    pub fn holds_back(&self) -> bool {
        let waits = |far: &Far| !far.outbox.borrow().is_empty();
        self.untold.get() > 0 || self.far.as_ref().is_some_and(waits)
    }

    /// The way by which an operation on `len` bytes reaches the peer, by the peer's carrier.
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

//! Identifiers of a NIC's objects: queues, addresses, mappings, peers and timers.

/// Identifies an address that a NIC keeps for datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AddressId {
    /// The place of the address in the NIC's table.
    pub(crate) place: u32,
    /// How often the place had been used when the address was kept: an address that is kept there
    /// later has another identifier.
    pub(crate) uses: u32,
    /// The NIC that keeps the address, so that the identifier means nothing to another NIC.
    pub(crate) nic: u32,
}

/// Identifies a completion queue of a NIC.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CompletionQueueId {
    /// The place of the completion queue in the NIC's table.
    pub(crate) place: u32,
    /// The NIC that the queue belongs to, so that the identifier means nothing to another NIC.
    pub(crate) nic: u32,
}

/// Identifies a shared receive queue of a NIC.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SharedReceiveQueueId {
    /// The place of the shared receive queue in the NIC's table.
    pub(crate) place: u32,
    /// The NIC that the queue belongs to, so that the identifier means nothing to another NIC.
    pub(crate) nic: u32,
}

/// Identifies memory of a peer's that a NIC was told is [mapped](crate::nic::Nic::map) here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MappingId(pub(crate) u64);

/// Identifies a peer in the keep-alive's [table of peers](crate::nic::keep_alive::peers).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PeerId(pub(crate) u32);

impl PeerId {
    /// The number of the peer's timer. Queue pairs have the even numbers and peers have the odd
    /// ones, so that both tables may grow.
    pub fn timer(self) -> u32 {
        2 * self.0 + 1
    }

    /// Returns the peer whose timer has this number, or the place of the queue pair whose timer it
    /// is.
    pub fn of_timer(timer: u32) -> Result<Self, u32> {
        if timer % 2 == 1 { Ok(Self(timer / 2)) } else { Err(timer / 2) }
    }

    /// The identifier that a queue pair has while no peer of its is watched: before it is
    /// connected, or when its device is lossless and itself reports that a peer has gone.
    pub const NONE: Self = Self(u32::MAX);
}

/// The number of the timer of the queue pair at a place. Peers have the odd numbers.
#[inline]
pub(crate) const fn timer_of(place: u32) -> u32 {
    2 * place
}

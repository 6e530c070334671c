//! Identifiers of a NIC's objects: queues, addresses, mappings, peers and timers.

/// Which of the addresses that a NIC keeps for datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AddressId {
    pub(crate) place: u32,
    /// How often the place was used: an address that was dropped is not the next one there.
    pub(crate) uses: u32,
    /// Which NIC's, so that another's is none.
    pub(crate) nic: u32,
}

/// Which completion queue of a NIC.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CompletionQueueId {
    pub(crate) place: u32,
    /// Which NIC's, so that another's is none.
    pub(crate) nic: u32,
}

/// Which shared receive queue of a NIC.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SharedReceiveQueueId {
    pub(crate) place: u32,
    /// Which NIC's, so that another's is none.
    pub(crate) nic: u32,
}

/// Memory that a NIC was [told](crate::nic::Nic::map) is mapped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MappingId(pub(crate) u64);

/// Which peer, in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PeerId(pub(crate) u32);

impl PeerId {
    /// The number of the peer's timer. Queue pairs have the even numbers, and peers the odd ones,
    /// so that both tables may grow.
    pub fn timer(self) -> u32 {
        2 * self.0 + 1
    }

    /// The peer of a timer, or the place of the queue pair whose timer it is.
    pub fn of_timer(timer: u32) -> Result<Self, u32> {
        if timer % 2 == 1 { Ok(Self(timer / 2)) } else { Err(timer / 2) }
    }

    /// That of a queue pair without a peer, or of one whose device sees to it.
    pub const NONE: Self = Self(u32::MAX);
}

/// The number of the timer of the queue pair at a place. Peers have the odd numbers.
#[inline]
pub(crate) const fn timer_of(place: u32) -> u32 {
    2 * place
}

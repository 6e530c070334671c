//! What a NIC has seen, above all what it dropped, repeated and retried, and why.

/// Counts since the NIC was made. Every packet that arrives is counted once among the received,
/// and once more where it was not simply taken.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct Counters {
    /// Packets taken from the device, malformed ones not among them.
    pub received: u64,
    /// Packets given to the device.
    pub sent: u64,
    /// Requests completed with success.
    pub completed: u64,
    /// Requests completed with a failure, flushed ones among them.
    pub failed: u64,
    /// Of those with success, writes into memory that is [mapped](super::Nic::map): no packet was
    /// sent.
    pub written_here: u64,

    /// Dropped: not a packet, or its ICRC did not hold.
    pub malformed: u64,
    /// Dropped: for no queue pair of this NIC.
    pub no_such_queue_pair: u64,
    /// Dropped: from or to other addresses than the queue pair's.
    pub strangers: u64,
    /// Dropped: of another partition.
    pub other_partition: u64,
    /// Dropped: of a service, or an operation, that the queue pair does not have.
    pub wrong_service: u64,
    /// Dropped: the queue pair was not in a state to take it.
    pub wrong_state: u64,
    /// Dropped: acknowledgements of what was acknowledged already, or never sent.
    pub stray_answers: u64,

    /// Requests that had been taken before, and were acknowledged again.
    pub duplicates: u64,
    /// Requests from beyond a gap: dropped, and the first of each gap refused.
    pub out_of_sequence: u64,
    /// Of unreliable connections and datagrams, dropped: no receive was posted, or not allowed.
    pub passed_over: u64,
    /// Datagrams dropped: they named another key than the queue pair's.
    pub wrong_qkey: u64,
    /// Management datagrams received.
    pub management: u64,
    /// The same, dropped because nobody took those before.
    pub management_dropped: u64,
    /// Refusals sent because a packet was missing.
    pub sequence_naks_sent: u64,
    /// Refusals sent because no receive was posted.
    pub rnr_naks_sent: u64,
    /// Refusals sent because a request was not one, or was not allowed.
    pub fatal_naks_sent: u64,
    /// Acknowledgements sent.
    pub acks_sent: u64,
    /// Packets of what peers read, and results of their atomic operations, sent.
    pub answers_sent: u64,
    /// Times that a silent peer was asked whether it is there.
    pub questions_sent: u64,
    /// Times that the system of a peer's host said that the port of a packet under way is closed.
    pub closed_ports: u64,
    /// Notices sent: a link was told of packets that no queue pair took.
    pub notices_sent: u64,

    /// Acknowledgements received.
    pub acks_received: u64,
    /// Packets of what was read, and results of atomic operations, received.
    pub answers_received: u64,
    /// Responses found missing, because a later one came.
    pub answers_missed: u64,
    /// Refusals received because a packet was missing.
    pub sequence_naks_received: u64,
    /// Refusals received because no receive was posted.
    pub rnr_naks_received: u64,
    /// Refusals received for good.
    pub fatal_naks_received: u64,
    /// Notices received of packets that were under way.
    pub notices_received: u64,
    /// Times that nothing was heard for so long that the oldest packet was sent again.
    pub timeouts: u64,
    /// Packets sent again.
    pub retransmitted: u64,
}

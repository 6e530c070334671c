//! Counters of what a NIC has seen: above all what it dropped, repeated and retried, and why.

crate::counted! {
    /// Counts since the NIC was made. Every packet that arrives is counted once as received, and
    /// once more by another counter unless it was simply accepted.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    #[cfg_attr(feature = "serde", serde(default))]
    pub struct Counters {
        /// Packets taken from the device, except malformed ones.
        pub received: u64,
        /// Packets given to the device.
        pub sent: u64,
        /// Requests that completed with success.
        pub completed: u64,
        /// Requests that completed with a failure, including flushed ones.
        pub failed: u64,
        /// Writes into memory that is [mapped](crate::nic::Nic::map) here: they completed with
        /// success, and no packet was sent for them.
        pub written_here: u64,

        /// Frames dropped because they were no packet, or their ICRC did not hold.
        pub malformed: u64,
        /// Packets dropped because this NIC has no queue pair of that number.
        pub no_such_queue_pair: u64,
        /// Packets dropped because they were not exchanged between the two addresses of the queue
        /// pair's connection.
        pub strangers: u64,
        /// Packets dropped because they were not what the peer of an encrypted connection sent:
        /// not encrypted, forged, changed on their way, or of another connection.
        pub not_authentic: u64,
        /// Encrypted packets dropped because they had come before, or were too old to tell.
        pub came_before: u64,
        /// Packets dropped because they were of another partition.
        pub other_partition: u64,
        /// Packets dropped because the queue pair does not have their service or their operation.
        pub wrong_service: u64,
        /// Packets dropped because the queue pair was in a state in which it does not accept them.
        pub wrong_state: u64,
        /// Acknowledgements and responses dropped because they concerned packets that were
        /// acknowledged already, or never sent.
        pub stray_answers: u64,

        /// Duplicate requests, which had been executed before and were acknowledged again.
        pub duplicates: u64,
        /// Requests from beyond a gap in the sequence numbers: all were dropped, and the first of
        /// each gap was refused.
        pub out_of_sequence: u64,
        /// Messages on unreliable connections, and datagrams, dropped because no receive was posted
        /// or they were not allowed.
        pub passed_over: u64,
        /// Datagrams dropped because they named another Q_Key than the queue pair's.
        pub wrong_qkey: u64,
        /// Management datagrams that were received.
        pub management: u64,
        /// Management datagrams dropped because too many waited for the connection manager already.
        pub management_dropped: u64,
        /// NAKs sent because a packet was missing.
        pub sequence_naks_sent: u64,
        /// RNR NAKs sent because no receive was posted.
        pub rnr_naks_sent: u64,
        /// NAKs sent because a request was invalid or not allowed.
        pub fatal_naks_sent: u64,
        /// Acknowledgements that were sent.
        pub acks_sent: u64,
        /// Packets that a switch had marked as Congestion Experienced, acknowledgements apart.
        pub marked: u64,
        /// Congestion notifications (CNPs) that were sent to standard peers, whose packets were
        /// marked.
        pub notifications_sent: u64,
        /// Congestion notifications that standard peers have sent.
        pub notifications_received: u64,
        /// Response packets that were sent, with data that peers read, or results of their atomic
        /// operations.
        pub answers_sent: u64,
        /// Keep-alive packets sent, which ask a silent peer for a sign of life.
        pub questions_sent: u64,
        /// Times that the system of a peer's host reported that the port of a packet under way is
        /// closed.
        pub closed_ports: u64,
        /// Delivery failure notices sent, each of which told a link of packets that no queue pair
        /// took.
        pub notices_sent: u64,

        /// Acknowledgements that were received.
        pub acks_received: u64,
        /// Response packets that were received, with data that was read, or results of atomic
        /// operations.
        pub answers_received: u64,
        /// Responses found missing because a later one came.
        pub answers_missed: u64,
        /// NAKs received because a packet was missing at the peer.
        pub sequence_naks_received: u64,
        /// RNR NAKs received because the peer had no receive posted.
        pub rnr_naks_received: u64,
        /// NAKs received that break the connection.
        pub fatal_naks_received: u64,
        /// Delivery failure notices received of packets that were under way.
        pub notices_received: u64,
        /// Retransmission time-outs, after each of which the oldest unacknowledged packet was sent
        /// again.
        pub timeouts: u64,
        /// Packets that were sent again.
        pub retransmitted: u64,
        /// Times that the oldest packet was sent again before its time-out, to ask what the peer has.
        pub tail_probes: u64,
        /// Requests from beyond a gap that were kept until the gap was filled.
        pub kept_beyond_gaps: u64,
        /// Requests from beyond a gap that were dropped, since they were too far beyond or there was
        /// no memory for them.
        pub dropped_beyond_gaps: u64,
    }
}

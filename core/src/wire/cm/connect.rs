//! The messages that establish a connection: REQ, the reply REP, the confirmation RTU, and MRA,
//! which asks for more time.

use super::ip::IpCm;
use super::layout::layout;
use super::numbers::*;
use super::private_data::PrivateData;
use crate::wire::addresses::Gid;
use crate::wire::malformed::Malformed;
use crate::wire::numbers::*;

layout! {
    /// The path between two ports, as a REQ proposes it.
    pub struct Path {
        /// The requester's local identifier: [`Lid::PERMISSIVE`] with RoCE.
        local_lid: Lid;
        /// The responder's local identifier.
        remote_lid: Lid;
        /// The GID of the requester's port.
        local_gid: Gid;
        /// The GID of the responder's port.
        remote_gid: Gid;
        /// The flow label of the connection's packets, from which their UDP source port is derived.
        flow_label: FlowLabel, reserved 6;
        /// The packet rate of the path.
        packet_rate: PacketRate;
        /// The traffic class of the packets.
        traffic_class: TrafficClass;
        /// The number of routers that the packets may cross.
        hop_limit: HopLimit;
        /// The service level of the path.
        service_level: ServiceLevel;
        /// Whether both ports belong to one subnet.
        subnet_local: bool, reserved 3;
        /// The local ACK time-out: how long the requester waits for an acknowledgement.
        ack_timeout: AckTimeout, reserved 3;
    }
}

layout! {
    /// REQ, the request for a connection. By default, all fields are zero.
    pub struct Req<'a> {
        /// The requester's communication ID.
        local: CommId, reserved 32;
        /// The service that is requested.
        service: ServiceId;
        /// The GUID of the requester's adapter.
        ca_guid: CaGuid, reserved 32;
        /// The Q_Key of the requester's queue pair.
        qkey: Qkey;
        /// The requester's queue pair.
        qpn: Qpn;
        /// The number of reads and atomic operations that the requester serves at a time.
        responder_resources: ResponderResources;
        /// The requester's end-to-end context.
        eecn: Eecn;
        /// The number of reads and atomic operations that the requester will have under way.
        initiator_depth: InitiatorDepth;
        /// The responder's end-to-end context.
        remote_eecn: Eecn;
        /// The remote CM response time-out: how long the responder's connection manager may take to
        /// answer.
        remote_timeout: CmTimeout;
        /// The transport service type: the kind of connection.
        transport: TransportService;
        /// Whether the requester supports end-to-end flow control.
        flow_control: bool;
        /// The starting PSN, which is the sequence number of the first packet that the requester
        /// expects.
        psn: Psn;
        /// The local CM response time-out: how long the requester's connection manager may take to
        /// answer.
        local_timeout: CmTimeout;
        /// The number of times that the responder is to retry a request that is not acknowledged.
        retry_count: RetryCount;
        /// The key of the connection's partition.
        pkey: Pkey;
        /// The code of the path MTU: the largest payload of a packet.
        path_mtu: PathMtuCode;
        /// Whether a reliable datagram channel exists already.
        rdc_exists: bool;
        /// The number of times that the responder is to retry a request for which no receive was
        /// posted.
        rnr_retry_count: RnrRetryCount;
        /// The number of times that either connection manager repeats a message.
        max_cm_retries: CmRetries;
        /// Whether the requester's queue pair uses a shared receive queue.
        srq: bool;
        /// The extended transport type, which counts if `transport` is
        /// [`TransportService::EXTENDED`].
        extended_transport: ExtendedTransport;
        /// The primary path of the connection.
        primary: Path;
        /// The alternate path, used if the primary path fails; all zeros if there is none.
        alternate: Path;
        /// The private data of the requester's program. With `rdma_cm`, an [`IpCm`] precedes it.
        private: PrivateData<'a, { Req::PRIVATE_DATA }>;
    }
}

impl<'a> Req<'a> {
    /// The bytes of private data that a REQ has room for.
    pub const PRIVATE_DATA: usize = 92;

    /// Parses the IP addressing that `rdma_cm` puts in front of the private data. Returns the
    /// addressing and the rest of the private data.
    pub fn ip_cm(&self) -> Result<(IpCm, &'a [u8]), Malformed> {
        IpCm::parse(self.private.as_bytes())
    }
}

layout! {
    /// REP, the reply that accepts a connection.
    pub struct Rep<'a> {
        /// The responder's communication ID.
        local: CommId;
        /// The requester's communication ID.
        remote: CommId;
        /// The Q_Key of the responder's queue pair.
        qkey: Qkey;
        /// The responder's queue pair.
        qpn: Qpn, reserved 8;
        /// The responder's end-to-end context.
        eecn: Eecn, reserved 8;
        /// The starting PSN, which is the sequence number of the first packet that the responder
        /// expects.
        psn: Psn, reserved 8;
        /// The number of reads and atomic operations that the responder serves at a time.
        responder_resources: ResponderResources;
        /// The number of reads and atomic operations that the responder will have under way.
        initiator_depth: InitiatorDepth;
        /// The target ACK delay: how long the responder's adapter may take to acknowledge.
        ack_delay: AckDelay;
        /// The failover status, which says whether the alternate path is accepted.
        failover: Failover;
        /// Whether the responder supports end-to-end flow control.
        flow_control: bool;
        /// The number of times that the requester is to retry a request for which no receive was
        /// posted.
        rnr_retry_count: RnrRetryCount;
        /// Whether the responder's queue pair uses a shared receive queue.
        srq: bool, reserved 4;
        /// The GUID of the responder's adapter.
        ca_guid: CaGuid;
        /// The private data of the responder's program.
        private: PrivateData<'a, { Rep::PRIVATE_DATA }>;
    }
}

impl Rep<'_> {
    /// The bytes of private data that a REP has room for.
    pub const PRIVATE_DATA: usize = 196;
}

layout! {
    /// RTU, ready to use: the requester has the REP, and the connection is established on both
    /// sides.
    pub struct Rtu<'a> {
        /// The sender's communication ID.
        local: CommId;
        /// The receiver's communication ID.
        remote: CommId;
        /// The private data of the requester's program.
        private: PrivateData<'a, { Rtu::PRIVATE_DATA }>;
    }
}

impl Rtu<'_> {
    /// The bytes of private data that an RTU has room for.
    pub const PRIVATE_DATA: usize = 224;
}

layout! {
    /// MRA, message receipt acknowledged: a message has come, and its answer will take longer than
    /// was agreed.
    pub struct Mra<'a> {
        /// The sender's communication ID.
        local: CommId;
        /// The receiver's communication ID.
        remote: CommId;
        /// The message that was received.
        received: Answered, reserved 6;
        /// The service time-out, which says how long the answer may take.
        service_timeout: CmTimeout, reserved 3;
        /// The private data of the sender's program.
        private: PrivateData<'a, { Mra::PRIVATE_DATA }>;
    }
}

impl Mra<'_> {
    /// The bytes of private data that an MRA has room for.
    pub const PRIVATE_DATA: usize = 222;
}

//! Making a connection: REQ, answered by REP, answered by RTU; MRA where an answer takes time.

use super::ip::IpCm;
use super::layout::layout;
use super::numbers::*;
use super::private_data::PrivateData;
use crate::wire::malformed::Malformed;
use crate::wire::numbers::*;

layout! {
    /// The way between two ports, as a connection request proposes it.
    pub struct Path {
        /// The requester's local identifier: [`Lid::PERMISSIVE`] with RoCE.
        local_lid: Lid;
        /// The responder's local identifier.
        remote_lid: Lid;
        /// The requester's port.
        local_gid: Gid;
        /// The responder's port.
        remote_gid: Gid;
        /// The flow label of the connection's packets; the UDP source port follows from it.
        flow_label: FlowLabel, reserved 6;
        /// The rate that the path bears.
        packet_rate: PacketRate;
        /// The traffic class of the packets.
        traffic_class: TrafficClass;
        /// How many routers they may cross.
        hop_limit: HopLimit;
        /// The service level.
        service_level: ServiceLevel;
        /// Whether both ports are of one subnet.
        subnet_local: bool, reserved 3;
        /// How long the requester waits for an acknowledgement.
        ack_timeout: AckTimeout, reserved 3;
    }
}

layout! {
    /// The request for a connection. All zeros by default.
    pub struct Req<'a> {
        /// The requester's name for the connection.
        local: CommId, reserved 32;
        /// The service asked for.
        service: ServiceId;
        /// The requester's adapter.
        ca_guid: CaGuid, reserved 32;
        /// The requester's datagram key.
        qkey: Qkey;
        /// The requester's queue pair.
        qpn: Qpn;
        /// How many reads and atomic operations the requester takes at a time.
        responder_resources: ResponderResources;
        /// The requester's end-to-end context.
        eecn: Eecn;
        /// How many reads and atomic operations the requester will have under way.
        initiator_depth: InitiatorDepth;
        /// The responder's end-to-end context.
        remote_eecn: Eecn;
        /// How long the responder's connection manager may take to answer.
        remote_timeout: CmTimeout;
        /// The kind of connection.
        transport: TransportService;
        /// Whether the requester's side counts end-to-end credits.
        flow_control: bool;
        /// The sequence number that the requester expects: the responder's first packet bears it.
        psn: Psn;
        /// How long the requester's connection manager may take to answer.
        local_timeout: CmTimeout;
        /// How often the responder is to send again what is not acknowledged.
        retry_count: RetryCount;
        /// The partition.
        pkey: Pkey;
        /// The largest payload of a packet.
        path_mtu: PathMtuCode;
        /// Whether a reliable datagram channel exists already.
        rdc_exists: bool;
        /// How often the responder is to send again what found no receive posted.
        rnr_retry_count: RnrRetryCount;
        /// How often either side sends a message of the connection manager's again.
        max_cm_retries: CmRetries;
        /// Whether the requester's queue pair uses a shared receive queue.
        srq: bool;
        /// The kind of connection, where `transport` is [`TransportService::EXTENDED`].
        extended_transport: ExtendedTransport;
        /// The way to take.
        primary: Path;
        /// Another way, should that fail; all zeros where there is none.
        alternate: Path;
        /// What the requester's program has to say, behind an [`IpCm`] where `rdma_cm` is spoken.
        private: PrivateData<'a, { Req::PRIVATE_DATA }>;
    }
}

impl<'a> Req<'a> {
    /// How many bytes of private data there is room for.
    pub const PRIVATE_DATA: usize = 92;

    /// The IP addressing in front of the private data, and the rest of it, as `rdma_cm` sends it.
    pub fn ip_cm(&self) -> Result<(IpCm, &'a [u8]), Malformed> {
        IpCm::parse(self.private.as_bytes())
    }
}

layout! {
    /// The answer that takes a connection up.
    pub struct Rep<'a> {
        /// The responder's name for the connection.
        local: CommId;
        /// The requester's name for it.
        remote: CommId;
        /// The responder's datagram key.
        qkey: Qkey;
        /// The responder's queue pair.
        qpn: Qpn, reserved 8;
        /// The responder's end-to-end context.
        eecn: Eecn, reserved 8;
        /// The sequence number that the responder expects: the requester's first packet bears it.
        psn: Psn, reserved 8;
        /// How many reads and atomic operations the responder takes at a time.
        responder_resources: ResponderResources;
        /// How many reads and atomic operations the responder will have under way.
        initiator_depth: InitiatorDepth;
        /// How long the responder's adapter may take to acknowledge.
        ack_delay: AckDelay;
        /// What becomes of the alternate path.
        failover: Failover;
        /// Whether the responder's side counts end-to-end credits.
        flow_control: bool;
        /// How often the requester is to send again what found no receive posted.
        rnr_retry_count: RnrRetryCount;
        /// Whether the responder's queue pair uses a shared receive queue.
        srq: bool, reserved 4;
        /// The responder's adapter.
        ca_guid: CaGuid;
        /// What the responder's program has to say.
        private: PrivateData<'a, { Rep::PRIVATE_DATA }>;
    }
}

impl Rep<'_> {
    /// How many bytes of private data there is room for.
    pub const PRIVATE_DATA: usize = 196;
}

layout! {
    /// Ready to use: the requester has the reply, and the connection stands at both ends.
    pub struct Rtu<'a> {
        /// The sender's name for the connection.
        local: CommId;
        /// The receiver's name for it.
        remote: CommId;
        /// What the requester's program has to say.
        private: PrivateData<'a, { Rtu::PRIVATE_DATA }>;
    }
}

impl Rtu<'_> {
    /// How many bytes of private data there is room for.
    pub const PRIVATE_DATA: usize = 224;
}

layout! {
    /// A message is received and the answer to it will take longer than was allowed.
    pub struct Mra<'a> {
        /// The sender's name for the connection.
        local: CommId;
        /// The receiver's name for it.
        remote: CommId;
        /// The message that was received.
        received: Answered, reserved 6;
        /// How long the answer may take.
        service_timeout: CmTimeout, reserved 3;
        /// What the sender's program has to say.
        private: PrivateData<'a, { Mra::PRIVATE_DATA }>;
    }
}

impl Mra<'_> {
    /// How many bytes of private data there is room for.
    pub const PRIVATE_DATA: usize = 222;
}

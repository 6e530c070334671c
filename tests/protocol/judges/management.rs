//! The connection manager's messages, and what is to be read in each.

use doorbell_core::encap::Version;
use doorbell_core::wire::cm::*;
use doorbell_core::wire::*;

use crate::judges::frames::*;
use crate::judges::reading::{Reading, Value, bytes, number};

const LOCAL: CommId = CommId(0x67CA_876E);
const REMOTE: CommId = CommId(0x353B_121F);
const PORT: CmPort = CmPort(7174);
const GUID: CaGuid = CaGuid(0x5054_00FF_FE77_0002);
const SAID: &[u8] = b"what the application says";
const INFO: &[u8] = b"what explains it";

/// A datagram with every kind of message, as this encapsulation would carry it.
pub fn datagrams(version: Version) -> Vec<([u8; Mad::LEN], Vec<Reading>)> {
    let ipv4 = IpPair::V4 { source: SOURCE_IPV4, destination: DESTINATION_IPV4 };
    let ipv6 = IpPair::V6 { source: SOURCE_IPV6, destination: DESTINATION_IPV6 };
    let mut messages = match version {
        Version::V1 => vec![request(ipv4, version), request(ipv6, version)],
        Version::V2Ipv4 => vec![request(ipv4, version)],
        Version::V2Ipv6 => vec![request(ipv6, version)],
    };
    messages.extend([mra(), rej(), rep(), rtu(), dreq(), drep(), sidr_req(), sidr_rep()]);
    messages.into_iter().zip(1..).map(|(message, number)| datagram(message, number)).collect()
}

/// A message's attribute identifier, itself, and what is to be read in it.
type Described = (u16, Message<'static>, Vec<Reading>);

fn datagram(
    (attribute, message, told): Described,
    transaction: u64,
) -> ([u8; Mad::LEN], Vec<Reading>) {
    let transaction = TransactionId(transaction << 40 | 0x6E87_CA67);
    let mut datagram = [0xAA; Mad::LEN];
    Mad { transaction, message }.emit(&mut datagram);
    let mut readings = vec![
        number("infiniband.mad.baseversion", 1_u8),
        number("infiniband.mad.mgmtclass", 7_u8),
        number("infiniband.mad.classversion", 2_u8),
        number("infiniband.mad.method", 3_u8),
        number("infiniband.mad.status", 0_u8),
        number("infiniband.mad.classspecific", 0_u8),
        number("infiniband.mad.transactionid", transaction.0),
        number("infiniband.mad.attributeid", attribute),
        number("infiniband.mad.attributemodifier", 0_u8),
        bytes("infiniband.mad.data", &datagram[24..]),
    ];
    readings.extend(told);
    (datagram, readings)
}

/// What the application says, with the zeros up to the end of its room.
fn said(field: &'static str, room: usize) -> Reading {
    let mut said = SAID.to_vec();
    said.resize(room, 0);
    bytes(field, said)
}

fn request(addresses: IpPair, version: Version) -> Described {
    let ip_cm = IpCm { source_port: CmPort(53_079), addresses };
    let private: [u8; Req::PRIVATE_DATA] = ip_cm.before(SAID).expect("it fits");
    // A message borrows what it carries; these few bytes may stay for as long as the test runs.
    let private: &'static [u8; Req::PRIVATE_DATA] = Box::leak(Box::new(private));
    let (local_gid, remote_gid): (Gid, Gid) = match addresses {
        IpPair::V4 { source, destination } => (source.into(), destination.into()),
        IpPair::V6 { source, destination } => (source.into(), destination.into()),
    };
    let primary = Path {
        local_lid: Lid::PERMISSIVE,
        remote_lid: Lid::PERMISSIVE,
        local_gid,
        remote_gid,
        flow_label: FlowLabel::new(0x0_0937),
        packet_rate: PacketRate::new(19),
        traffic_class: TrafficClass(0x6A),
        hop_limit: HopLimit(64),
        service_level: ServiceLevel::new(3),
        subnet_local: true,
        ack_timeout: AckTimeout::new(17),
    };
    let request = Req {
        local: LOCAL,
        service: ServiceId::from_tcp_port(PORT),
        ca_guid: GUID,
        qkey: Qkey(0x1234_5678),
        qpn: Qpn::new(0x15),
        responder_resources: ResponderResources(5),
        initiator_depth: InitiatorDepth(6),
        remote_timeout: CmTimeout::new(20),
        transport: TransportService::UNRELIABLE,
        flow_control: true,
        psn: Psn::new(0xEB_5F9C),
        local_timeout: CmTimeout::new(21),
        retry_count: RetryCount::new(6),
        pkey: Pkey::DEFAULT,
        path_mtu: PathMtu::Mtu1024.into(),
        rnr_retry_count: RnrRetryCount::INFINITE,
        max_cm_retries: CmRetries::new(15),
        srq: true,
        primary,
        private: PrivateData::from(private),
        ..Req::default()
    };
    let mut readings = vec![
        number("infiniband.cm.req", request.local.0),
        bytes("infiniband.cm.req.serviceid.prefix", [0, 0, 0, 0, 1]),
        number("infiniband.cm.req.serviceid.protocol", IpProtocol::TCP.0),
        number("infiniband.cm.req.serviceid.dport", PORT.0),
        number("infiniband.cm.req.localcaguid", request.ca_guid.0),
        number("infiniband.cm.req.localqkey", request.qkey.0),
        number("infiniband.cm.req.localqpn", request.qpn.get()),
        number("infiniband.cm.req.responderres", request.responder_resources.0),
        number("infiniband.cm.req.localeecn", 0_u8),
        number("infiniband.cm.req.initdepth", request.initiator_depth.0),
        number("infiniband.cm.req.remoteeecn", 0_u8),
        number("infiniband.cm.req.remoteresptout", request.remote_timeout.get()),
        number("infiniband.cm.req.transpsvctype", request.transport.get()),
        number("infiniband.cm.req.e2eflowctrl", request.flow_control),
        number("infiniband.cm.req.startpsn", request.psn.get()),
        number("infiniband.cm.req.localresptout", request.local_timeout.get()),
        number("infiniband.cm.req.retrcount", request.retry_count.get()),
        number("infiniband.cm.req.pkey", request.pkey.0),
        number("infiniband.cm.req.pppmtu", request.path_mtu.get()),
        number("infiniband.cm.req.rdcexist", request.rdc_exists),
        number("infiniband.cm.req.rnrretrcount", request.rnr_retry_count.get()),
        number("infiniband.cm.req.maxcmretr", request.max_cm_retries.get()),
        number("infiniband.cm.req.srq", request.srq),
        number("infiniband.cm.req.ext_transport", request.extended_transport.get()),
        number("infiniband.cm.req.prim_locallid", primary.local_lid.0),
        number("infiniband.cm.req.prim_remotelid", primary.remote_lid.0),
        // Not the flow label and the packet rate behind it: tshark 4.0 takes them from three bytes
        // where there are four. `infiniband.mad.data` shows those four with the others.
        number("infiniband.cm.req.prim_tfcclass", primary.traffic_class.0),
        number("infiniband.cm.req.prim_hoplim", primary.hop_limit.0),
        number("infiniband.cm.req.prim_sl", primary.service_level.get()),
        number("infiniband.cm.req.prim_subnetlocal", primary.subnet_local),
        number("infiniband.cm.req.prim_localacktout", primary.ack_timeout.get()),
        number("infiniband.cm.req.ip_cm.majv", 0_u8),
        number("infiniband.cm.req.ip_cm.minv", 0_u8),
        number("infiniband.cm.req.ip_cm.sport", ip_cm.source_port.0),
        said("infiniband.cm.req.ip_cm.private", Req::PRIVATE_DATA - IpCm::LEN),
    ];
    // tshark shows the ports as the addresses of what carried the message.
    readings.extend(match (version, local_gid.to_ipv4(), remote_gid.to_ipv4()) {
        (Version::V2Ipv4, Some(local), Some(remote)) => [
            ("infiniband.cm.req.prim_localgid_ipv4", Value::V4(local)),
            ("infiniband.cm.req.prim_remotegid_ipv4", Value::V4(remote)),
        ],
        _ => [
            ("infiniband.cm.req.prim_localgid", Value::V6(local_gid.into())),
            ("infiniband.cm.req.prim_remotegid", Value::V6(remote_gid.into())),
        ],
    });
    readings.extend(match addresses {
        IpPair::V4 { source, destination } => [
            number("infiniband.cm.req.ip_cm.ipv", 4_u8),
            ("infiniband.cm.req.ip_cm.sip4", Value::V4(source)),
            ("infiniband.cm.req.ip_cm.dip4", Value::V4(destination)),
        ],
        IpPair::V6 { source, destination } => [
            number("infiniband.cm.req.ip_cm.ipv", 6_u8),
            ("infiniband.cm.req.ip_cm.sip6", Value::V6(source)),
            ("infiniband.cm.req.ip_cm.dip6", Value::V6(destination)),
        ],
    });
    (0x0010, request.into(), readings)
}

/// Of this, as of the two of SIDR, tshark reads the header, and the body as bytes: it has no
/// dissector for them.
fn mra() -> Described {
    let message = Mra {
        local: LOCAL,
        remote: REMOTE,
        received: Answered::REP,
        service_timeout: CmTimeout::new(22),
        private: PrivateData::new(SAID).expect("it fits"),
    };
    (0x0011, message.into(), Vec::new())
}

fn rej() -> Described {
    let message = Rej {
        local: LOCAL,
        remote: REMOTE,
        rejected: Answered::REP,
        reason: RejectReason::CONSUMER,
        info: AdditionalInfo::new(INFO).expect("it fits"),
        private: PrivateData::new(SAID).expect("it fits"),
    };
    let mut info = INFO.to_vec();
    info.resize(AdditionalInfo::ROOM, 0);
    let readings = vec![
        number("infiniband.cm.rej.localcommid", LOCAL.0),
        number("infiniband.cm.rej.remotecommid", REMOTE.0),
        number("infiniband.cm.rej.msgrej", message.rejected.get()),
        number("infiniband.cm.rej.rejinfolen", INFO.len() as u64),
        number("infiniband.cm.rej.reason", message.reason.get()),
        bytes("infiniband.cm.rej.ari", info),
        said("infiniband.cm.rej.private", Rej::PRIVATE_DATA),
    ];
    (0x0012, message.into(), readings)
}

fn rep() -> Described {
    let message = Rep {
        local: LOCAL,
        remote: REMOTE,
        qkey: Qkey(0x8765_4321),
        qpn: Qpn::new(0x16),
        psn: Psn::new(0x31_0E52),
        responder_resources: ResponderResources(7),
        initiator_depth: InitiatorDepth(8),
        ack_delay: AckDelay::new(15),
        failover: Failover::UNSUPPORTED,
        flow_control: true,
        rnr_retry_count: RnrRetryCount::new(6),
        srq: true,
        ca_guid: GUID,
        private: PrivateData::new(SAID).expect("it fits"),
        ..Rep::default()
    };
    let readings = vec![
        number("infiniband.cm.rep", LOCAL.0),
        number("infiniband.cm.rep.remotecommid", REMOTE.0),
        number("infiniband.cm.rep.localqkey", message.qkey.0),
        number("infiniband.cm.rep.localqpn", message.qpn.get()),
        number("infiniband.cm.rep.localeecn", 0_u8),
        number("infiniband.cm.rep.startpsn", message.psn.get()),
        number("infiniband.cm.rep.respres", message.responder_resources.0),
        number("infiniband.cm.rep.initdepth", message.initiator_depth.0),
        number("infiniband.cm.rep.tgtackdelay", message.ack_delay.get()),
        number("infiniband.cm.rep.failoveracc", message.failover.get()),
        number("infiniband.cm.rep.e2eflowctrl", message.flow_control),
        number("infiniband.cm.rep.rnrretrcount", message.rnr_retry_count.get()),
        number("infiniband.cm.rep.srq", message.srq),
        number("infiniband.cm.rep.localcaguid", message.ca_guid.0),
        said("infiniband.cm.rep.private", Rep::PRIVATE_DATA),
    ];
    (0x0013, message.into(), readings)
}

fn rtu() -> Described {
    let private = PrivateData::new(SAID).expect("it fits");
    let readings = vec![
        number("infiniband.cm.rtu.localcommid", LOCAL.0),
        number("infiniband.cm.rtu.remotecommid", REMOTE.0),
        said("infiniband.cm.rtu.private", Rtu::PRIVATE_DATA),
    ];
    (0x0014, Rtu { local: LOCAL, remote: REMOTE, private }.into(), readings)
}

fn dreq() -> Described {
    let private = PrivateData::new(SAID).expect("it fits");
    let remote_qpn = Qpn::new(0x15);
    let readings = vec![
        number("infiniband.cm.dreq.localcommid", LOCAL.0),
        number("infiniband.cm.dreq.remotecommid", REMOTE.0),
        number("infiniband.cm.req.remoteqpneecn", remote_qpn.get()),
        said("infiniband.cm.dreq.private", Dreq::PRIVATE_DATA),
    ];
    (0x0015, Dreq { local: LOCAL, remote: REMOTE, remote_qpn, private }.into(), readings)
}

fn drep() -> Described {
    let private = PrivateData::new(SAID).expect("it fits");
    let readings = vec![
        number("infiniband.cm.drsp.localcommid", LOCAL.0),
        number("infiniband.cm.drsp.remotecommid", REMOTE.0),
        said("infiniband.cm.drsp.private", Drep::PRIVATE_DATA),
    ];
    (0x0016, Drep { local: LOCAL, remote: REMOTE, private }.into(), readings)
}

fn sidr_req() -> Described {
    let message = SidrReq {
        request: LOCAL,
        pkey: Pkey::DEFAULT,
        service: ServiceId::from_udp_port(PORT),
        private: PrivateData::new(SAID).expect("it fits"),
    };
    (0x0017, message.into(), Vec::new())
}

fn sidr_rep() -> Described {
    let message = SidrRep {
        request: LOCAL,
        status: SidrStatus::REDIRECT,
        qpn: Qpn::new(0x29),
        service: ServiceId::from_udp_port(PORT),
        qkey: Qkey(0x0123_4567),
        info: AdditionalInfo::new(INFO).expect("it fits"),
        private: PrivateData::new(SAID).expect("it fits"),
    };
    (0x0018, message.into(), Vec::new())
}

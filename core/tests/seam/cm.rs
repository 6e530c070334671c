//! The connection manager's messages, against those of a real peer and against themselves.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use doorbell_core::pcap;
use doorbell_core::wire::cm::*;
use doorbell_core::wire::*;
use proptest::prelude::*;

const ATTRIBUTES: [u8; 9] = [0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18];

/// The management datagrams of a capture.
fn captured(name: &str) -> Vec<[u8; Mad::LEN]> {
    let path = format!("{}/../tests/captures/{name}.pcap", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::read(path).expect("the capture is there");
    let frames = pcap::Reader::new(&file).expect("a capture").map(|record| record.unwrap().data);
    frames.filter_map(datagram_to_queue_pair_1).collect()
}

/// What an Ethernet frame carries behind IPv4, UDP, BTH and DETH, if it is for queue pair 1.
fn datagram_to_queue_pair_1(frame: &[u8]) -> Option<[u8; Mad::LEN]> {
    let (bth, rest) = frame[14 + 20 + 8..].split_at(12);
    let for_queue_pair_1 = bth[0] == 0x64 && bth[5..8] == [0, 0, 1];
    for_queue_pair_1.then(|| rest[8..][..Mad::LEN].try_into().unwrap())
}

fn emitted(mad: &Mad<'_>) -> [u8; Mad::LEN] {
    // What was there before must not shine through.
    let mut out = [0xA5; Mad::LEN];
    mad.emit(&mut out);
    out
}

/// A datagram with a message of this attribute and body, its header correct.
fn datagram(attribute: u8, body: &[u8; 232]) -> [u8; Mad::LEN] {
    let mut bytes = [0; Mad::LEN];
    bytes[..4].copy_from_slice(&[1, 7, 2, 3]);
    bytes[8..16].copy_from_slice(&0x0102_0304_0506_0708_u64.to_be_bytes());
    bytes[17] = attribute;
    bytes[24..].copy_from_slice(body);
    // A length beyond its room is an error, and has a test of its own.
    match attribute {
        0x12 => bytes[24 + 9] %= 73 << 1,
        0x18 => bytes[24 + 5] %= 73,
        _ => {}
    }
    bytes
}

#[test]
fn every_captured_message_is_written_again_byte_for_byte() {
    for (name, count) in [("rping", 5), ("udaddy", 2)] {
        let datagrams = captured(name);
        for bytes in &datagrams {
            let mad = Mad::parse(bytes).unwrap();
            assert_eq!(&emitted(&mad), bytes, "{mad:?}");
        }
        println!("{name}: {} messages", datagrams.len());
        assert_eq!(datagrams.len(), count);
    }
}

#[test]
fn the_request_of_rping_says_what_tshark_shows() {
    let datagrams = captured("rping");
    let mad = Mad::parse(&datagrams[0]).unwrap();
    assert_eq!(mad.transaction, TransactionId(0x2_6E87_CA67));
    let Message::Req(request) = mad.message else { panic!("{mad:?}") };
    let gid = |last| Gid::from(Ipv4Addr::new(10, 77, 0, last));
    let expected = Req {
        local: CommId(0x67CA_876E),
        service: ServiceId::from_tcp_port(CmPort(7174)),
        ca_guid: CaGuid(0x5054_00FF_FE77_0002),
        qpn: Qpn::new(0x15),
        responder_resources: ResponderResources(1),
        initiator_depth: InitiatorDepth(1),
        remote_timeout: CmTimeout::new(20),
        transport: TransportService::RELIABLE,
        psn: Psn::new(0xEB_5F9C),
        local_timeout: CmTimeout::new(20),
        retry_count: RetryCount::new(7),
        pkey: Pkey::DEFAULT,
        path_mtu: PathMtu::Mtu1024.into(),
        rnr_retry_count: RnrRetryCount::INFINITE,
        max_cm_retries: CmRetries::new(15),
        primary: Path {
            local_lid: Lid::PERMISSIVE,
            remote_lid: Lid::PERMISSIVE,
            local_gid: gid(2),
            remote_gid: gid(3),
            // tshark 4.0 shows the upper bits of it only. It is this number that the UDP source
            // port of the connection's packets follows from: 0xF7AB in the same capture.
            flow_label: FlowLabel::new(0x9_378F),
            hop_limit: HopLimit(64),
            ack_timeout: AckTimeout::new(17),
            ..Path::default()
        },
        private: request.private,
        ..Req::default()
    };
    assert_eq!(request, expected);
    let (addressing, said) = request.ip_cm().unwrap();
    assert_eq!(addressing.source_port, CmPort(0xCF57));
    assert_eq!(addressing.addresses.source(), IpAddr::from([10, 77, 0, 2]));
    assert_eq!(addressing.addresses.destination(), IpAddr::from([10, 77, 0, 3]));
    assert_eq!(said, [0; 56]);
}

#[test]
fn the_answers_of_rping_say_what_tshark_shows() {
    let datagrams = captured("rping");
    let messages: Vec<_> = datagrams.iter().map(|d| Mad::parse(d).unwrap().message).collect();
    let (requester, responder) = (CommId(0x67CA_876E), CommId(0x353B_121F));
    let reply = Rep {
        local: responder,
        remote: requester,
        qpn: Qpn::new(0x15),
        psn: Psn::new(0x31_0E52),
        responder_resources: ResponderResources(1),
        initiator_depth: InitiatorDepth(1),
        ack_delay: AckDelay::new(15),
        failover: Failover::ACCEPTED,
        rnr_retry_count: RnrRetryCount::INFINITE,
        ca_guid: CaGuid(0x5054_00FF_FE77_0003),
        ..Rep::default()
    };
    let ready = Rtu { local: requester, remote: responder, ..Rtu::default() };
    let remote_qpn = Qpn::new(0x15);
    let end = Dreq { local: requester, remote: responder, remote_qpn, ..Dreq::default() };
    let ended = Drep { local: responder, remote: requester, ..Drep::default() };
    assert_eq!(messages[1..], [reply.into(), ready.into(), end.into(), ended.into()]);
}

#[test]
fn the_question_and_the_answer_of_udaddy_are_understood() {
    let datagrams = captured("udaddy");
    let [question, answer] = [0, 1].map(|i| Mad::parse(&datagrams[i]).unwrap().message);
    let Message::SidrReq(question) = question else { panic!("{question:?}") };
    assert_eq!(question.request, CommId(0x65CA_876E));
    assert_eq!(question.pkey, Pkey::DEFAULT);
    assert_eq!(question.service, ServiceId::from_udp_port(CmPort(7174)));
    let (addressing, _) = question.ip_cm().unwrap();
    assert_eq!(addressing.source_port, CmPort(0xCFB0));
    assert_eq!(addressing.addresses.destination(), IpAddr::from([10, 77, 0, 3]));
    let expected = SidrRep {
        request: CommId(0x65CA_876E),
        status: SidrStatus::VALID,
        qpn: Qpn::new(0x29),
        service: ServiceId::from_udp_port(CmPort(7174)),
        qkey: Qkey(0x0123_4567),
        ..SidrRep::default()
    };
    assert_eq!(answer, Message::SidrRep(expected));
}

#[test]
fn a_refusal_stands_where_the_specification_puts_it() {
    let mut body = [0; 232];
    body[..8].copy_from_slice(&[0, 0, 0, 1, 0, 0, 0, 2]);
    body[8..12].copy_from_slice(&[1 << 6, 3 << 1, 0, 28]);
    body[12..15].copy_from_slice(b"why");
    body[84..87].copy_from_slice(b"no!");
    let refusal = Rej {
        local: CommId(1),
        remote: CommId(2),
        rejected: Answered::REP,
        reason: RejectReason::CONSUMER,
        info: AdditionalInfo::new(b"why").unwrap(),
        private: PrivateData::new(b"no!").unwrap(),
    };
    let bytes = datagram(0x12, &body);
    assert_eq!(Mad::parse(&bytes).unwrap().message, refusal.into());
    assert_eq!(emitted(&Mad::parse(&bytes).unwrap()), bytes);
    assert_eq!(refusal.reason.to_string(), "the peer's program refused");
    assert_eq!(RejectReason::new(999).to_string(), "unknown code 999");
}

#[test]
fn a_plea_for_patience_stands_where_the_specification_puts_it() {
    let mut body = [0; 232];
    body[..8].copy_from_slice(&[0, 0, 0, 1, 0, 0, 0, 2]);
    body[8..10].copy_from_slice(&[2 << 6, 18 << 3]);
    body[10..14].copy_from_slice(b"wait");
    let plea = Mra {
        local: CommId(1),
        remote: CommId(2),
        received: Answered::OTHER,
        service_timeout: CmTimeout::new(18),
        private: PrivateData::new(b"wait").unwrap(),
    };
    let bytes = datagram(0x11, &body);
    assert_eq!(Mad::parse(&bytes).unwrap().message, plea.into());
    assert_eq!(emitted(&Mad::parse(&bytes).unwrap()), bytes);
    assert_eq!(plea.service_timeout.duration(), Duration::from_nanos(4096 << 18));
}

#[test]
fn reserved_bits_are_ignored_and_sent_as_zero() {
    // By attribute: the byte of the body and the bits in it that are reserved.
    let request: Vec<_> = [4, 5, 6, 7, 24, 25, 26, 27]
        .map(|at| (at, 0xFF))
        .into_iter()
        .chain([(90, 0x0F), (91, 0xC0), (94, 0x07), (95, 0x07)])
        .chain([(134, 0x0F), (135, 0xC0), (138, 0x07), (139, 0x07)])
        .collect();
    let reserved: [(u8, Vec<(usize, u8)>); 9] = [
        (0x10, request),
        (0x11, vec![(8, 0x3F), (9, 0x07)]),
        (0x12, vec![(8, 0x3F), (9, 0x01)]),
        (0x13, vec![(15, 0xFF), (19, 0xFF), (23, 0xFF), (27, 0x0F)]),
        (0x14, vec![]),
        (0x15, vec![(11, 0xFF)]),
        (0x16, vec![]),
        (0x17, vec![(6, 0xFF), (7, 0xFF)]),
        (0x18, vec![(6, 0xFF), (7, 0xFF), (11, 0xFF)]),
    ];
    for (attribute, reserved) in reserved {
        let mut body = [0xFF; 232];
        // All of the information's room is used, and the reserved bit beside its length is set.
        match attribute {
            0x12 => body[9] = 72 << 1 | 1,
            0x18 => body[5] = 72,
            _ => {}
        }
        let bytes = datagram(attribute, &body);
        for (at, bits) in reserved {
            body[at] &= !bits;
        }
        let expected = datagram(attribute, &body);
        assert_eq!(emitted(&Mad::parse(&bytes).unwrap()), expected, "{attribute:#x}");
    }
}

#[test]
fn the_unused_fields_of_the_header_are_ignored() {
    let plain = datagram(0x14, &[7; 232]);
    let mut noisy = plain;
    noisy[4..8].fill(0xFF);
    noisy[18..24].fill(0xFF);
    assert_eq!(Mad::parse(&noisy), Mad::parse(&plain));
}

#[test]
fn what_is_not_a_message_of_the_connection_managers_is_refused_with_a_reason() {
    let good = datagram(0x14, &[0; 232]);
    let spoilt = |at: usize, value: u8| {
        let mut bytes = good;
        bytes[at] = value;
        Mad::parse(&bytes).map(|_| ()).unwrap_err()
    };
    let class = |class, version, method| Malformed::MadClass { class, version, method };
    assert_eq!(spoilt(0, 2), Malformed::Version { part: Part::Mad, found: 2 });
    assert_eq!(spoilt(1, 3), class(3, 2, 3));
    assert_eq!(spoilt(2, 1), class(7, 1, 3));
    assert_eq!(spoilt(3, 0x81), class(7, 2, 0x81));
    assert_eq!(spoilt(17, 0x19), Malformed::MadAttribute(0x19));
    assert_eq!(spoilt(16, 0xFF), Malformed::MadAttribute(0xFF14));
    for have in 0..Mad::LEN {
        let error = Malformed::Truncated { part: Part::Mad, need: 256, have };
        assert_eq!(Mad::parse(&good[..have]), Err(error));
    }
}

#[test]
fn a_request_is_known_again_by_its_first_28_bytes_and_no_other_message_is() {
    for attribute in ATTRIBUTES {
        let bytes = datagram(attribute, &[7; 232]);
        for len in 0..=Mad::LEN {
            let transaction = TransactionId(0x0102_0304_0506_0708);
            let request = QuotedRequest { transaction, id: CommId(0x0707_0707) };
            let expected = (attribute == 0x10 && len >= 28).then_some(request);
            assert_eq!(Mad::quoted_request(&bytes[..len]), expected, "{attribute:#x}, {len} bytes");
        }
    }
    let mut other = datagram(0x10, &[7; 232]);
    other[1] = 4;
    assert_eq!(Mad::quoted_request(&other), None, "another class");
}

#[test]
fn a_length_beyond_its_room_is_refused() {
    for (attribute, at, value, claimed) in [(0x12, 9, 73 << 1, 73), (0x18, 5, 255, 255)] {
        let mut bytes = datagram(attribute, &[0; 232]);
        bytes[24 + at] = value;
        let error = Malformed::Length { part: Part::Mad, claimed, have: AdditionalInfo::ROOM };
        assert_eq!(Mad::parse(&bytes), Err(error));
    }
}

#[test]
fn private_data_that_is_too_long_is_refused_with_the_limit() {
    fn limit<const ROOM: usize>() -> usize {
        let bytes = [0; 233];
        assert!(PrivateData::<ROOM>::new(&bytes[..ROOM]).is_ok());
        let error = PrivateData::<ROOM>::new(&bytes[..ROOM + 1]).unwrap_err();
        assert!(error.to_string().contains(&format!("room for {ROOM}")), "{error}");
        error.limit
    }
    assert_eq!(limit::<{ Req::PRIVATE_DATA }>(), 92);
    assert_eq!(limit::<{ Mra::PRIVATE_DATA }>(), 222);
    assert_eq!(limit::<{ Rej::PRIVATE_DATA }>(), 148);
    assert_eq!(limit::<{ Rep::PRIVATE_DATA }>(), 196);
    assert_eq!(limit::<{ Rtu::PRIVATE_DATA }>(), 224);
    assert_eq!(limit::<{ Dreq::PRIVATE_DATA }>(), 220);
    assert_eq!(limit::<{ Drep::PRIVATE_DATA }>(), 224);
    assert_eq!(limit::<{ SidrReq::PRIVATE_DATA }>(), 216);
    assert_eq!(limit::<{ SidrRep::PRIVATE_DATA }>(), 136);
    let error = AdditionalInfo::new(&[0; 73]).unwrap_err();
    assert_eq!(error, TooLong { given: 73, limit: 72 });
}

#[test]
fn private_data_is_the_same_with_and_without_the_zeros_behind_it() {
    let short = PrivateData::<92>::new(b"ring").unwrap();
    let mut padded = [0; 92];
    padded[..4].copy_from_slice(b"ring");
    assert_eq!(short, PrivateData::from(&padded));
    assert_ne!(short, PrivateData::new(b"rin").unwrap());
    assert_eq!(PrivateData::<92>::default(), PrivateData::from(&[0; 92]));
}

#[test]
fn ip_addressing_leaves_the_application_the_rest_of_the_private_data() {
    let addresses = IpPair::V6 { source: Ipv6Addr::LOCALHOST, destination: Ipv6Addr::UNSPECIFIED };
    let addressing = IpCm { source_port: CmPort(1), addresses };
    let private: [u8; Req::PRIVATE_DATA] = addressing.before(&[9; 56]).unwrap();
    assert_eq!(IpCm::parse(&private), Ok((addressing, &[9; 56][..])));
    let error = addressing.before::<{ Req::PRIVATE_DATA }>(&[9; 57]).unwrap_err();
    assert_eq!(error, TooLong { given: 57, limit: 56 });
}

#[test]
fn ip_addressing_that_is_none_is_refused_with_a_reason() {
    let mut private = [0; 92];
    let field = |found| Malformed::Field { part: Part::IpCm, field: "IP version", found };
    assert_eq!(IpCm::parse(&private), Err(field(0)));
    private[1] = 0x50;
    assert_eq!(IpCm::parse(&private), Err(field(5)));
    private[0] = 0x10;
    assert_eq!(IpCm::parse(&private), Err(Malformed::Version { part: Part::IpCm, found: 0x10 }));
    let error = Malformed::Truncated { part: Part::IpCm, need: 36, have: 35 };
    assert_eq!(IpCm::parse(&private[..35]), Err(error));
}

#[test]
fn a_service_id_tells_the_port_space_and_the_port() {
    let service = ServiceId::from_tcp_port(CmPort(7174));
    assert_eq!(service, ServiceId(0x0106_1C06));
    assert_eq!(service.ip_port(), Some((IpProtocol::TCP, CmPort(7174))));
    assert_eq!(ServiceId::from_udp_port(CmPort(1)), ServiceId(0x0111_0001));
    assert_eq!(ServiceId(0x0206_1C06).ip_port(), None);
    assert_eq!(ServiceId(0x1_0106_1C06).ip_port(), None);
}

#[test]
fn codes_without_meaning_are_kept() {
    let code = PathMtuCode::new(9);
    assert_eq!((code.get(), code.mtu()), (9, None));
    assert_eq!(PathMtuCode::from(PathMtu::Mtu4096).mtu(), Some(PathMtu::Mtu4096));
    assert_eq!(SidrStatus::new(77).meaning(), None);
    assert_eq!(AckTimeout::new(0).duration(), None);
    assert_eq!(AckTimeout::new(14).duration(), Some(Duration::from_nanos(67_108_864)));
}

/// A body of any bits at all.
fn any_body() -> impl Strategy<Value = [u8; 232]> {
    proptest::collection::vec(any::<u8>(), 232).prop_map(|body| body.try_into().unwrap())
}

proptest! {
    #[test]
    fn every_message_is_read_as_it_was_written(
        attribute in proptest::sample::select(&ATTRIBUTES[..]),
        body in any_body(),
    ) {
        // Any bits are a message, so that any bits make a random one.
        let bytes = datagram(attribute, &body);
        let mad = Mad::parse(&bytes).unwrap();
        let written = emitted(&mad);
        prop_assert_eq!(Mad::parse(&written).unwrap(), mad);
        prop_assert_eq!(emitted(&Mad::parse(&written).unwrap()), written);
    }

    #[test]
    fn private_data_of_any_length_arrives(bytes in proptest::collection::vec(any::<u8>(), 0..=92)) {
        let request = Req { private: PrivateData::new(&bytes).unwrap(), ..Req::default() };
        let mad = Mad { transaction: TransactionId(5), message: request.into() };
        let written = emitted(&mad);
        prop_assert_eq!(Mad::parse(&written).unwrap(), mad);
        prop_assert_eq!(&written[24 + 140..][..bytes.len()], bytes);
    }

    #[test]
    fn ip_addressing_is_read_as_it_was_written(
        port: u16, source: u128, destination: u128, ipv4: bool,
    ) {
        let addresses = if ipv4 {
            let [source, destination] = [source, destination].map(|ip| Ipv4Addr::from(ip as u32));
            IpPair::V4 { source, destination }
        } else {
            let [source, destination] = [source, destination].map(Ipv6Addr::from);
            IpPair::V6 { source, destination }
        };
        let addressing = IpCm { source_port: CmPort(port), addresses };
        let bytes = addressing.to_bytes();
        prop_assert_eq!(IpCm::parse(&bytes).unwrap(), (addressing, &[][..]));
    }

    #[test]
    fn no_bytes_are_too_strange_to_be_refused(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..300),
        attribute in 0x0F..0x1A_u8,
        plausible: bool,
    ) {
        if plausible && bytes.len() > 18 {
            bytes[..4].copy_from_slice(&[1, 7, 2, 3]);
            bytes[16..18].copy_from_slice(&[0, attribute]);
        }
        if let Ok(mad) = Mad::parse(&bytes) {
            emitted(&mad);
        }
        let _ = IpCm::parse(&bytes);
    }
}

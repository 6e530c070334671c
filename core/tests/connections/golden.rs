//! The exchange of two Linux kernels, recorded: our manager takes the place of either, and says what
//! was recorded, but for the names that each chooses for itself.

use doorbell_core::cm::{ConnectionId, Event, Reply, Request, Why};
use doorbell_core::pcap;
use doorbell_core::wire::cm::*;
use doorbell_core::wire::*;

use crate::common::{Manager, config, manager};

type Bytes = [u8; Mad::LEN];

/// REQ, REP, RTU, DREQ and DREP as `rping` had them exchanged.
fn recorded() -> [Bytes; 5] {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/captures/rping.pcap");
    let file = std::fs::read(path).expect("the capture is there");
    let mut datagrams = Vec::new();
    for record in pcap::Reader::new(&file).expect("a capture") {
        let (bth, rest) = record.unwrap().data[14 + 20 + 8..].split_at(12);
        if bth[0] == 0x64 && bth[5..8] == [0, 0, 1] {
            datagrams.push(rest[8..][..Mad::LEN].try_into().unwrap());
        }
    }
    datagrams.try_into().expect("five datagrams")
}

const REQUESTER: CommId = CommId(0x67CA_876E);
const RESPONDER: CommId = CommId(0x353B_121F);

fn with_guid(guid: u64) -> Manager {
    manager(doorbell_core::cm::Config { guid: CaGuid(guid), ..config(0) }, 1)
}

/// A datagram with one name in the place of another, and one transaction's number in the place of
/// the recorded one. Neither stands anywhere by chance: the numbers are 32 bits.
fn renamed(mut datagram: Bytes, from: CommId, to: CommId, transaction: TransactionId) -> Bytes {
    datagram[8..16].copy_from_slice(&transaction.0.to_be_bytes());
    for at in [24, 28] {
        if datagram[at..at + 4] == from.0.to_be_bytes() {
            datagram[at..at + 4].copy_from_slice(&to.0.to_be_bytes());
        }
    }
    datagram
}

fn sent(manager: &mut Manager) -> Bytes {
    let datagram = manager.transmit().expect("something to say");
    assert_eq!(manager.transmit(), None);
    datagram.bytes
}

fn terms(datagram: &Bytes) -> (Request, TransactionId) {
    let Mad { transaction, message } = Mad::parse(datagram).unwrap();
    let Message::Req(req) = message else { panic!() };
    let (addressing, _) = req.ip_cm().unwrap();
    let request = Request::to_port(CmPort(7174), req.qpn, req.psn, addressing);
    let request = Request {
        responder_resources: req.responder_resources,
        initiator_depth: req.initiator_depth,
        // What the kernel's program asked for beside the customary.
        remote_timeout: CmTimeout::new(20),
        local_timeout: CmTimeout::new(20),
        path: Path { flow_label: req.primary.flow_label, ..request.path },
        ..request
    };
    (request, transaction)
}

#[test]
fn our_requester_says_what_the_kernels_said() {
    let [req, rep, rtu, dreq, drep] = recorded();
    let mut ours = with_guid(0x5054_00FF_FE77_0002);
    let (request, _) = terms(&req);
    let id = ours.connect(1, &request, b"").unwrap();
    let first = sent(&mut ours);
    let transaction = Mad::parse(&first).unwrap().transaction;
    let as_ours = |datagram| renamed(datagram, REQUESTER, id.comm_id(), transaction);
    assert_eq!(first, as_ours(req));

    ours.receive(&1, &as_ours(rep));
    let Some(Event::Replied { id: replied, reply, extensions, .. }) = ours.event() else {
        panic!()
    };
    assert!(extensions.is_empty());
    assert_eq!(replied, id);
    let expected = Reply {
        responder_resources: ResponderResources(1),
        initiator_depth: InitiatorDepth(1),
        ..Reply::new(Qpn::new(0x15), Psn::new(0x31_0E52))
    };
    assert_eq!(*reply, expected);

    ours.ready(id, b"").unwrap();
    assert_eq!(sent(&mut ours), as_ours(rtu));
    ours.disconnect(id, b"").unwrap();
    assert_eq!(sent(&mut ours), as_ours(dreq));
    ours.receive(&1, &as_ours(drep));
    assert!(matches!(ours.event(), Some(Event::Ended { why: Why::Agreed { .. }, .. })));
}

/// The kernel's request has come, and our program takes it up.
fn taken_up(ours: &mut Manager) -> (ConnectionId, TransactionId) {
    let [req, ..] = recorded();
    let (expected, transaction) = terms(&req);
    ours.listen(ServiceId::from_tcp_port(CmPort(7174)), 1).unwrap();
    ours.receive(&0, &req);
    let Some(Event::Asked { id, request, private, .. }) = ours.event() else { panic!() };
    assert_eq!(*request, expected);
    assert_eq!(private, [0; 56]);
    let reply = Reply {
        responder_resources: ResponderResources(1),
        initiator_depth: InitiatorDepth(1),
        ..Reply::new(Qpn::new(0x15), Psn::new(0x31_0E52))
    };
    ours.accept(id, &reply, b"").unwrap();
    (id, transaction)
}

#[test]
fn our_responder_says_what_the_kernels_said() {
    let [_, rep, rtu, dreq, drep] = recorded();
    let mut ours = with_guid(0x5054_00FF_FE77_0003);
    let (id, transaction) = taken_up(&mut ours);
    let as_ours = |datagram| renamed(datagram, RESPONDER, id.comm_id(), transaction);
    assert_eq!(sent(&mut ours), as_ours(rep));
    ours.receive(&0, &as_ours(rtu));
    assert!(matches!(ours.event(), Some(Event::Established { .. })));
    ours.receive(&0, &as_ours(dreq));
    assert!(matches!(ours.event(), Some(Event::Ended { why: Why::PeerLeft { .. }, .. })));
    assert_eq!(sent(&mut ours), as_ours(drep));
}

#[test]
fn a_kernel_that_has_forgotten_is_answered_as_the_standard_wants() {
    let [_, rep, rtu, dreq, drep] = recorded();
    let mut ours = with_guid(0x5054_00FF_FE77_0003);
    // A name of ours, so that it is for this process to answer.
    let (id, transaction) = taken_up(&mut ours);
    let name = id.comm_id();
    let mut restarted = manager(config(0), 77);
    restarted.receive(&0, &renamed(rtu, RESPONDER, name, transaction));
    assert_eq!(restarted.transmit(), None);
    restarted.receive(&0, &renamed(dreq, RESPONDER, name, transaction));
    assert_eq!(sent(&mut restarted), renamed(drep, RESPONDER, name, transaction));
    let rep = renamed(rep, REQUESTER, name, transaction);
    restarted.receive(&0, &rep);
    let answer = sent(&mut restarted);
    let Message::Rej(rej) = Mad::parse(&answer).unwrap().message else { panic!() };
    let expected = Rej {
        local: name,
        remote: RESPONDER,
        rejected: Answered::REP,
        reason: RejectReason::INVALID_COMM_ID,
        ..rej
    };
    assert_eq!(rej, expected);
}

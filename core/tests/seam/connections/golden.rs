//! What a kernel says, recorded, to a manager that has forgotten the connection. The whole exchange
//! is replayed in `tests/protocol/golden`, beside a NIC.

use doorbell_core::pcap;
use doorbell_core::wire::CommId;
use doorbell_core::wire::cm::*;

use crate::connections::common::{Manager, config, manager, request};

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

/// A datagram with one name in the place of another, which does not stand there by chance: names
/// are 32 bits.
fn renamed(mut datagram: Bytes, from: CommId, to: CommId) -> Bytes {
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

#[test]
fn a_kernel_that_has_forgotten_is_answered_as_the_standard_wants() {
    let [_, rep, rtu, dreq, drep] = recorded();
    // A name of ours, so that it is for this process to answer.
    let name = manager(config(0), 1).connect(1, &request(5), b"").unwrap().comm_id();
    let mut restarted = manager(config(0), 77);
    restarted.receive(&0, &renamed(rtu, RESPONDER, name));
    assert_eq!(restarted.transmit(), None);
    restarted.receive(&0, &renamed(dreq, RESPONDER, name));
    assert_eq!(sent(&mut restarted), renamed(drep, RESPONDER, name));
    restarted.receive(&0, &renamed(rep, REQUESTER, name));
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

//! The suite that every device must pass, for each of them.

use doorbell_core::nic::Numbering;
use doorbell_core::wire::Mac;
use doorbell_kit::conformance;
use doorbell_kit::conformance::{Place, Subject};
use doorbell_transports::Address;
use doorbell_transports::packet::Packet;
use doorbell_transports::shm::Shm;

fn open_packet(place: &Place) -> Packet {
    Packet::open(place.interface, Numbering::default()).expect("the interface is there")
}

fn packet() -> Subject<Packet> {
    let nobody = Address::Packet(Mac([2, 0, 0x5E, 0, 0, 1]));
    Subject::new(open_packet).over_a_cable(9000).with_nobody_at(nobody)
}

fn packet_at_1500() -> Subject<Packet> {
    Subject::new(open_packet).over_a_cable(1500)
}

fn shm() -> Subject<Shm> {
    let nobody = Address::Shm("nobody joined by this name".into());
    Subject::new(|place| Shm::join(&place.name()).expect("the name is free")).with_nobody_at(nobody)
}

fn shm_in_process() -> Subject<Shm> {
    Subject::joined(|| Shm::pair().expect("a pair").into())
}

conformance!(processes: packet);
conformance!(processes: packet_at_1500);
conformance!(processes: shm);
conformance!(threads: shm_in_process);

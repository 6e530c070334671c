//! The suite that every device must pass, for each of them.

use std::net::SocketAddr;

use doorbell_core::nic::Numbering;
use doorbell_core::wire::Mac;
use doorbell_kit::conformance;
use doorbell_kit::conformance::{Place, Subject};
use doorbell_transports::Address;
use doorbell_transports::packet::Packet;
use doorbell_transports::udp::Udp;

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

conformance!(processes: packet);
conformance!(processes: packet_at_1500);

fn open_udp(place: &Place) -> Udp {
    Udp::open(SocketAddr::new(place.ipv4.into(), 4791)).expect("the address is there")
}

fn udp() -> Subject<Udp> {
    let nobody = Address::Udp("10.219.0.9:4791".parse().expect("an address"));
    Subject::new(open_udp).over_a_cable(9000).with_nobody_at(nobody)
}

fn udp_cut_by_the_system() -> Subject<Udp> {
    Subject::new(open_udp).over_a_cable(1500).without_segmentation()
}

fn udp_without_offload() -> Subject<Udp> {
    Subject::new(|place| open_udp(place).without_offload()).over_a_cable(9000)
}

fn udp_over_ipv6() -> Subject<Udp> {
    let open =
        |place: &Place| Udp::open(SocketAddr::new(place.ipv6.into(), 7000)).expect("an address");
    let nobody = Address::Udp("[fd00:db::2]:7001".parse().expect("an address"));
    Subject::new(open).over_a_cable(9000).with_nobody_at(nobody)
}

conformance!(processes: udp);
conformance!(processes: udp_cut_by_the_system);
conformance!(processes: udp_without_offload);
conformance!(processes: udp_over_ipv6);

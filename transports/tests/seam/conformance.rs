//! The suite that every device must pass, for each of them.

use std::net::SocketAddr;

use doorbell_core::nic::Numbering;
use doorbell_core::wire::Mac;
use doorbell_kit::conformance;
use doorbell_kit::conformance::{Place, Side, Subject};
use doorbell_transports::Address;
use doorbell_transports::packet::Packet;
use doorbell_transports::packet_v2::{PacketV2, Settings};
use doorbell_transports::shm::Shm;
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

/// By the address that comes with the device's Ethernet address.
fn open_packet_v2(place: &Place) -> PacketV2 {
    PacketV2::open(place.interface, Settings::default()).expect("the interface is there")
}

/// By an address of the network that the interface is on.
fn open_packet_v2_ipv4(place: &Place) -> PacketV2 {
    let host = if place.side == Side::Near { 101 } else { 102 };
    let [a, b, c, _] = place.ipv4.octets();
    let network = format!("{a}.{b}.{c}.{host}/24").parse().expect("a network");
    let settings = Settings { network: Some(network), ..Settings::default() };
    PacketV2::open(place.interface, settings).expect("the interface is there")
}

fn packet_v2() -> Subject<PacketV2> {
    let nobody = Address::PacketV2("fe80::5e:1".parse().expect("an address"));
    Subject::new(open_packet_v2).over_a_cable(9000).with_nobody_at(nobody)
}

fn packet_v2_at_1500() -> Subject<PacketV2> {
    Subject::new(open_packet_v2).over_a_cable(1500)
}

fn packet_v2_uncut() -> Subject<PacketV2> {
    Subject::new(open_packet_v2).over_a_cable(9000).without_segmentation()
}

fn packet_v2_a_frame_each() -> Subject<PacketV2> {
    Subject::new(|place| open_packet_v2(place).without_offload()).over_a_cable(9000)
}

fn packet_v2_ipv4() -> Subject<PacketV2> {
    let nobody = Address::PacketV2("10.219.0.200".parse().expect("an address"));
    Subject::new(open_packet_v2_ipv4).over_a_cable(9000).with_nobody_at(nobody)
}

fn packet_v2_ipv4_at_1500_uncut() -> Subject<PacketV2> {
    Subject::new(open_packet_v2_ipv4).over_a_cable(1500).without_segmentation()
}

conformance!(processes: packet_v2);
conformance!(processes: packet_v2_at_1500);
conformance!(processes: packet_v2_uncut);
conformance!(processes: packet_v2_a_frame_each);
conformance!(processes: packet_v2_ipv4);
conformance!(processes: packet_v2_ipv4_at_1500_uncut);

fn shm() -> Subject<Shm> {
    let nobody = Address::Shm("nobody".into());
    Subject::new(|place| Shm::join(&place.name()).expect("a name of this run's"))
        .with_nobody_at(nobody)
}

fn shm_pair() -> Subject<Shm> {
    Subject::joined(|| Shm::pair().expect("a pair").into())
}

conformance!(processes: shm);
conformance!(threads: shm_pair);

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

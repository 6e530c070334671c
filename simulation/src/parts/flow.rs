//! The flow of a frame, by which routers choose among paths of equal cost: all frames of a flow take
//! the same path.

use doorbell_core::wire::{EtherType, Ethernet, IpProtocol, Ipv4, Ipv6};

/// An odd number without a pattern.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Returns a number that is the same for all frames of a flow: that have the same addresses, of
/// Ethernet and of IP, and the same ports of UDP.
pub(crate) fn hash(frame: &[u8]) -> u64 {
    let Some((addresses, _)) = frame.split_at_checked(12) else { return 0 };
    let packet = frame.get(Ethernet::LEN..).unwrap_or_default();
    let number = |at: usize| {
        let bytes = frame.get(12..14)?.get(at..)?.first_chunk()?;
        Some(EtherType(u16::from_be_bytes(*bytes)))
    };
    let (hosts, behind, protocol) = match number(0) {
        Some(EtherType::IPV4) => (12..20, Ipv4::LEN, packet.get(9)),
        Some(EtherType::IPV6) => (8..40, Ipv6::LEN, packet.get(6)),
        _ => (0..0, 0, None),
    };
    let is_udp = protocol.is_some_and(|protocol| IpProtocol(*protocol) == IpProtocol::UDP);
    let ports = if is_udp { behind..behind + 4 } else { 0..0 };
    let parts =
        [addresses, packet.get(hosts).unwrap_or_default(), packet.get(ports).unwrap_or_default()];
    let mut sum = 0_u64;
    for byte in parts.into_iter().flatten() {
        sum = (sum ^ u64::from(*byte)).wrapping_mul(SPREAD);
        sum ^= sum >> 29;
    }
    sum ^ sum >> 32
}

/// Returns a number by which one of several chooses for a flow otherwise than the others do.
pub(crate) fn choice(flow: u64, salt: u64) -> u64 {
    let product = (flow ^ salt.wrapping_mul(SPREAD)).wrapping_mul(SPREAD);
    (product ^ product >> 29).wrapping_mul(SPREAD) >> 32
}

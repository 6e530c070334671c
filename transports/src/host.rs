//! IP addresses of hosts: which ones a host can have, and lists of them in errors.

use std::net::IpAddr;

/// Returns why an IP address can be no single host's, or `None` if it can. Packets can't be sent to
/// one peer at such an address.
pub(crate) fn not_a_hosts(address: IpAddr) -> Option<&'static str> {
    let (unspecified, multicast) = (address.is_unspecified(), address.is_multicast());
    match address {
        _ if unspecified => Some(
            "it stands for all addresses of a host; name one of them: the one that the peer's device \
             tells, where that was opened so",
        ),
        _ if multicast => Some("it is a multicast address, and a peer is one host"),
        IpAddr::V4(ip) if ip.is_broadcast() => Some("it is the broadcast address"),
        IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some() => {
            Some("it is an IPv4 address in IPv6 form; name the IPv4 address itself")
        }
        _ => None,
    }
}

/// Writes addresses with commas in between.
pub(crate) fn list(addresses: &[IpAddr]) -> String {
    addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(", ")
}

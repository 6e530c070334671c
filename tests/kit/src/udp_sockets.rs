//! The UDP sockets and counters of a network namespace, as the system shows them.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The local addresses of all UDP sockets in this thread's network namespace. In a
/// [`lab`](crate::lab), these are the sockets of a single process.
///
/// # Panics
/// When the system does not show its sockets.
pub fn udp_sockets() -> Vec<SocketAddr> {
    let all = ["udp", "udp6"].map(|table| {
        let shown = fs::read_to_string(format!("/proc/thread-self/net/{table}"));
        shown.expect("the system shows its sockets")
    });
    let lines = all.iter().flat_map(|table| table.lines().skip(1));
    lines.map(|line| local(line).unwrap_or_else(|| panic!("`{line}` is no socket"))).collect()
}

/// The local address in a line of the system's table: hexadecimal words in this machine's order of
/// bytes, and the port.
fn local(line: &str) -> Option<SocketAddr> {
    let (ip, port) = line.split_whitespace().nth(1)?.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(ip.get(8 * at..8 * at + 8)?, 16).ok();
    let bytes = |at: usize| word(at).map(u32::to_ne_bytes);
    let ip: IpAddr = match ip.len() {
        8 => Ipv4Addr::from(bytes(0)?).into(),
        _ => {
            let words = [bytes(0)?, bytes(1)?, bytes(2)?, bytes(3)?];
            Ipv6Addr::from(<[u8; 16]>::try_from(words.concat()).ok()?).into()
        }
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

/// The number of IPv4 datagrams to closed ports in this thread's network namespace.
///
/// # Panics
/// When the system does not show its counters.
pub fn datagrams_to_closed_ports() -> u64 {
    let shown = fs::read_to_string("/proc/thread-self/net/snmp").expect("the system counts");
    let mut lines = shown.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, counts) = (lines.next().expect("names"), lines.next().expect("counts"));
    let place = names.split(' ').position(|name| name == "NoPorts").expect("it is counted");
    counts.split(' ').nth(place).and_then(|count| count.parse().ok()).expect("a number")
}

//! Names of listeners: the address of a NIC, and a service there.

use std::io;

use doorbell_verbs::{Address, ServiceId};

/// The name of a listener, as text that peers connect to.
pub(crate) fn name(address: &Address, service: ServiceId) -> String {
    format!("{address}#{:016x}", service.0)
}

/// Splits a name into the address and the service.
pub(crate) fn parse(name: &str) -> io::Result<(&str, ServiceId)> {
    let parsed = || {
        let (address, service) = name.rsplit_once('#')?;
        let service = u64::from_str_radix(service, 16).ok()?;
        (!address.is_empty()).then_some((address, ServiceId(service)))
    };
    parsed().ok_or_else(|| {
        let what = format!(
            "`{name}` names no listener: a name is ADDRESS#SERVICE, with the service in \
             hexadecimal, as in `udp:192.0.2.7:5000#2a`"
        );
        io::Error::new(io::ErrorKind::InvalidInput, what)
    })
}

/// The device from which an address is reached, if that can be told from the address. For raw
/// Ethernet it can't, because the interface must be named.
pub(crate) fn device_towards(address: &str) -> io::Result<String> {
    let Some(host) = address.strip_prefix("udp:") else {
        if address.starts_with("shm:") {
            return Ok("shm".to_owned());
        }
        let what = format!(
            "`{address}` is reached from an interface, and not said from which: open an Endpoint \
             there, on `packet:eth0`, say, and connect by that"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    };
    let is_loopback = ["127.", "localhost", "[::1]", "::1"].iter().any(|it| host.starts_with(it));
    let own = match (is_loopback, host.starts_with('[') || host.matches(':').count() > 1) {
        (true, false) => "127.0.0.1",
        (true, true) => "[::1]",
        (false, false) => "0.0.0.0",
        (false, true) => "[::]",
    };
    // What is reached at RoCE's own port has to come from there.
    let port = match address.parse() {
        Ok(Address::Udp(address)) => address.port(),
        _ => host.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or(ROCE),
    };
    Ok(format!("udp:{own}:{}", if port == ROCE { ROCE } else { 0 }))
}

/// RoCE's own port, which an address without a port means.
const ROCE: u16 = 4791;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_parsed_into_the_address_and_service_that_it_was_made_of() {
        for address in ["udp:[::1]:4791", "packet:02:00:00:00:00:01", "shm:a#b"] {
            let parsed = address.parse().expect("it is one");
            let text = name(&parsed, ServiceId(u64::MAX));
            assert_eq!(parse(&text).expect("it was written"), (address, ServiceId(u64::MAX)));
        }
        for text in ["", "#1", "shm:a", "shm:a#", "shm:a#x"] {
            let why = parse(text).expect_err("it is none");
            assert_eq!(why.kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn the_device_from_which_an_address_is_reached_is_told_by_the_address() {
        let found = |address| device_towards(address).expect("there is one");
        assert_eq!(found("shm:job/1"), "shm");
        assert_eq!(found("udp:127.0.0.1:5000"), "udp:127.0.0.1:0");
        assert_eq!(found("udp:localhost:5000"), "udp:127.0.0.1:0");
        assert_eq!(found("udp:[::1]:5000"), "udp:[::1]:0");
        assert_eq!(found("udp:192.0.2.7:5000"), "udp:0.0.0.0:0");
        assert_eq!(found("udp:192.0.2.7"), "udp:0.0.0.0:4791");
        assert_eq!(found("udp:[2001:db8::1]:5000"), "udp:[::]:0");
        let why = device_towards("packet:02:00:00:00:00:01").expect_err("which interface?");
        assert!(why.to_string().contains("open an Endpoint"));
    }
}

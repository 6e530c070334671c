//! Names of listeners: the address of a NIC, and a service there.

use std::io;

use doorbell_verbs::{Address, Nic, ServiceId};

use crate::error::of_connect;

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
pub(crate) async fn device_towards(name: &str) -> io::Result<String> {
    let (address, _) = parse(name)?;
    let device = Nic::device_towards(address).await.map_err(|why| of_connect(name, why))?;
    device.ok_or_else(|| {
        let what = format!(
            "`{address}` is reached from an interface, and not said from which: open an Endpoint \
             there, on `packet:eth0`, say, and connect by that"
        );
        io::Error::new(io::ErrorKind::InvalidInput, what)
    })
}

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
}

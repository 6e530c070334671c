//! The key of a world: where one is needed, and whether it can have been drawn.

use std::net::{IpAddr, SocketAddr};

use doorbell_job::Route;

/// A command that draws a key.
const DRAWS: &str = "head -c 8 /dev/urandom | od -An -tx8 | tr -d ' '";

/// Keys below this number are taken for ones that somebody has thought up: of those that are drawn,
/// one of four billion is below it.
const LEAST: u64 = 1 << 32;

/// Returns why a world with these routes can't have this key, if it can't: processes that other
/// hosts may reach need one that was drawn. Process `rank` may be reached at its NICs, too, which
/// need not have the address by which others know it.
pub(super) fn refused(
    key: u64,
    routes: &[Route],
    (rank, nics): (usize, &[String]),
) -> Option<String> {
    let known = routes.iter().map(|route| &route.address).enumerate();
    let own = nics.iter().map(|address| (rank, address));
    let is_far = |(_, address): &(usize, &String)| !is_of_this_host(address);
    let (far, address) = known.chain(own).find(is_far).filter(|_| key < LEAST)?;
    let found = match key {
        0 => "this world has no key".to_owned(),
        weak => format!("the key of this world is {weak:x}, which nobody has drawn at random"),
    };
    Some(format!(
        "process {far} is at {address}, where other hosts may reach it, and {found}: whoever finds \
         the key could read and write the memory of all processes. Draw one by `{DRAWS}`, and give \
         it to all of them as the environment variable DOORBELL_KEY or as `Config::key`"
    ))
}

/// Returns whether only programs of this host reach an address.
fn is_of_this_host(address: &str) -> bool {
    let (device, place) = address.split_once(':').unwrap_or((address, ""));
    let ip = |text: &str| {
        text.parse::<IpAddr>()
            .ok()
            .or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
    };
    match device {
        "shm" => true,
        "udp" => {
            let host = place.rsplit_once(':').map_or(place, |(host, _)| host);
            ip(place).map_or(host == "localhost", |ip| ip.is_loopback())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused_at(key: u64, addresses: &[&str]) -> Option<String> {
        let routes: Vec<_> = addresses.iter().map(|address| Route::by_first(*address)).collect();
        refused(key, &routes, (0, &[]))
    }

    /// The address that others know is not always that of the NIC.
    #[test]
    fn a_world_of_this_host_whose_nic_other_hosts_reach_needs_a_key() {
        let routes = [Route::by_first("udp:127.0.0.1:5000")];
        let nics = ["udp:192.0.2.7:5000".to_owned()];
        assert_eq!(refused(LEAST, &routes, (0, &nics)), None);
        let why = refused(0, &routes, (0, &nics)).expect("it needs one");
        assert!(why.contains("process 0 is at udp:192.0.2.7:5000"), "{why}");
    }

    #[test]
    fn a_world_that_no_other_host_reaches_needs_no_key() {
        let near = [
            "shm",
            "shm:job/3",
            "udp:127.0.0.1:5000",
            "udp:127.3.2.1",
            "udp:[::1]:5000",
            "udp:::1",
            "udp:localhost:5000",
            "udp:localhost",
        ];
        for key in [0, 1, u64::MAX] {
            assert_eq!(refused_at(key, &near), None);
        }
    }

    #[test]
    fn a_world_that_other_hosts_reach_needs_a_key_that_was_drawn() {
        for far in [
            "udp:192.0.2.7:5000",
            "udp:node7:5000",
            "udp:[2001:db8::1]:5000",
            "udp:0.0.0.0:5000",
            "packet:02:00:00:00:00:01",
            "packet-v2:127.0.0.1",
            "localhost",
            "udp",
            "udp:",
        ] {
            assert_eq!(refused_at(LEAST, &["shm:a", far]), None);
            for (key, found) in [(0, "has no key"), (0xC0FFEE, "is c0ffee, which nobody has drawn")]
            {
                let why = refused_at(key, &["shm:a", far]).expect("it needs one");
                for said in [found, "process 1", far, "DOORBELL_KEY", "Config::key", "urandom"] {
                    assert!(why.contains(said), "{why}");
                }
            }
        }
    }
}

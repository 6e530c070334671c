//! What errors say.

use std::io;

use doorbell_kit::chain;
use doorbell_transports::sharing::SharingError;
use doorbell_transports::{DeviceError, GrantError, LookUpError, ReachError, Spec};

fn refused() -> io::Error {
    io::Error::from_raw_os_error(24)
}

/// Half of them did, so that a program that shows an error with its causes said everything twice.
#[test]
fn no_error_says_what_its_cause_says() {
    let (device, interface) = ("packet", || "eth0".into());
    let (what, advice) = (|| "a raw socket".to_owned(), "use another");
    let source = refused;
    for why in [
        DeviceError::NoInterface {
            device,
            interface: interface(),
            there: vec![],
            source: source(),
        },
        DeviceError::Privilege { device, what: what(), source: source(), advice },
        DeviceError::Taken { device, what: what(), by: None, source: source(), advice },
        DeviceError::System { device, what: what(), source: source() },
    ] {
        let told = chain(&why);
        assert!(told.ends_with(&refused().to_string()), "{told}");
    }
    let address = "udp:192.0.2.7:4791".parse().expect("an address");
    let _ = chain(&ReachError::System { address, source: source() });
    let _ = chain(&GrantError::System(source()));
    let key = || "eth0".into();
    let there = vec![];
    let _ = chain(&SharingError::NoInterface { interface: key(), there, source: source() });
    let _ = chain(&SharingError::System { key: key(), what: "taking a tag", source: source() });
    for name in ["nonesuch", "udp:", "packet-v2:eth0,192.0.2.7"] {
        let _ = chain(&name.parse::<Spec>().expect_err("it is none"));
    }
    let (name, interface) = ("nonesuch".into(), None);
    let why = LookUpError::Failed { name, interface, source: source() };
    let told = chain(&DeviceError::from(why));
    assert!(told.ends_with(&refused().to_string()), "{told}");
}

#[test]
fn what_to_look_at_where_nobody_answers_fits_the_device() {
    let nobody = |address: &str| {
        let address = address.parse().expect("an address");
        ReachError::Nobody { address, why: "it was asked for" }.to_string()
    };
    let shm = nobody("shm:job/0");
    for says in ["is its program running on this machine", "container", "under this name?"] {
        assert!(shm.contains(says), "{shm}");
    }
    let packet = nobody("packet-v2:192.0.2.7");
    assert!(packet.ends_with("is the peer running, and on this network?"), "{packet}");
}

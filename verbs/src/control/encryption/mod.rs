//! Encryption of connections: the setting, and how far handshakes have come.

mod setting;
mod shaking;

use std::net::IpAddr;

use doorbell_core::cm::ConnectionError;
use doorbell_core::encap::Host;
use doorbell_core::nic;
use doorbell_core::wire::cm::TooLong;

pub use setting::Encryption;
pub(super) use shaking::{Shaking, may_be_clear};

/// Checks that private data fit into a message that is sealed.
pub(crate) fn check_fits(private: &[u8], limit: usize) -> Result<(), ConnectionError> {
    match private.len() {
        given if given > limit => Err(TooLong { given, limit }.into()),
        _ => Ok(()),
    }
}

/// Returns the address of the host at the other end of a way, without its port: for trust on first
/// use.
pub(super) fn host_of(way: &nic::Way) -> String {
    match way {
        nic::Way::Link(link) => format!("link {}", link.0),
        nic::Way::Network(outer) => {
            let (_, Host { gid, .. }) = outer.hosts();
            gid.to_ipv4().map_or(IpAddr::V6(gid.into()), IpAddr::V4).to_string()
        }
    }
}

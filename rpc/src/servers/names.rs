//! Hosts whose addresses are those of servers.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use doorbell_am::Name;

use super::source::LookUp;

/// The names of the servers with the number `service` at the addresses that a look-up finds.
pub async fn of(
    service: u64,
    looked_up: impl Future<Output = io::Result<Vec<SocketAddr>>> + Send,
) -> LookUp {
    let addresses = looked_up.await?;
    if addresses.is_empty() {
        return Err("the look-up has found no address".into());
    }
    Ok(addresses.into_iter().map(|at| Name::at(format!("udp:{at}"), service)).collect())
}

/// Asks the system for the addresses of a host.
pub async fn look_up(host: String) -> io::Result<Vec<SocketAddr>> {
    let looked_up = tokio::task::spawn_blocking(move || match host.to_socket_addrs() {
        Ok(addresses) => Ok(addresses.collect()),
        Err(why) => Err(io::Error::new(why.kind(), format!("looking up {host}: {why}"))),
    });
    looked_up.await?
}

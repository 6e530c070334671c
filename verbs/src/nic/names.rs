//! Addresses of peers as text, which may name a host.

use std::io;
use std::net::SocketAddr;
use std::thread;

use doorbell_transports::floor::naming_limits;
use doorbell_transports::udp::Udp;
use doorbell_transports::{Address, AddressError, DeviceError, HostName, LookUpError};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::handle::Nic;
use crate::error::ConnectError;

/// Parses the address of a peer, for a NIC at `own`. A host name is looked up on a thread that may
/// block; an address needs no thread, and is returned at once.
pub(crate) async fn find(own: &Address, text: &str) -> Result<Address, ConnectError> {
    let host = match text.parse() {
        Err(AddressError::Name(host)) => host,
        parsed => return Ok(parsed?),
    };
    let (own, failed) = (own.clone(), interrupted(&host));
    let found =
        aside(move || host.look_up_for(&own)).await.unwrap_or_else(|why| Err(failed(why)))?;
    tracing::debug!(%found, "looked up");
    Ok(found)
}

/// Looks up the address of this machine that a host name stands for, on a thread that may block.
pub(super) async fn find_own(host: HostName) -> Result<SocketAddr, DeviceError> {
    let failed = interrupted(&host);
    let found = aside(move || Udp::own_address(&host)).await;
    found.unwrap_or_else(|why| Err(failed(why).into()))
}

impl Nic {
    /// Returns the device, as text for [`open`](Self::open), by which a client reaches a peer at an
    /// address. On `udp` it is opened at the address of this machine's from which the system's
    /// route leads to the peer: a client of a server at a loopback address can't be reached from
    /// outside. The port is chosen by the system, unless the peer is at RoCE's own port, 4791,
    /// which is reached from that port only: at a loopback address, from that of another one. For a
    /// peer in shared memory it is `shm`. `None` for other devices, of which the interface has to
    /// be named.
    ///
    /// A host name is looked up on a thread that may block. Of its addresses, the first of IPv4 to
    /// which a route leads counts, or else of IPv6. A NIC that is opened there reaches the peer by
    /// the same name.
    ///
    /// A client may refuse packets of all others by [`strangers`](crate::Config::strangers).
    ///
    /// # Errors
    /// Returns an error when the address is malformed, the host's name is not known, or no route
    /// leads to the peer.
    pub async fn device_towards(address: &str) -> Result<Option<String>, ConnectError> {
        let peers = match address.parse() {
            Ok(Address::Udp(peer)) => vec![peer],
            Ok(Address::Shm(_)) => return Ok(Some("shm".to_owned())),
            Ok(_) => return Ok(None),
            Err(AddressError::Name(host)) => {
                let failed = interrupted(&host);
                let found = aside(move || host.look_up()).await;
                found.unwrap_or_else(|why| Err(failed(why)))?
            }
            Err(why) => return Err(why.into()),
        };
        Ok(Some(format!("udp:{}", own_towards(peers)?)))
    }
}

/// Returns the address of this machine's from which a route leads to one of a peer's addresses: of
/// the family that a device which is opened by the same host name prefers.
fn own_towards(mut peers: Vec<SocketAddr>) -> Result<SocketAddr, ConnectError> {
    peers.sort_by_key(SocketAddr::is_ipv6);
    let mut ways = peers.into_iter().map(Udp::own_address_towards);
    let first = ways.next().expect("a name that was looked up has an address");
    Ok(first.or_else(|why| ways.find_map(Result::ok).ok_or(why))?)
}

/// Returns the error for a host name that could not be looked up, since there was no thread, or the
/// runtime ended.
fn interrupted(host: &HostName) -> impl FnOnce(io::Error) -> LookUpError + use<> {
    let name = host.name().into();
    |source| LookUpError::Failed { name, interface: None, source }
}

/// Runs a blocking call on another thread: one of Tokio's if this is called in a runtime, and a new
/// one elsewhere. An error says why there is no result.
async fn aside<R: Send + 'static>(does: impl FnOnce() -> R + Send + 'static) -> io::Result<R> {
    let (answer, answered) = oneshot::channel();
    let does = move || {
        // The receiver is gone if its future was dropped.
        let _ = answer.send(does());
    };
    match Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(does)),
        Err(_) => {
            let thread = thread::Builder::new().name("doorbell-look-up".to_owned());
            thread.spawn(does).map(drop).map_err(naming_limits)?;
        }
    }
    let ended = "the runtime ended before the resolver had answered";
    answered.await.map_err(|_| io::Error::new(io::ErrorKind::Interrupted, ended))
}

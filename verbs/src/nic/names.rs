//! Addresses of peers as text, which may name a host.

use std::io;
use std::net::SocketAddr;
use std::thread;

use doorbell_transports::floor::naming_limits;
use doorbell_transports::udp::Udp;
use doorbell_transports::{Address, AddressError, HostName, LookUpError, OpenError};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

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
pub(super) async fn find_own(host: HostName) -> Result<SocketAddr, OpenError> {
    let failed = interrupted(&host);
    let found = aside(move || Udp::own_address(&host)).await;
    found.unwrap_or_else(|why| Err(failed(why).into()))
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

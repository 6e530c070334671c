//! Peers' addresses as text, in which a host may be named.

use std::io;
use std::net::SocketAddr;
use std::thread;

use doorbell_transports::floor::naming_limits;
use doorbell_transports::udp::Udp;
use doorbell_transports::{Address, AddressError, HostName, LookUpError, OpenError};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::error::ConnectError;
use crate::nic::Nic;

/// The address that text stands for, for a peer of `nic`. The name of a host is looked up, by a
/// thread that may block. An address takes no thread, and is there at once.
pub(crate) async fn find(nic: &Nic, text: &str) -> Result<Address, ConnectError> {
    let host = match text.parse() {
        Err(AddressError::Name(host)) => host,
        parsed => return Ok(parsed?),
    };
    let (own, failed) = (nic.address().clone(), interrupted(&host));
    let found =
        aside(move || host.look_up_for(&own)).await.unwrap_or_else(|why| Err(failed(why)))?;
    tracing::debug!(%found, "looked up");
    Ok(found)
}

/// The address of this machine's that a host name stands for, looked up by a thread that may block.
pub(crate) async fn find_own(host: HostName) -> Result<SocketAddr, OpenError> {
    let failed = interrupted(&host);
    let found = aside(move || Udp::own_address(&host)).await;
    found.unwrap_or_else(|why| Err(failed(why).into()))
}

/// What to say of a host name for which there was no thread, or no time.
fn interrupted(host: &HostName) -> impl FnOnce(io::Error) -> LookUpError + use<> {
    let name = host.name().into();
    |source| LookUpError::Failed { name, interface: None, source }
}

/// Does what may block on another thread: one of Tokio's where this is called in a runtime, and one
/// of its own elsewhere. An error says why there is no answer.
async fn aside<R: Send + 'static>(does: impl FnOnce() -> R + Send + 'static) -> io::Result<R> {
    let (answer, answered) = oneshot::channel();
    let does = move || {
        // Whoever asked may have given it up.
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

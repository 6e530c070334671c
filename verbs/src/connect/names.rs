//! Peers' addresses as text, in which a host may be named.

use std::io;
use std::thread;

use doorbell_transports::{Address, AddressError, LookUpError};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::error::ConnectError;
use crate::nic::Nic;

/// The address that text stands for, for a peer of `nic`. The name of a host is looked up, by a
/// thread that may block: one of Tokio's where this is called in a runtime, and one of its own
/// elsewhere. An address takes no thread, and is there at once.
pub(crate) async fn find(nic: &Nic, text: &str) -> Result<Address, ConnectError> {
    let host = match text.parse() {
        Err(AddressError::Name(host)) => host,
        parsed => return Ok(parsed?),
    };
    let own = nic.address().clone();
    let failed = {
        let name = host.name().into();
        |source| LookUpError::Failed { name, interface: None, source }
    };
    let (answer, answered) = oneshot::channel();
    let looks = move || {
        // Whoever asked may have given it up.
        let _ = answer.send(host.look_up_for(&own));
    };
    match Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(looks)),
        Err(_) => {
            let thread = thread::Builder::new().name("doorbell-look-up".to_owned());
            if let Err(why) = thread.spawn(looks) {
                return Err(failed(doorbell_transports::naming_limits(why)).into());
            }
        }
    }
    let ended = "the runtime ended before the resolver had answered";
    let ended = |_| Err(failed(io::Error::new(io::ErrorKind::Interrupted, ended)));
    let found = answered.await.unwrap_or_else(ended)?;
    tracing::debug!(%found, "looked up");
    Ok(found)
}

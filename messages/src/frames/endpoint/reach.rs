//! Finding the way to a peer.

use doorbell_verbs::{ConnectError, Name, Unwelcome};

use super::shared::Shared;
use crate::frames::name::queue_pair;

/// Finds the way to a peer, and notes it.
pub async fn reach(shared: &Shared, name: &Name) -> Result<(), ConnectError> {
    if shared.lock().is_reached(name) {
        return Ok(());
    }
    let Some((qpn, key)) = queue_pair(name) else {
        let why = Unwelcome::OtherKind("frames");
        return Err(ConnectError::Unwelcome { name: name.to_string(), why });
    };
    let destination = shared.nic.destination(name.address(), qpn, key).await?;
    let mut state = shared.lock();
    state.reached(name, destination);
    shared.send(state);
    Ok(())
}

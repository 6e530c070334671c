//! Finding the way to a peer.

use doorbell_verbs::ConnectError;

use super::shared::Shared;
use crate::frames::name::Name;

/// Finds the way to a peer, and notes it.
pub async fn reach(shared: &Shared, name: &Name) -> Result<(), ConnectError> {
    if shared.lock().is_reached(name) {
        return Ok(());
    }
    let destination = shared.nic.destination(name.address(), name.qpn(), name.key()).await?;
    let mut state = shared.lock();
    state.reached(name, destination);
    shared.send(state);
    Ok(())
}

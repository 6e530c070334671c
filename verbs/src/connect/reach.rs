//! Finding the route to a peer's device.

use doorbell_core::nic::Way;
use doorbell_transports::Address;

use crate::error::ConnectError;
use crate::nic::{Nic, find};
use crate::progress::yield_to_others;

/// Returns the route to a peer's device, which the device may have to look for.
pub(crate) async fn reach(nic: &Nic, to: &Address) -> Result<Way, ConnectError> {
    loop {
        let engine = nic.engine();
        let way = engine.with(|adapter| match nic.is_closed() {
            true => Err(ConnectError::NicClosed(to.to_string())),
            false => adapter.reach(to).map_err(ConnectError::from),
        })?;
        if let Some(way) = way {
            return Ok(way);
        }
        // A device that looks for a neighbour reports progress only while it looks.
        if !engine.turn() {
            let mut once = false;
            std::future::poll_fn(|context| match std::mem::replace(&mut once, true) {
                true => std::task::Poll::Ready(()),
                false => yield_to_others(context),
            })
            .await;
        }
    }
}

/// Tells whether a route leads to the device at an address.
pub(super) async fn leads_to(nic: &Nic, way: &Way, address: &str) -> Result<bool, ConnectError> {
    let address = find(nic.address(), address).await?;
    Ok(way.ends_with(&reach(nic, &address).await?))
}

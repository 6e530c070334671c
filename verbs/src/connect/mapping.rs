//! Granting memory to a peer on the same machine, and mapping what a peer has granted.

use std::sync::Arc;

use doorbell_transports::GrantError;
use tokio::sync::Notify;

use super::connection::Connection;
use crate::control::{Absent, Control, Granted, MOST_UNTAKEN, granted_as};
use crate::error::MapError;
use crate::memory::{Mapped, Registered};
use crate::waiting::with_progress;
use crate::work::RemoteMemory;

impl Connection {
    /// Lets the peer [map](Self::map) memory that was [registered for
    /// that](crate::Domain::register_shared). The peer then reads and writes it like local memory,
    /// in nanoseconds. A grant can't be revoked.
    ///
    /// The grant is to the peer's program, and not to its queue pair alone. A program that has
    /// mapped the memory needs no key to change it, by any of its connections to this NIC, in
    /// whatever domain.
    ///
    /// # Errors
    /// Returns an error when the memory was not registered for mapping, or with another NIC, or
    /// without the right to write; or when the peer is not on this machine.
    pub fn grant(&self, memory: &Registered) -> Result<(), GrantError> {
        let device = self.nic().engine().capabilities.name;
        let unsupported = GrantError::Unsupported { device };
        let Some(shared) = memory.shared(self.nic())? else { return Err(unsupported) };
        let Some(path) = self.link().nic_side(|side| side.path.as_ref().map(|&(_, path)| path))
        else {
            return Err(unsupported);
        };
        let tag = granted_as(&memory.remote());
        self.nic().engine().with(|adapter| adapter.grant(path, tag, shared))
    }

    /// Maps memory of the peer's. The call waits until the peer has [granted](Self::grant) memory
    /// of which `memory` is the whole or a part, for as long as that takes: limit it by
    /// [`timeout`](tokio::time::timeout) if the grant may not come. [`Mapped`] memory is also
    /// written without packets by queue pairs.
    ///
    /// Grants that come before they are waited for are kept, 64 of each peer process. What other
    /// peers grant takes nothing from these. Where a peer has made more than 320 grants that nobody
    /// mapped, nobody can tell whether one that is asked for has been dropped, and the call waits
    /// for 3 seconds at most.
    ///
    /// # Errors
    /// Returns why the connection ended, if it ends before; or that the grant was dropped, since
    /// the peer made more than are kept.
    pub async fn map(&self, memory: RemoteMemory) -> Result<Mapped, MapError> {
        let Some(path) = self.link().nic_side(|side| side.path.as_ref().map(|&(_, path)| path))
        else {
            return Err(self.ended().await.into());
        };
        let (nic, rkey, task) = (self.nic(), memory.rkey(), Arc::new(Notify::new()));
        let take = |control: &mut Control| {
            control.grants.take(path, rkey, &task).map(|Granted { base, region, .. }| {
                let id = control.nic.map(path, rkey, base, region.clone());
                Mapped::new(nic.clone(), id, region)
            })
        };
        loop {
            let taken = nic.engine().with(|adapter| match take(adapter.control()) {
                // The peer may have granted the memory again, which the device has yet to tell.
                Err(Absent::PushedOut) => {
                    adapter.look_for_grants();
                    take(adapter.control())
                }
                taken => taken,
            });
            match taken {
                Ok(mapped) => return Ok(mapped),
                Err(Absent::PushedOut) => return Err(MapError::PushedOut { most: MOST_UNTAKEN }),
                Err(Absent::NotYet) => {}
            }
            with_progress(nic.engine(), async {
                tokio::select! {
                    biased;
                    // The grant has arrived, and may have been taken by another task.
                    () = task.notified() => Ok(()),
                    ending = self.link().ended() => Err(ending),
                }
            })
            .await?;
        }
    }
}

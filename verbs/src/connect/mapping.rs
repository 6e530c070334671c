//! Granting memory to a peer on the same machine, and mapping what a peer has granted.

use doorbell_transports::GrantError;

use super::connection::Connection;
use crate::control::{Control, Granted, granted_as};
use crate::link::Ending;
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
    /// # Errors
    /// Returns why the connection ended, if it ends before.
    pub async fn map(&self, memory: RemoteMemory) -> Result<Mapped, Ending> {
        let Some(path) = self.link().nic_side(|side| side.path.as_ref().map(|&(_, path)| path))
        else {
            return Err(self.ended().await);
        };
        let (nic, rkey) = (self.nic(), memory.rkey());
        let take = |control: &mut Control| {
            control.grants.take(path, rkey).map(|Granted { base, region, .. }| {
                let id = control.nic.map(path, rkey, base, region.clone());
                Mapped::new(nic.clone(), id, region)
            })
        };
        loop {
            let mut woken = match nic.engine().with(|adapter| take(adapter.control())) {
                Ok(mapped) => return Ok(mapped),
                Err(woken) => woken,
            };
            with_progress(nic.engine(), async {
                tokio::select! {
                    biased;
                    // The grant has arrived, was pushed out by others, or was taken by another
                    // task.
                    _ = &mut woken => Ok(()),
                    ending = self.link().ended() => Err(ending),
                }
            })
            .await?;
        }
    }
}

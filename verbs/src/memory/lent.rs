//! Bytes that peers may read for a while.

use std::fmt;

use bytes::Bytes;
use doorbell_core::nic::Registration;

use crate::control::ControlOp;
use crate::error::RegisterError;
use crate::nic::{Domain, Nic};
use crate::work::RemoteMemory;

/// Immutable bytes of this program that peers may read, without a copy of them. They can be read
/// until this is dropped.
///
/// ```
/// # use bytes::Bytes;
/// # use doorbell_verbs::Nic;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let nic = Nic::builder().open_blocking(&format!("shm:lent/{}", std::process::id()))?;
/// let bytes = Bytes::from(vec![7; 1000]);
/// let lent = nic.domain().lend(bytes.clone())?;
/// assert_eq!(lent.remote().len(), 1000);
/// # Ok(())
/// # }
/// ```
pub struct Lent {
    nic: Nic,
    registration: Registration,
}

impl Lent {
    /// Returns the memory that peers may read.
    pub fn remote(&self) -> RemoteMemory {
        let Registration { address, rkey, len, .. } = self.registration;
        RemoteMemory::new(address, rkey, len)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.nic.engine().submit(ControlOp::Deregister(self.registration.lkey));
    }
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent").field("remote", &self.remote()).finish_non_exhaustive()
    }
}

impl Domain {
    /// Lends bytes to peers, which may read them until what this returns is dropped. Peers can do
    /// nothing else with them, and neither can requests of this program.
    ///
    /// # Errors
    /// Returns an error when there are as many registrations as configured.
    pub fn lend(&self, bytes: Bytes) -> Result<Lent, RegisterError> {
        let lends = |nic: &mut doorbell_core::nic::Nic| nic.lend(self.id(), bytes);
        let registration = self.nic().engine().with(|adapter| lends(&mut adapter.control().nic))?;
        Ok(Lent { nic: self.nic().clone(), registration })
    }
}

//! Memory of peers on the same machine that is mapped here.

use std::fmt;
use std::ops::Deref;

use doorbell_core::memory::Region;
use doorbell_core::nic::MappingId;

use crate::control::ControlOp;
use crate::nic::Nic;

/// Memory of a peer's that is [mapped](crate::Connection::map) here: a [`Region`], read and written
/// like local memory.
///
/// Until this is dropped, the NIC has the memory mapped, too, for reliable connections to the
/// peer's NIC. A plain write to the memory by its key is then a single copy: no packet is sent, and
/// the peer does nothing. The write completes when all earlier requests have. The checks of the
/// peer's NIC are skipped, above all whether the key was revoked: the grant stands in for them.
///
/// Such a write is not carried out before any earlier read, atomic operation or write. Behind
/// those, a long write waits, and a short one is sent as a packet unless more follow. It may be
/// carried out before earlier sends. So if one of those fails for good, a write behind it may have
/// been carried out although it was flushed; and an earlier message that is received into this
/// memory may arrive later.
///
/// A clone of the [`Region`] stays mapped for the program, but not for the NIC, so keep this value.
///
/// ```
/// # use doorbell_verbs::{Nic, QueuePairConfig, Rights, ServiceId, SharedMemory};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (near, far) = (Nic::open("shm").await?, Nic::open("shm").await?);
/// # let mut listener = far.listen(ServiceId(1)).await?;
/// # let own = near.domain().queue_pair(&QueuePairConfig::default())?;
/// # let other = far.domain().queue_pair(&QueuePairConfig::default())?;
/// # let to = listener.name();
/// # let (own, other) = tokio::join!(own.connect(&to, &[]),
/// #     async { other.accept(listener.accept().await?, &[]).await });
/// # let ((own, _), (other, _)) = (own?, other?);
/// let memory = far.domain().register_shared(SharedMemory::new(4096)?, Rights::REMOTE)?;
/// other.connection().grant(&memory)?;
/// let remote = memory.remote(); // which the peer is told, by whatever way
///
/// let mapped = own.connection().map(remote).await?;
/// own.write_inline(b"one copy", remote).await?;
/// assert_eq!(near.statistics().nic.written_here, 1);
/// assert_eq!(memory.load(0)?, u64::from_ne_bytes(*b"one copy"));
/// assert_eq!(mapped.load(0)?, u64::from_ne_bytes(*b"one copy"));
/// # Ok(())
/// # }
/// ```
#[must_use = "without it, the NIC does not know that the memory is mapped"]
pub struct Mapped {
    nic: Nic,
    id: MappingId,
    region: Region,
}

impl Mapped {
    pub(crate) fn new(nic: Nic, id: MappingId, region: Region) -> Self {
        Self { nic, id, region }
    }

    /// Returns the region, which stays mapped for as long as there is a handle to it.
    pub fn region(&self) -> &Region {
        &self.region
    }
}

impl Deref for Mapped {
    type Target = Region;

    fn deref(&self) -> &Region {
        &self.region
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        self.nic.engine().submit(ControlOp::Unmap(self.id));
    }
}

impl fmt::Debug for Mapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Mapped").field(&self.region).finish()
    }
}

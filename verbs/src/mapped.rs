//! Memory of peers on the same machine that is mapped here.

use std::fmt;
use std::ops::Deref;

use doorbell_core::memory::Region;
use doorbell_core::nic::MappingId;

use crate::nic::Nic;
use crate::progress::Errand;

/// Memory of a peer's that is [mapped](crate::Connection::map) here: a [`Region`], read and written as
/// one's own.
///
/// Until this is dropped, the NIC has it mapped, too, for connections to the NIC of the peer. A plain write
/// that they make to it, by its key, is one copy then, and no packet, and nobody over there does
/// anything; a long one is copied when all that its queue pair was to do before is done. So what was
/// mapped can be written as fast as any memory, in the order of everything else, and with the same
/// completions. What the peer's NIC would have asked is not asked again, above all whether the key was
/// taken back: the grant stands for it.
pub struct Mapped {
    nic: Nic,
    id: MappingId,
    region: Region,
}

impl Mapped {
    pub(crate) fn new(nic: Nic, id: MappingId, region: Region) -> Self {
        Self { nic, id, region }
    }

    /// The memory itself, which stays mapped for as long as there is a handle to it.
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
        self.nic.shared().run(Errand::Unmap(self.id));
    }
}

impl fmt::Debug for Mapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Mapped").field(&self.region).finish()
    }
}

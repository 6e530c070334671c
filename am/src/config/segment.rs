//! The memory of an endpoint in which peers place payloads.

use std::sync::Arc;

use doorbell_verbs::{Region, SharedMemory};

/// The memory of an endpoint in which peers may place payloads.
#[derive(Clone, Debug)]
pub enum SegmentMemory {
    /// Memory of this process alone, which peers write by their NICs.
    Own(Region),
    /// Shared memory, which [admitted](crate::EndpointConfig::admits) peers on the same machine map
    /// when they first place something. What they place is one copy from then on. Each of them can
    /// read and alter all of the memory, for as long as it likes, even if it is not admitted any
    /// more. So all of them must be trusted like this process itself. See
    /// [`Connection::grant`](doorbell_verbs::Connection::grant).
    Shared(Arc<SharedMemory>),
}

impl SegmentMemory {
    /// Returns the memory as a region.
    pub fn region(&self) -> &Region {
        match self {
            Self::Own(region) => region,
            Self::Shared(memory) => memory.region(),
        }
    }
}

impl From<Region> for SegmentMemory {
    fn from(region: Region) -> Self {
        Self::Own(region)
    }
}

impl From<SharedMemory> for SegmentMemory {
    fn from(memory: SharedMemory) -> Self {
        Self::Shared(Arc::new(memory))
    }
}

//! The memory of an endpoint in which peers place payloads.

use std::sync::Arc;

use doorbell_verbs::{Region, SharedMemory};

/// Memory in which peers may place payloads.
#[derive(Clone, Debug)]
pub enum SegmentMemory {
    /// Of this process alone: peers write there by NICs.
    Own(Region),
    /// Shared: peers on the same machine that are [admitted](EndpointConfig::admits) map it when
    /// they first place something, and what they place is one copy from then on. Each of them can
    /// read and alter all of it, for as long as it likes, whatever becomes of the tag: it is for
    /// peers that are trusted like oneself. See
    /// [`Connection::grant`](doorbell_verbs::Connection::grant).
    Shared(Arc<SharedMemory>),
}

impl SegmentMemory {
    /// The memory.
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

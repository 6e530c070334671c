//! Memory for received data, which is used again.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::sync::lock::locked;
use doorbell_core::memory::{Frozen, Region};

/// The unit of the lengths of pooled regions, in bytes.
const UNIT: usize = 64 * 1024;

/// Regions for received data. A region that was used comes back, and is used again, so that its
/// pages need not be made again. For layers of this workspace.
#[derive(Clone, Debug)]
pub struct RegionPool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Regions that are not in use. The one that was unused for longest is the first.
    free: Mutex<Vec<Region>>,
    /// The most bytes of unused regions that are kept.
    kept: usize,
}

impl RegionPool {
    /// Makes a pool that keeps at most `kept` bytes of regions that are not in use.
    pub fn new(kept: usize) -> Self {
        Self(Arc::new(Inner { free: Mutex::default(), kept }))
    }

    /// Takes a region of at least `len` bytes, and at most twice as many. What is in there before
    /// data is received is not said.
    pub fn take(&self, len: usize) -> PooledRegion {
        let mut free = self.0.lock();
        let fits = |region: &Region| (len..=2 * len.max(UNIT)).contains(&region.len());
        let region = free.iter().rposition(fits).map(|place| free.remove(place));
        drop(free);
        let region = region.unwrap_or_else(|| Region::new(len.next_multiple_of(UNIT).max(UNIT)));
        PooledRegion { region: Some(region), pool: self.clone() }
    }
}

impl Inner {
    fn give_back(&self, region: Region) {
        let mut free = self.lock();
        free.push(region);
        let mut kept: usize = free.iter().map(Region::len).sum();
        while kept > self.kept {
            kept -= free.remove(0).len();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Region>> {
        locked(&self.free)
    }
}

/// A region of a [`RegionPool`], which goes back there when it is dropped.
pub struct PooledRegion {
    /// The region that the pool has lent, or `None` when the region was moved out.
    region: Option<Region>,
    pool: RegionPool,
}

impl PooledRegion {
    /// Returns a handle to the region.
    pub fn region(&self) -> Region {
        self.region.clone().expect("the region is here until this is dropped")
    }

    /// Calls a function with the region's bytes, to be written. Returns `None` if somebody else has
    /// a handle to the region.
    pub fn write<R>(&mut self, writes: impl FnOnce(&mut [u8]) -> R) -> Option<R> {
        let mut private = self.region.take()?.try_private().ok()?;
        let written = writes(private.as_bytes_mut());
        self.region = Some(private.open());
        Some(written)
    }

    /// Returns the region as bytes that own it, or `None` if somebody else still has a handle to
    /// it. The region goes back to the pool when the bytes are dropped.
    pub fn freeze(mut self) -> Option<FrozenRegion> {
        let frozen = self.region.take()?.try_private().ok()?.freeze();
        Some(FrozenRegion { frozen: Some(frozen), pool: self.pool.clone() })
    }
}

impl Drop for PooledRegion {
    fn drop(&mut self) {
        // A region to which somebody else has a handle may still be written.
        if let Some(private) = self.region.take().and_then(|region| region.try_private().ok()) {
            self.pool.0.give_back(private.open());
        }
    }
}

impl fmt::Debug for PooledRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PooledRegion").field(&self.region).finish()
    }
}

/// Received data in a region of a [`RegionPool`], to which the region goes back when this is
/// dropped.
pub struct FrozenRegion {
    /// The received data, or `None` while the `FrozenRegion` is being dropped.
    frozen: Option<Frozen>,
    pool: RegionPool,
}

impl AsRef<[u8]> for FrozenRegion {
    fn as_ref(&self) -> &[u8] {
        self.frozen.as_ref().map_or(&[], AsRef::as_ref)
    }
}

impl Drop for FrozenRegion {
    fn drop(&mut self) {
        if let Some(frozen) = self.frozen.take() {
            self.pool.0.give_back(frozen.open());
        }
    }
}

impl fmt::Debug for FrozenRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FrozenRegion").field(&self.frozen).finish()
    }
}

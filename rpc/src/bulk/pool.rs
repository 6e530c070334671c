//! Memory for bodies that are received.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use doorbell_verbs::{Frozen, Region};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What memory is counted in.
const UNIT: usize = 64 * 1024;

/// Memory for bodies, of which there is no more than a bound: lent to senders, held by the program
/// as bodies, or kept to be used again.
#[derive(Clone, Debug)]
pub struct Pool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The units that may still be lent.
    room: Arc<Semaphore>,
    units: usize,
    /// Regions that nobody uses, which are written already and so cost no page faults; the longest
    /// unused first.
    free: Mutex<Vec<Region>>,
}

/// How many bytes of regions that nobody uses are kept.
const KEPT: usize = 128 << 20;

impl Pool {
    /// A pool with room for so many bytes.
    pub fn new(bytes: usize) -> Self {
        let units = bytes.div_ceil(UNIT).clamp(1, u32::MAX as usize);
        let room = Arc::new(Semaphore::new(units));
        Self(Arc::new(Inner { room, units, free: Mutex::default() }))
    }

    /// Memory for a body of a length, when there is room. A body that is longer than all of the
    /// pool gets it when nothing else is lent.
    pub async fn take(&self, len: usize) -> Lent {
        let units = len.div_ceil(UNIT).clamp(1, self.0.units);
        let permit = self.0.room.clone().acquire_many_owned(units as u32).await;
        let permit = permit.expect("the semaphore is never closed");
        let region = self.0.take(len);
        Lent { region, len, permit, pool: self.clone() }
    }

    /// How many bytes are lent or held, in whole units.
    pub fn used(&self) -> usize {
        (self.0.units - self.0.room.available_permits()) * UNIT
    }
}

impl Inner {
    /// A region of at least that length, and no more than twice that.
    fn take(&self, len: usize) -> Region {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |region: &Region| (len..=2 * len.max(UNIT)).contains(&region.len());
        match free.iter().rposition(fits) {
            Some(place) => free.remove(place),
            None => {
                drop(free);
                Region::new(len.next_multiple_of(UNIT).max(UNIT))
            }
        }
    }

    fn give_back(&self, region: Region) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.push(region);
        let mut kept: usize = free.iter().map(Region::len).sum();
        while kept > KEPT {
            kept -= free.remove(0).len();
        }
    }
}

/// Memory for a body, lent to its sender.
pub struct Lent {
    region: Region,
    len: usize,
    permit: OwnedSemaphorePermit,
    pool: Pool,
}

impl Lent {
    /// The length of the body that the memory is for.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The memory, to be registered. It has to be revoked before the body is taken.
    pub fn region(&self) -> Region {
        self.region.clone()
    }

    /// The body that was written there; `None` if anybody still leads to the memory. When the last
    /// handle to the body is dropped, the memory goes back to the pool.
    pub fn into_bytes(self) -> Option<Bytes> {
        let Self { region, len, permit, pool } = self;
        let frozen = Some(region.try_private().ok()?.freeze());
        Some(Bytes::from_owner(Received { frozen, permit: Some(permit), pool }).slice(..len))
    }
}

/// A body whose memory goes back to its pool.
struct Received {
    /// There until this is dropped.
    frozen: Option<Frozen>,
    permit: Option<OwnedSemaphorePermit>,
    pool: Pool,
}

impl AsRef<[u8]> for Received {
    fn as_ref(&self) -> &[u8] {
        self.frozen.as_ref().map_or(&[], AsRef::as_ref)
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        if let Some(frozen) = self.frozen.take() {
            self.pool.0.give_back(frozen.open());
        }
        drop(self.permit.take());
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_body_gives_its_memory_back_and_what_is_beyond_the_bound_waits() {
        let pool = Pool::new(2 * UNIT);
        let lent = pool.take(UNIT + 1).now_or_never().expect("there is room");
        lent.region().write_at(UNIT, &[7]).expect("it is long enough");
        let body = lent.into_bytes().expect("nobody else leads there");
        assert_eq!((body.len(), body[UNIT]), (UNIT + 1, 7));
        assert!(pool.take(1).now_or_never().is_none());
        drop(body);
        assert_eq!(pool.0.free.lock().expect("it is not poisoned").len(), 1);
        let again = pool.take(2 * UNIT).now_or_never().expect("the memory is back");
        assert_eq!(again.region().load(UNIT).expect("it is long enough") & 0xff, 7);
    }

    #[test]
    fn memory_that_somebody_else_leads_to_is_no_body() {
        let pool = Pool::new(UNIT);
        let lent = pool.take(8).now_or_never().expect("there is room");
        let _other = lent.region();
        assert!(lent.into_bytes().is_none());
    }
}

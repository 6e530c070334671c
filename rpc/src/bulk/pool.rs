//! A pool of memory for long data that this end receives: bodies, and long messages of streams.

use std::sync::Arc;

use bytes::Bytes;
use doorbell_verbs::Region;
use doorbell_verbs::floor::{FrozenRegion, PooledRegion, RegionPool};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The unit in which memory is counted, in bytes.
const UNIT: usize = 64 * 1024;

/// A bounded amount of memory for long data. Memory of the pool is lent to the sender of a body,
/// held by the program as a body, filled by messages of streams that the program has not read, or
/// kept to be used again. Peers take memory from it through [`Share`]s.
#[derive(Clone, Debug)]
pub struct Pool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The units that are not in use, as permits.
    room: Arc<Semaphore>,
    units: usize,
    regions: RegionPool,
}

/// The most bytes of unused regions that are kept.
const KEPT: usize = 128 << 20;

impl Pool {
    /// Makes a pool of at most `bytes` bytes.
    pub fn new(bytes: usize) -> Self {
        let units = bytes.div_ceil(UNIT).clamp(1, u32::MAX as usize);
        let room = Arc::new(Semaphore::new(units));
        Self(Arc::new(Inner { room, units, regions: RegionPool::new(KEPT) }))
    }

    /// A share that may take all of the pool, for an end that has a single peer.
    pub fn whole(&self) -> Share {
        self.share_of_units(self.0.units)
    }

    /// A share that may take half of the pool, or `longest` bytes if that is more, for one peer of
    /// many. Whatever the peer takes, as much is left for the others.
    pub fn half(&self, longest: usize) -> Share {
        self.share_of_units((self.0.units / 2).max(longest.div_ceil(UNIT)))
    }

    fn share_of_units(&self, units: usize) -> Share {
        let units = units.clamp(1, self.0.units);
        Share { pool: self.clone(), room: Arc::new(Semaphore::new(units)), units }
    }

    /// The number of bytes that are lent, held or reserved, in whole units.
    pub fn used(&self) -> usize {
        (self.0.units - self.0.room.available_permits()) * UNIT
    }
}

/// The part of a [`Pool`] that one peer may use at a time.
#[derive(Clone, Debug)]
pub struct Share {
    pool: Pool,
    /// The units of the share that are not in use, as permits.
    room: Arc<Semaphore>,
    units: usize,
}

impl Share {
    /// Reserves room for `len` bytes, as soon as both the share and the pool have it. A length
    /// beyond the whole share waits until nothing else of the share is in use, and then gets all of
    /// it.
    pub async fn reserve(&self, len: usize) -> Reserved {
        let units = len.div_ceil(UNIT).clamp(1, self.units) as u32;
        let open = "the semaphores are never closed";
        let of_share = self.room.clone().acquire_many_owned(units).await.expect(open);
        let of_pool = self.pool.0.room.clone().acquire_many_owned(units).await.expect(open);
        Reserved { _of_share: of_share, _of_pool: of_pool }
    }

    /// Takes memory for a body of `len` bytes, as soon as there is room.
    pub async fn lend(&self, len: usize) -> Lent {
        let reserved = self.reserve(len).await;
        Lent { region: self.pool.0.regions.take(len), len, reserved }
    }
}

/// Reserved room of a share and of its pool. Dropping it gives the room back.
#[derive(Debug)]
pub struct Reserved {
    _of_share: OwnedSemaphorePermit,
    _of_pool: OwnedSemaphorePermit,
}

/// Memory for a body, which the sender of the body may write into.
pub struct Lent {
    region: PooledRegion,
    len: usize,
    reserved: Reserved,
}

impl Lent {
    /// The length of the body that the memory is for.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The memory, to be registered. The registration must be revoked before the body is taken out.
    pub fn region(&self) -> Region {
        self.region.region()
    }

    /// The body that was written into the memory; `None` if somebody still has access to the
    /// memory. When the last handle to the body is dropped, the memory goes back to the pool.
    pub fn into_bytes(self) -> Option<Bytes> {
        let Self { region, len, reserved } = self;
        let received = Received { frozen: region.freeze()?, _reserved: reserved };
        Some(Bytes::from_owner(received).slice(..len))
    }
}

/// A received body, whose memory goes back to its pool when this is dropped. The memory goes back
/// before the room for it does.
struct Received {
    frozen: FrozenRegion,
    _reserved: Reserved,
}

impl AsRef<[u8]> for Received {
    fn as_ref(&self) -> &[u8] {
        self.frozen.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_body_gives_its_memory_back_and_what_is_beyond_the_bound_waits() {
        let pool = Pool::new(2 * UNIT);
        let share = pool.whole();
        let lent = share.lend(UNIT + 1).now_or_never().expect("there is room");
        lent.region().write_at(UNIT, &[7]).expect("it is long enough");
        let body = lent.into_bytes().expect("nobody else leads there");
        assert_eq!((body.len(), body[UNIT]), (UNIT + 1, 7));
        assert!(share.lend(1).now_or_never().is_none());
        drop(body);
        let again = share.lend(2 * UNIT).now_or_never().expect("the memory is back");
        assert_eq!(again.region().load(UNIT).expect("it is long enough") & 0xff, 7);
    }

    #[test]
    fn memory_that_somebody_else_leads_to_is_no_body() {
        let share = Pool::new(UNIT).whole();
        let lent = share.lend(8).now_or_never().expect("there is room");
        let _other = lent.region();
        assert!(lent.into_bytes().is_none());
    }

    #[test]
    fn a_peer_that_has_all_of_its_share_leaves_as_much_for_others() {
        let pool = Pool::new(4 * UNIT);
        let [one, other] = [pool.half(UNIT), pool.half(UNIT)];
        let held = [UNIT, UNIT].map(|len| one.reserve(len).now_or_never().expect("there is room"));
        assert!(one.reserve(1).now_or_never().is_none());
        assert_eq!(pool.used(), 2 * UNIT);
        let _held = other.reserve(2 * UNIT).now_or_never().expect("there is as much again");
        drop(held);
        one.reserve(1).now_or_never().expect("the share has room again");
        pool.half(3 * UNIT).reserve(3 * UNIT).now_or_never().ok_or(()).expect_err("two are left");
    }
}

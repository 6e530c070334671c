//! Memory for bodies and for long messages of streams that are received.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use doorbell_verbs::{Frozen, Region};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What memory is counted in.
const UNIT: usize = 64 * 1024;

/// Memory for what is received and is long, of which there is no more than a bound: lent to the
/// senders of bodies, held by the program as bodies, filled by messages of streams that the program
/// has not read, or kept to be used again. It is taken by [`Share`]s.
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

    /// A share of at most all of the pool, for an end with a single peer.
    pub fn whole(&self) -> Share {
        self.share_of_units(self.0.units)
    }

    /// A share of half of the pool, or of `longest` bytes if that is more, for one peer of many:
    /// what is lent to it leaves as much for the others.
    pub fn half(&self, longest: usize) -> Share {
        self.share_of_units((self.0.units / 2).max(longest.div_ceil(UNIT)))
    }

    fn share_of_units(&self, units: usize) -> Share {
        let units = units.clamp(1, self.0.units);
        Share { pool: self.clone(), room: Arc::new(Semaphore::new(units)), units }
    }

    /// How many bytes are lent, held or reserved, in whole units.
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

/// What one peer may have of a [`Pool`] at a time.
#[derive(Clone, Debug)]
pub struct Share {
    pool: Pool,
    /// The units of the share that may still be reserved.
    room: Arc<Semaphore>,
    units: usize,
}

impl Share {
    /// Reserves room for a length, as soon as both the share and the pool have it. A length beyond
    /// all of the share gets it when nothing else of the share is reserved.
    pub async fn reserve(&self, len: usize) -> Reserved {
        let units = len.div_ceil(UNIT).clamp(1, self.units) as u32;
        let open = "the semaphores are never closed";
        let of_share = self.room.clone().acquire_many_owned(units).await.expect(open);
        let of_pool = self.pool.0.room.clone().acquire_many_owned(units).await.expect(open);
        Reserved { _of_share: of_share, _of_pool: of_pool }
    }

    /// Memory for a body of a length, when there is room.
    pub async fn lend(&self, len: usize) -> Lent {
        let reserved = self.reserve(len).await;
        Lent { region: self.pool.0.take(len), len, reserved, pool: self.pool.clone() }
    }
}

/// Room of a share and of its pool, which goes back when this is dropped.
#[derive(Debug)]
pub struct Reserved {
    _of_share: OwnedSemaphorePermit,
    _of_pool: OwnedSemaphorePermit,
}

/// Memory for a body, lent to its sender.
pub struct Lent {
    region: Region,
    len: usize,
    reserved: Reserved,
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
        let Self { region, len, reserved, pool } = self;
        let frozen = Some(region.try_private().ok()?.freeze());
        Some(Bytes::from_owner(Received { frozen, reserved: Some(reserved), pool }).slice(..len))
    }
}

/// A body whose memory goes back to its pool.
struct Received {
    /// There until this is dropped.
    frozen: Option<Frozen>,
    reserved: Option<Reserved>,
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
        drop(self.reserved.take());
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
        assert_eq!(pool.0.free.lock().expect("it is not poisoned").len(), 1);
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

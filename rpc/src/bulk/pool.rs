//! A pool of memory for long data that this end receives: bodies, and long messages of streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use doorbell_verbs::Region;
use doorbell_verbs::floor::{FrozenRegion, PooledRegion, RegionPool};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::room::NoRoom;

/// The unit in which memory is counted, in bytes.
const UNIT: usize = 64 * 1024;

/// A bounded amount of memory for long data. Memory of the pool is lent to the sender of a body,
/// held by a handler as a body, filled by messages of streams that the program has not read, or
/// kept to be used again. Peers take memory from it through [`Share`]s.
#[derive(Clone, Debug)]
pub struct Pool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    room: Room,
    /// The units in use for each [`Use`].
    uses: [AtomicUsize; 3],
    /// How long a body waits while no room comes back.
    patience: Duration,
    regions: RegionPool,
}

/// What reserved room is in use for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// Memory is lent to the sender of a body.
    Lent,
    /// A handler has the body.
    Held,
    /// A message of a stream is on its way, or was not read yet.
    Stream,
}

/// The most bytes of unused regions that are kept.
const KEPT: usize = 128 << 20;

impl Pool {
    /// Makes a pool of at most `bytes` bytes. Who waits for room is refused when none has come back
    /// for as long as `patience`.
    pub fn new(bytes: usize, patience: Duration) -> Self {
        let units = bytes.div_ceil(UNIT).clamp(1, u32::MAX as usize);
        let (room, uses) = (Room::new(units), Default::default());
        Self(Arc::new(Inner { room, uses, patience, regions: RegionPool::new(KEPT) }))
    }

    /// A share that may take all of the pool, for a client, which has a single peer. A body that
    /// was delivered to the client's program is the program's, and takes no room any more.
    pub fn whole(&self) -> Share {
        self.share_of_units(self.0.room.units, false)
    }

    /// A share that may take half of the pool, or `longest` bytes if that is more, for one client
    /// of a server. Whatever the client takes, as much is left for the others. A body takes room
    /// until the handler drops it.
    pub fn half(&self, longest: usize) -> Share {
        self.share_of_units((self.0.room.units / 2).max(longest.div_ceil(UNIT)), true)
    }

    fn share_of_units(&self, units: usize, keeps_held: bool) -> Share {
        let room = Arc::new(Room::new(units.clamp(1, self.0.room.units)));
        Share { pool: self.clone(), room, keeps_held }
    }

    /// The number of bytes that are lent, held or reserved, in whole units.
    pub fn used(&self) -> usize {
        self.0.room.used() * UNIT
    }

    /// The number of bytes that are in use for one purpose, in whole units.
    fn used_for(&self, what: Use) -> usize {
        self.0.uses[what as usize].load(Ordering::Relaxed) * UNIT
    }
}

/// An amount of memory, in units, of which some are in use.
#[derive(Debug)]
struct Room {
    /// The units that are not in use, as permits.
    free: Arc<Semaphore>,
    units: usize,
    /// How often units have come back.
    returns: AtomicU64,
}

impl Room {
    fn new(units: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(units)), units, returns: AtomicU64::new(0) }
    }

    fn used(&self) -> usize {
        self.units - self.free.available_permits()
    }

    /// Takes units as soon as there are as many. Waits for as long as others give units back, and
    /// gives up when none has come back for `patience`.
    async fn take(&self, units: u32, patience: Duration) -> Option<OwnedSemaphorePermit> {
        if let Ok(taken) = self.free.clone().try_acquire_many_owned(units) {
            return Some(taken);
        }
        let mut taking = std::pin::pin!(self.free.clone().acquire_many_owned(units));
        loop {
            let before = self.returns.load(Ordering::Relaxed);
            match tokio::time::timeout(patience, &mut taking).await {
                Ok(taken) => return Some(taken.expect("the semaphores are never closed")),
                Err(_) if self.returns.load(Ordering::Relaxed) == before => return None,
                Err(_) => {}
            }
        }
    }
}

/// The part of a [`Pool`] that one peer may use at a time.
#[derive(Clone, Debug)]
pub struct Share {
    pool: Pool,
    room: Arc<Room>,
    /// Whether a body takes room for as long as the program holds it.
    keeps_held: bool,
}

impl Share {
    /// Reserves room for a message of a stream that has `len` bytes: see [`lend`](Self::lend).
    ///
    /// # Errors
    /// When there is no room, and none has come back for as long as the pool's patience.
    pub async fn reserve(&self, len: usize) -> Result<Reserved, NoRoom> {
        self.reserve_for(Use::Stream, len).await
    }

    async fn reserve_for(&self, what: Use, len: usize) -> Result<Reserved, NoRoom> {
        let units = len.div_ceil(UNIT).clamp(1, self.room.units);
        let (pool, patience) = (&self.pool.0, self.pool.0.patience);
        let none = || self.no_room(len);
        let of_share = self.room.take(units as u32, patience).await.ok_or_else(none)?;
        let of_pool = pool.room.take(units as u32, patience).await.ok_or_else(none)?;
        pool.uses[what as usize].fetch_add(units, Ordering::Relaxed);
        let rooms = Some((of_share, of_pool));
        Ok(Reserved { share: self.clone(), what, units, rooms })
    }

    /// Takes memory for a body of `len` bytes, as soon as both the share and the pool have room. A
    /// length beyond the whole share waits until nothing else of the share is in use, and then gets
    /// all of it.
    ///
    /// # Errors
    /// When there is no room, and none has come back for as long as the pool's patience.
    pub async fn lend(&self, len: usize) -> Result<Lent, NoRoom> {
        let reserved = self.reserve_for(Use::Lent, len).await?;
        Ok(Lent { region: self.pool.0.regions.take(len), len, reserved })
    }

    #[cold]
    fn no_room(&self, len: usize) -> NoRoom {
        let [lent, held, streams] =
            [Use::Lent, Use::Held, Use::Stream].map(|what| self.pool.used_for(what));
        NoRoom {
            len,
            patience: self.pool.0.patience,
            of_peer: (self.room.used() * UNIT, self.room.units * UNIT),
            all: self.pool.0.room.units * UNIT,
            lent,
            held,
            streams,
        }
    }
}

/// Reserved room of a share and of its pool. Dropping it gives the room back.
#[derive(Debug)]
pub struct Reserved {
    share: Share,
    what: Use,
    units: usize,
    /// The units of the share and of the pool, until this is dropped.
    rooms: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

impl Reserved {
    /// Notes that the room is in use for something else from now on.
    fn becomes(&mut self, what: Use) {
        let uses = &self.share.pool.0.uses;
        uses[self.what as usize].fetch_sub(self.units, Ordering::Relaxed);
        uses[what as usize].fetch_add(self.units, Ordering::Relaxed);
        self.what = what;
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let pool = &self.share.pool.0;
        pool.uses[self.what as usize].fetch_sub(self.units, Ordering::Relaxed);
        // Whoever has waited until now sees that room has come back.
        for room in [&*self.share.room, &pool.room] {
            room.returns.fetch_add(1, Ordering::Relaxed);
        }
        self.rooms = None;
    }
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
        let Self { region, len, mut reserved } = self;
        let frozen = region.freeze()?;
        let reserved = reserved.share.keeps_held.then(|| {
            reserved.becomes(Use::Held);
            reserved
        });
        Some(Bytes::from_owner(Received { frozen, _reserved: reserved }).slice(..len))
    }
}

/// A received body, whose memory goes back to its pool when this is dropped. The memory goes back
/// before the room for it does.
struct Received {
    frozen: FrozenRegion,
    /// The room that the body takes; `None` if it takes none, because it is the program's.
    _reserved: Option<Reserved>,
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

    const PATIENCE: Duration = Duration::from_secs(10);

    /// The outcome of a wait that is over at once.
    fn now<T>(waits: impl Future<Output = Result<T, NoRoom>>) -> Option<T> {
        // A future that waits for room sets a timer.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.expect("a runtime of one thread");
        runtime.block_on(async { waits.now_or_never() })?.ok()
    }

    #[test]
    fn a_body_of_a_handler_gives_its_memory_back_and_what_is_beyond_the_bound_waits() {
        let pool = Pool::new(2 * UNIT, PATIENCE);
        let share = pool.half(2 * UNIT);
        let lent = now(share.lend(UNIT + 1)).expect("there is room");
        lent.region().write_at(UNIT, &[7]).expect("it is long enough");
        let body = lent.into_bytes().expect("nobody else leads there");
        assert_eq!((body.len(), body[UNIT]), (UNIT + 1, 7));
        assert_eq!((pool.used(), pool.used_for(Use::Held)), (2 * UNIT, 2 * UNIT));
        assert!(now(share.lend(1)).is_none());
        drop(body);
        assert_eq!((pool.used(), pool.used_for(Use::Held)), (0, 0));
        let again = now(share.lend(2 * UNIT)).expect("the memory is back");
        assert_eq!(again.region().load(UNIT).expect("it is long enough") & 0xff, 7);
    }

    #[test]
    fn a_body_that_a_client_was_given_takes_no_room() {
        let pool = Pool::new(2 * UNIT, PATIENCE);
        let share = pool.whole();
        let bodies = [(); 3].map(|()| {
            let lent = now(share.lend(2 * UNIT)).expect("there is room");
            assert!(now(share.lend(1)).is_none());
            lent.into_bytes().expect("nobody else leads there")
        });
        assert_eq!((bodies.len(), pool.used()), (3, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_refused_when_no_room_comes_back_and_not_while_some_does() {
        let pool = Pool::new(4 * UNIT, PATIENCE);
        let share = pool.whole();
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(share.reserve(UNIT).await.expect("there is room"));
        }
        let waits = tokio::spawn({
            let share = share.clone();
            async move { share.lend(4 * UNIT).await.map(drop) }
        });
        while let Some(reserved) = held.pop() {
            tokio::time::sleep(PATIENCE / 4 * 3).await;
            assert!(!waits.is_finished());
            drop(reserved);
        }
        waits.await.expect("it runs").expect("all came back in the end");
        let _held = share.reserve(3 * UNIT).await.expect("there is room");
        let refused = share.lend(2 * UNIT).await.map(drop).expect_err("nothing comes back");
        assert_eq!(refused.of_peer.1, 4 * UNIT);
        assert_eq!((refused.lent, refused.held, refused.streams), (0, 0, 3 * UNIT));
        // Who was refused has left the queue.
        share.lend(UNIT).await.map(drop).expect("there is room for one");
    }

    #[test]
    fn memory_that_somebody_else_leads_to_is_no_body() {
        let share = Pool::new(UNIT, PATIENCE).whole();
        let lent = now(share.lend(8)).expect("there is room");
        let _other = lent.region();
        assert!(lent.into_bytes().is_none());
    }

    #[test]
    fn a_peer_that_has_all_of_its_share_leaves_as_much_for_others() {
        let pool = Pool::new(4 * UNIT, PATIENCE);
        let [one, other] = [pool.half(UNIT), pool.half(UNIT)];
        let held = [UNIT, UNIT].map(|len| now(one.reserve(len)).expect("there is room"));
        assert!(now(one.reserve(1)).is_none());
        assert_eq!(pool.used(), 2 * UNIT);
        let _held = now(other.reserve(2 * UNIT)).expect("there is as much again");
        drop(held);
        now(one.reserve(1)).expect("the share has room again");
        assert!(now(pool.half(3 * UNIT).reserve(3 * UNIT)).is_none(), "two are left");
    }
}

//! The world: this process, its peers, and the memory that they share.
//!
//! | file | what it does |
//! |---|---|
//! | `join` | connects all processes, and makes the world |
//! | `progress`, `serving` | wait for operations, and serve other processes meanwhile |
//! | `sending`, `one_sided`, `changing` | carry operations by messages, by RDMA, and in mapped memory |
//! | `flight`, `deferred` | a one-sided request, and changes of mapped memory, that are under way |
//! | `flushing` | sends everything that waits to be aggregated with more |
//! | `stall` | reports waits that take long |
//! | `keeper` | answers for a process that computes for long |
//! | `port` | has what a world has opened on one NIC |
//!
//! This file has the state that all of them share. Accesses, arrays and collectives build on the
//! world, which does not know them.

mod changing;
mod deferred;
mod flight;
mod flushing;
mod join;
mod keeper;
mod one_sided;
mod port;
mod progress;
mod sending;
mod serving;
mod stall;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use doorbell_am::group::Group;
use doorbell_am::{Bundle, Endpoint};
use slab::Slab;
use tokio::task::AbortHandle;

use crate::config::Carrier;
use crate::departures::Departures;
use crate::error::{AccessError, Error, ErrorKind};
use crate::functions::Defined;
use crate::global_ptr::{ALONE, GlobalPtr, Raw};
use crate::heap::Heap;
use crate::landing::Slot;
use crate::messages::Served;
use crate::peers::Peer;

pub(crate) use flight::{Flight, Landing};
pub use join::{JoinError, Membership};
pub(crate) use join::{Kin, LONGEST, nic_config, shared_nic_config, threads_of_nic};
pub(crate) use sending::What;
pub(crate) use stall::Waits;

use keeper::Keeper;
use port::Port;

/// A process's view of all processes of a program: who they are, the memory that they share, and
/// how they work together.
///
/// A world belongs to the thread that joined it, and can't be sent to another thread. What it
/// lends, such as the slices of [private](crate::Private) epochs, can be. Clones are handles to the
/// same world.
#[derive(Clone)]
pub struct World(pub(crate) Rc<Core>);

/// The state of a world, which all handles to it share.
pub(crate) struct Core {
    pub rank: usize,
    /// The bundle of the first port. A wait at it serves all ports.
    pub bundle: Bundle,
    pub ports: Box<[Port]>,
    pub _endpoints: Vec<Endpoint>,
    pub group: Group,
    pub heap: Heap,
    pub peers: Box<[Peer]>,
    pub served: Arc<Served>,
    pub departures: Arc<Departures>,
    pub flights: RefCell<Slab<Flight>>,
    /// How many messages of operations and one-sided requests are under way.
    pub outstanding: Cell<usize>,
    pub slots: RefCell<Slab<Slot>>,
    /// The ranks of processes for which something waits to be sent.
    pub dirty: RefCell<Vec<usize>>,
    /// The first failure of an operation since the last `sync`.
    pub failure: RefCell<Option<Error>>,
    /// How many of the bytes that were stored here in this turn `store_sync` has waited for
    /// already.
    pub consumed: Cell<u64>,
    /// Changes of mapped memory that are about to be made.
    pub deferred: RefCell<deferred::Deferred>,
    /// How many operations were begun and, in `breathed`, at which of them other tasks of the
    /// thread were let run last; both wrap around.
    pub counted: Cell<u32>,
    pub breathed: Cell<u32>,
    /// How many calls have checked a range, are yet to access or enqueue it, and may run code of
    /// the program's in between, such as a waker: see [`Core::amid`].
    pub amid: Cell<u32>,
    /// Whether the condition of a wait runs, which is the program's code, and must not wait itself.
    pub in_condition: Cell<bool>,
    /// The turn, 0 or 1, in which stores are counted: see [`stores`](crate::stores).
    pub turn: Cell<u64>,
    pub functions: RefCell<Vec<Defined>>,
    /// How long a wait takes before it is reported.
    pub stall: Duration,
    watches: Vec<AbortHandle>,
    _keeper: Option<Keeper>,
}

impl Drop for Core {
    fn drop(&mut self) {
        self.watches.iter().for_each(AbortHandle::abort);
    }
}

impl World {
    /// The rank of this process: from zero on, and below [`size`](Self::size).
    pub fn rank(&self) -> usize {
        self.0.rank
    }

    /// How many processes the world has.
    pub fn size(&self) -> usize {
        self.0.peers.len()
    }

    /// The carrier of this process's operations on the memory of process `rank`. This process's own
    /// memory is always reached by loads and stores.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn carrier(&self, rank: usize) -> Result<Carrier, Error> {
        Ok(self.0.peer(rank)?.carrier.get())
    }

    /// Chooses the carrier of this process's operations on the memory of another process, from here
    /// on. The carriers of other processes do not change.
    ///
    /// Operations under way by the old carrier and operations by the new one may overtake each
    /// other: await [`sync`](Self::sync) before the change.
    ///
    /// # Errors
    /// When there is no such process, or its memory is not mapped and the carrier is
    /// [`Carrier::Mapped`].
    pub fn set_carrier(&self, rank: usize, carrier: Carrier) -> Result<(), Error> {
        let peer = self.0.peer(rank)?;
        if carrier == Carrier::Mapped && peer.memory.is_none() {
            let why = "its heap is not mapped here; that takes the device `shm` and one host";
            return Err(ErrorKind::NoCarrier { rank, carrier, why }.into());
        }
        peer.carrier.set(carrier);
        Ok(())
    }

    /// How many operations of other processes this process has refused: none, unless a
    /// [function](crate::Apply) has panicked, or a process is not of the same program.
    pub fn refused(&self) -> u64 {
        self.0.served.refused()
    }

    /// The address of this process's NIC, as the others know it; of the first NIC, if the process
    /// has several.
    pub fn address(&self) -> String {
        self.0.ports[0].nic.address().to_string()
    }

    /// The address of process `rank` by which this process reaches it, which begins with the name
    /// of the device, such as `shm` or `udp`. Of this process itself, the address of its first NIC.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn route(&self, rank: usize) -> Result<String, Error> {
        let far = self.0.peer(rank)?.far.as_ref();
        Ok(far.map_or_else(|| self.address(), |far| far.address.clone()))
    }

    /// Allocates `len` elements, all zeros, in this process's own heap. Other processes reach them
    /// by the pointer once they have got it.
    ///
    /// Such memory can't be made private, and its bounds are not known to other processes: a wrong
    /// pointer to it is noticed only if it leaves the part of the heap that is for such memory.
    ///
    /// # Errors
    /// When there is no room, or the type needs an alignment beyond 8 bytes.
    pub fn allocate<T: crate::Element>(&self, len: usize) -> Result<GlobalPtr<T>, Error> {
        let bytes = bytes_of::<T>(len)?;
        let offset = self.0.heap.allocate_alone(bytes)?;
        let rank = self.0.rank as u32;
        Ok(GlobalPtr::new(Raw { rank, block: ALONE, offset }))
    }

    /// Frees memory that this process has [allocated](Self::allocate) for itself. The program must
    /// see to it that no process uses the pointer any more: a later access reads or changes
    /// whatever is at that place by then.
    ///
    /// # Errors
    /// When the pointer points to another process's memory, or not to the beginning of such an
    /// allocation.
    pub fn free<T>(&self, ptr: GlobalPtr<T>) -> Result<(), Error> {
        let Raw { rank, block, offset } = ptr.raw();
        if ptr.is_null() {
            return Err(AccessError::Null.into());
        }
        if rank as usize != self.0.rank {
            return Err(AccessError::NotMine { owner: rank as usize }.into());
        }
        if block != ALONE {
            return Err(crate::error::HeapError::NotAllocated { offset }.into());
        }
        Ok(self.0.heap.free_alone(offset)?)
    }
}

/// How many bytes `len` elements of type `T` have. An error if the type's alignment exceeds 8
/// bytes, or the elements exceed the longest heap.
pub(crate) fn bytes_of<T>(len: usize) -> Result<u64, Error> {
    if align_of::<T>() > 8 {
        return Err(crate::error::HeapError::alignment::<T>(8).into());
    }
    let bytes = len.checked_mul(size_of::<T>()).map(|bytes| bytes as u64);
    let bytes = bytes.filter(|&bytes| bytes < crate::messages::LONGEST_HEAP);
    bytes.ok_or_else(|| Error::invalid(format!("{len} elements are more than any memory has")))
}

impl Core {
    pub fn size(&self) -> usize {
        self.peers.len()
    }

    /// The peer of a rank, or an error if the world has no such process.
    pub fn peer(&self, rank: usize) -> Result<&Peer, Error> {
        let size = self.size();
        self.peers.get(rank).ok_or_else(|| AccessError::Rank { rank, size }.into())
    }

    /// Begins a part of an operation in which ranges are accessed that were checked before, and in
    /// which the library may run code of the program's, such as a waker or a subscriber of
    /// `tracing`. While the guard lives, [`all_done`](Self::all_done) is not done, so no array
    /// becomes private or is freed in the middle of the operation. The guard must not be held
    /// across an `await`: other futures of the process run there, and ranges are checked again.
    #[inline]
    pub fn amid(&self) -> Amid<'_> {
        self.amid.set(self.amid.get() + 1);
        Amid(&self.amid)
    }

    /// Begins the condition of a wait. While the guard lives, nothing waits until a peer takes
    /// messages or the NIC has room: the wait that runs the condition makes the progress which that
    /// would take.
    pub fn condition(&self) -> Condition<'_> {
        self.in_condition.set(true);
        Condition(&self.in_condition)
    }

    /// An error if the condition of a wait runs, which can't wait for a peer to take something.
    #[inline]
    pub fn may_wait_for(&self, rank: usize) -> Result<(), Error> {
        match self.in_condition.get() {
            true => Err(waits_in_condition(rank)),
            false => Ok(()),
        }
    }

    /// The peer whose memory a pointer points to, and the offset in its heap, if `len` bytes may be
    /// accessed there. The error says what is wrong with the pointer, or why the peer has gone.
    #[inline(always)]
    pub fn resolve<T>(&self, ptr: GlobalPtr<T>, len: usize) -> Result<(&Peer, usize), Error> {
        self.count_one();
        let raw = ptr.raw();
        self.heap.check(raw, len as u64)?;
        let rank = raw.rank as usize;
        let Some(peer) = self.peers.get(rank) else {
            return Err(AccessError::Rank { rank, size: self.size() }.into());
        };
        if !raw.offset.is_multiple_of(align_of::<T>() as u64) {
            return Err(
                AccessError::Misaligned { offset: raw.offset, align: align_of::<T>() }.into()
            );
        }
        if self.departures.has_gone(rank) {
            return Err(self.departures.of(rank).into());
        }
        Ok((peer, raw.offset as usize))
    }
}

#[cold]
fn waits_in_condition(rank: usize) -> Error {
    Error::invalid(format!(
        "the condition of a wait can't wait until process {rank} takes more: have the condition \
         compute, and send what it finds behind the wait"
    ))
}

/// A guard of [`Core::condition`].
pub(crate) struct Condition<'c>(&'c Cell<bool>);

impl Drop for Condition<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// A guard of [`Core::amid`].
pub(crate) struct Amid<'c>(&'c Cell<u32>);

impl Drop for Amid<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("rank", &self.rank()).field("size", &self.size()).finish()
    }
}

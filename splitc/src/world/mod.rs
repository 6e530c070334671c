//! The world: this process, its peers, and the memory that they share.

mod join;
mod one_sided;
mod progress;
mod sending;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use doorbell_am::group::Group;
use doorbell_am::{Bundle, Endpoint};
use doorbell_verbs::{CompletionQueue, Nic, Registered};
use slab::Slab;
use tokio::task::AbortHandle;

use crate::config::Carrier;
use crate::error::{AccessError, Error, ErrorKind};
use crate::fates::Fates;
use crate::global_ptr::{GlobalPtr, Raw};
use crate::heap::Heap;
use crate::landing::Slot;
use crate::messages::Served;
use crate::peers::Peer;

pub(crate) use join::nic_config;
pub use join::{JoinError, Membership};
pub(crate) use one_sided::{Flight, Landing};
pub(crate) use sending::What;

/// A process's view of all processes of a program: who they are, the memory that they share, and
/// how they work together.
///
/// A world belongs to the thread that joined it, and is not sent to others: what it lends, such as
/// the slices of [private](crate::Private) epochs, may be. Clones are handles to the same world.
#[derive(Clone)]
pub struct World(pub(crate) Rc<Core>);

/// What the handles to a world share.
pub(crate) struct Core {
    pub rank: usize,
    pub nic: Nic,
    pub bundle: Bundle,
    pub _endpoint: Endpoint,
    pub group: Group,
    pub heap: Heap,
    pub registered: Registered,
    pub peers: Box<[Peer]>,
    pub served: Arc<Served>,
    pub fates: Arc<Fates>,
    /// Where one-sided requests complete.
    pub completions: RefCell<CompletionQueue>,
    pub flights: RefCell<Slab<Flight>>,
    /// Messages of operations and one-sided requests that are under way.
    pub outstanding: Cell<usize>,
    pub slots: RefCell<Slab<Slot>>,
    /// The ranks of processes for which something waits to be sent.
    pub dirty: RefCell<Vec<usize>>,
    /// The first operation that failed since the last `sync`, whose handle was not there to tell.
    pub failure: RefCell<Option<Error>>,
    /// How many bytes of those that were stored here `store_sync` has waited for.
    pub consumed: Cell<u64>,
    /// The turn in which stores are counted: see [`stores`](crate::stores).
    pub turn: Cell<u64>,
    pub functions: RefCell<Vec<(&'static str, [usize; 3])>>,
    watch: AbortHandle,
}

impl Drop for Core {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

impl World {
    /// The rank of this process: from zero on, and below [`size`](Self::size).
    pub fn rank(&self) -> usize {
        self.0.rank
    }

    /// How many processes there are.
    pub fn size(&self) -> usize {
        self.0.peers.len()
    }

    /// How operations on the memory of a process are carried. This process's own memory is always
    /// reached by loads and stores.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn carrier(&self, rank: usize) -> Result<Carrier, Error> {
        Ok(self.0.peer(rank)?.carrier.get())
    }

    /// Chooses how this process's operations on the memory of another one are carried from here on.
    /// Others are not concerned.
    ///
    /// What is under way by the old carrier and the new one may overtake each other: await
    /// [`sync`](Self::sync) before.
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

    /// How many operations of other processes were refused here: none, unless a
    /// [function](crate::Apply) has panicked, or a process is not of the same program.
    pub fn refused(&self) -> u64 {
        self.0.served.refused()
    }

    /// The address of this process's NIC, as the others know it.
    pub fn address(&self) -> String {
        self.0.nic.address().to_string()
    }

    /// Allocates memory in this process's own heap, which other processes reach by the pointer once
    /// they have got it: `len` elements, all zeros.
    ///
    /// Such memory can't be made private, and its bounds are not known to other processes: an
    /// access by a wrong pointer is noticed only where it leaves the heap.
    ///
    /// # Errors
    /// When there is no room, or the type needs an alignment beyond 8 bytes.
    pub fn allocate<T: crate::Element>(&self, len: usize) -> Result<GlobalPtr<T>, Error> {
        let bytes = bytes_of::<T>(len)?;
        let offset = self.0.heap.allocate_alone(bytes)?;
        let rank = self.0.rank as u32;
        Ok(GlobalPtr::new(Raw { rank, block: crate::heap::ALONE, offset }))
    }

    /// Frees what this process has [allocated](Self::allocate) for itself. The program sees to it
    /// that nobody uses the pointer any more: an access that comes later changes whatever is there
    /// then.
    ///
    /// # Errors
    /// When the pointer is another process's, or does not point to the beginning of such an
    /// allocation.
    pub fn free<T>(&self, ptr: GlobalPtr<T>) -> Result<(), Error> {
        let Raw { rank, block, offset } = ptr.raw();
        if ptr.is_null() {
            return Err(AccessError::Null.into());
        }
        if rank as usize != self.0.rank {
            return Err(AccessError::NotMine { owner: rank as usize }.into());
        }
        if block != crate::heap::ALONE {
            return Err(crate::error::HeapError::NotAllocated { offset }.into());
        }
        Ok(self.0.heap.free_alone(offset)?)
    }
}

/// How many bytes `len` elements have.
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

    /// The peer of a rank.
    pub fn peer(&self, rank: usize) -> Result<&Peer, Error> {
        let size = self.size();
        self.peers.get(rank).ok_or_else(|| AccessError::Rank { rank, size }.into())
    }

    /// The peer whose memory a pointer points to, and where, if `len` bytes may be accessed there.
    #[inline]
    pub fn resolve<T>(&self, ptr: GlobalPtr<T>, len: usize) -> Result<(&Peer, usize), Error> {
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
        if self.fates.has_gone(rank) {
            return Err(self.fates.of(rank).into());
        }
        Ok((peer, raw.offset as usize))
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("rank", &self.rank()).field("size", &self.size()).finish()
    }
}

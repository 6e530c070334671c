//! Registered memory: with a key for peers, which can be revoked.

use std::fmt;
use std::ops::{Deref, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use doorbell_core::memory::{AccessError, Region};
use doorbell_core::nic::{Registration, Rights, Segment};
use doorbell_core::wire::Rkey;
use doorbell_transports::{GrantError, SharedMemory};

use crate::control::ControlOp;
use crate::error::RegisterError;
use crate::nic::{Domain, Nic};
use crate::work::RemoteMemory;

/// Memory of this process that is registered with its NIC, and that peers reach by its key.
///
/// For this program it is a [`Region`], read and written by copying, or word by word. Clones are
/// handles to the same registration, which ends when the last clone is dropped, or is
/// [revoked](Self::revoke).
///
/// ```
/// # use doorbell_verbs::{Config, Nic, Region, Rights};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let nic = Nic::builder().open_blocking(&format!("shm:memory/{}", std::process::id()))?;
/// let memory = nic.domain().register(Region::new(4096), Rights::REMOTE)?;
/// memory.write_at(0, b"to be read by a peer")?;
/// let key = memory.remote().to_string(); // for the peer, by whatever way
/// # drop(key);
/// # Ok(())
/// # }
/// ```
///
/// The bytes can be copied out, but never borrowed as a slice, since peers write there:
///
/// ```
/// # use doorbell_verbs::Registered;
/// fn bytes(memory: &Registered) -> Vec<u8> {
///     let mut bytes = vec![0; memory.len()];
///     memory.read_at(0, &mut bytes).expect("all of them");
///     bytes
/// }
/// ```
///
/// ```compile_fail,E0608
/// # use doorbell_verbs::Registered;
/// fn bytes(memory: &Registered) -> Vec<u8> {
///     let mut bytes = vec![0; memory.len()];
///     bytes.copy_from_slice(&memory[..]);
///     bytes
/// }
/// ```
#[derive(Clone)]
pub struct Registered(Arc<Inner>);

struct Inner {
    nic: Nic,
    region: Region,
    registration: Registration,
    /// The key that was given to peers last.
    rkey: AtomicU32,
    rights: Rights,
    revoked: AtomicBool,
    /// The shared memory behind the region, if peers of this machine may map it.
    shared: Option<Arc<SharedMemory>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !*self.revoked.get_mut() {
            self.nic.engine().submit(ControlOp::Deregister(self.registration.lkey));
        }
    }
}

impl Registered {
    pub(crate) fn new(
        nic: Nic,
        region: Region,
        (registration, rights): (Registration, Rights),
        shared: Option<Arc<SharedMemory>>,
    ) -> Self {
        let (rkey, revoked) = (AtomicU32::new(registration.rkey.0), AtomicBool::new(false));
        Self(Arc::new(Inner { nic, region, registration, rkey, rights, revoked, shared }))
    }

    /// Returns the region that is registered.
    pub fn region(&self) -> &Region {
        &self.0.region
    }

    /// Returns the whole memory as peers name it.
    pub fn remote(&self) -> RemoteMemory {
        let Registration { address, len, .. } = self.0.registration;
        RemoteMemory::new(address, Rkey(self.0.rkey.load(Ordering::Relaxed)), len)
    }

    /// Returns the whole memory as a segment, for requests and receives of this program.
    ///
    /// # Panics
    /// Panics when the memory is 4 GiB or longer, since no request takes so much at once.
    pub fn whole(&self) -> Segment {
        self.slice(..).expect("less than 4 GiB")
    }

    /// Returns a part of the memory as a segment, for requests and receives of this program. They
    /// fail if the registration ends before they do.
    ///
    /// # Errors
    /// Returns an error when the range is not within the memory, or is 4 GiB or longer.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Segment, AccessError> {
        let region = &self.0.region;
        let range = region.range(range)?;
        let (offset, len) = (range.start, range.len());
        let short = u32::try_from(len);
        let too_long = |_| AccessError::OutOfBounds { offset, len, region: region.len() };
        Ok(self.0.registration.segment(offset as u64, short.map_err(too_long)?))
    }

    /// Revokes the registration and its key. When this returns, no peer and no request reads or
    /// changes a byte by its key any more, and the memory belongs to this program alone. Other
    /// handles to the registration name nothing then.
    ///
    /// Peers of this machine that have [mapped](crate::Connection::map) the memory keep the
    /// mapping, also for writes of their queue pairs.
    ///
    /// # Errors
    /// Returns an error when the registration was revoked before, by another handle.
    pub async fn revoke(self) -> Result<Region, RegisterError> {
        self.revoke_now()
    }

    /// Revokes the registration without a future. The call waits at most for a turn of the NIC that
    /// another thread takes.
    ///
    /// # Errors
    /// Returns an error as [`revoke`](Self::revoke) does.
    pub fn revoke_now(self) -> Result<Region, RegisterError> {
        let lkey = self.0.registration.lkey;
        let taken = self.0.nic.engine().with(|adapter| adapter.control().nic.deregister(lkey));
        // The key may belong to another registration when the last handle is dropped.
        self.0.revoked.store(true, Ordering::Relaxed);
        taken.map_err(|_| RegisterError::Revoked)
    }

    /// Replaces the key for peers, which [`remote`](Self::remote) returns from here on. The old key
    /// becomes invalid. Memory that peers have mapped by it stays mapped.
    ///
    /// # Errors
    /// Returns an error when the registration was revoked.
    pub fn renew(&self) -> Result<RemoteMemory, RegisterError> {
        let lkey = self.0.registration.lkey;
        self.0.nic.engine().with(|adapter| {
            let renewed = adapter.control().nic.renew(lkey);
            let rkey = renewed.map_err(|_| RegisterError::Revoked)?;
            // Of several threads that renew the key at once, the last one's key is valid.
            self.0.rkey.store(rkey.0, Ordering::Relaxed);
            let Registration { address, len, .. } = self.0.registration;
            Ok(RemoteMemory::new(address, rkey, len))
        })
    }

    /// Returns the shared memory behind the region, if peers of this NIC may map it.
    pub(crate) fn shared(&self, nic: &Nic) -> Result<Option<&SharedMemory>, GrantError> {
        if !Arc::ptr_eq(self.0.nic.engine(), nic.engine()) {
            return Err(GrantError::OtherNic);
        }
        if self.0.shared.is_some() && !self.0.rights.include(Rights::REMOTE_WRITE) {
            return Err(GrantError::NotWritable);
        }
        Ok(self.0.shared.as_deref())
    }
}

impl Deref for Registered {
    type Target = Region;

    fn deref(&self) -> &Region {
        &self.0.region
    }
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registered").field(&self.0.registration).finish()
    }
}

impl Domain {
    /// Registers memory, with the given rights for peers.
    ///
    /// # Errors
    /// Returns an error when there are as many registrations as configured.
    pub fn register(&self, region: Region, rights: Rights) -> Result<Registered, RegisterError> {
        self.registered(region, rights, None)
    }

    /// Registers memory that peers of this machine can be [allowed to
    /// map](crate::Connection::grant), if the rights let peers write there. A mapping can't be
    /// revoked, and is not limited by rights or by the domain.
    ///
    /// # Errors
    /// Returns an error as [`register`](Self::register) does.
    pub fn register_shared(
        &self,
        memory: impl Into<Arc<SharedMemory>>,
        rights: Rights,
    ) -> Result<Registered, RegisterError> {
        let memory = memory.into();
        self.registered(memory.region().clone(), rights, Some(memory))
    }

    fn registered(
        &self,
        region: Region,
        rights: Rights,
        shared: Option<Arc<SharedMemory>>,
    ) -> Result<Registered, RegisterError> {
        let registration = self
            .nic()
            .engine()
            .with(|adapter| adapter.control().nic.register(self.id(), region.clone(), rights))?;
        Ok(Registered::new(self.nic().clone(), region, (registration, rights), shared))
    }
}

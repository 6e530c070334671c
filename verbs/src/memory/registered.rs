//! Memory: registered, named to peers, and taken back.

use std::fmt;
use std::ops::{Bound, Deref, RangeBounds};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use doorbell_core::memory::{AccessError, Region};
pub use doorbell_core::nic::Rights;
use doorbell_core::nic::{Data, Memory, Registration, Segment};
use doorbell_core::wire::{RemoteAddr, Rkey};
use doorbell_transports::{GrantError, SharedMemory};
use thiserror::Error;

use crate::error::{Failed, RegisterError};
use crate::nic::Nic;
use crate::progress::Errand;

/// Memory of this process that its NIC knows, and peers may reach by its key.
///
/// It is a [`Region`] to this program: read and written by copying, or word by word. Clones are
/// handles to the same registration, which ends when the last is dropped, or is
/// [revoked](Self::revoke).
///
/// ```
/// # use doorbell::verbs::{Config, Nic, Region, Rights};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let nic = Nic::open(&format!("shm:memory/{}", std::process::id()), Config::default())?;
/// let memory = nic.domain().register(Region::new(4096), Rights::REMOTE)?;
/// memory.write_at(0, b"to be read by a peer")?;
/// let key = memory.remote().to_string(); // for the peer, by whatever way
/// # drop(key);
/// # Ok(())
/// # }
/// ```
///
/// A copy of its bytes is to be had, and a slice of them never, for peers write there:
///
/// ```
/// # use doorbell::verbs::Registered;
/// fn bytes(memory: &Registered) -> Vec<u8> {
///     let mut bytes = vec![0; memory.len()];
///     memory.read_at(0, &mut bytes).expect("all of them");
///     bytes
/// }
/// ```
///
/// ```compile_fail,E0608
/// # use doorbell::verbs::Registered;
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
    /// The key for peers, the last that was given.
    rkey: AtomicU32,
    rights: Rights,
    revoked: AtomicBool,
    /// If it may be granted to peers of this machine.
    shared: Option<Arc<SharedMemory>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !*self.revoked.get_mut() {
            self.nic.shared().run(Errand::Deregister(self.registration.lkey));
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

    /// The memory itself.
    pub fn region(&self) -> &Region {
        &self.0.region
    }

    /// The whole of it, as peers name it.
    pub fn remote(&self) -> RemoteMemory {
        let Registration { address, len, .. } = self.0.registration;
        RemoteMemory { address: address.0, rkey: self.0.rkey.load(Ordering::Relaxed), len }
    }

    /// The whole of it, for requests and receives of this program's own.
    ///
    /// # Panics
    /// When it is 4 GiB or longer: no request takes so much at once.
    pub fn whole(&self) -> Segment {
        self.slice(..).expect("less than 4 GiB")
    }

    /// A part of it, for requests and receives of this program's own. They fail if the registration
    /// ends before.
    ///
    /// # Errors
    /// When the range is not within it, or 4 GiB or longer.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Segment, AccessError> {
        let region = self.0.region.len();
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => region,
        };
        let len = end.saturating_sub(start);
        match u32::try_from(len) {
            Ok(short) if start <= end && end <= region => {
                Ok(self.0.registration.segment(start as u64, short))
            }
            _ => Err(AccessError::OutOfBounds { offset: start, len, region }),
        }
    }

    /// Takes it back, from peers and from requests under way: when this returns, none of them
    /// reads or changes a byte any more by its key, and the memory is this program's own again.
    /// Other handles to the registration name nothing then.
    ///
    /// Peers of this machine that have [mapped](crate::Connection::map) it go on as before, with
    /// what their queue pairs write there, too.
    ///
    /// # Errors
    /// When it was revoked before, by another handle.
    pub async fn revoke(self) -> Result<Region, RegisterError> {
        self.revoke_now()
    }

    /// The same at once: it waits for a turn of the NIC at most, if another thread takes one.
    ///
    /// # Errors
    /// As [`revoke`](Self::revoke).
    pub fn revoke_now(self) -> Result<Region, RegisterError> {
        let lkey = self.0.registration.lkey;
        let taken = self.0.nic.shared().with(|machine| machine.control().nic.deregister(lkey));
        // The key may be another's by the time when the last handle goes.
        self.0.revoked.store(true, Ordering::Relaxed);
        taken.map_err(|_| RegisterError::Revoked)
    }

    /// A new key for peers, which is the one of [`remote`](Self::remote) from here on; the old one
    /// is of no use any more. What peers have mapped by it stays mapped.
    ///
    /// # Errors
    /// When it was revoked.
    pub fn renew(&self) -> Result<RemoteMemory, RegisterError> {
        let lkey = self.0.registration.lkey;
        self.0.nic.shared().with(|machine| {
            let renewed = machine.control().nic.renew(lkey);
            let rkey = renewed.map_err(|_| RegisterError::Revoked)?;
            // Of several who renew it at once, the last one's is the key.
            self.0.rkey.store(rkey.0, Ordering::Relaxed);
            Ok(RemoteMemory { rkey: rkey.0, ..self.remote() })
        })
    }

    /// The memory, if peers of a NIC may be let to map it.
    pub(crate) fn shared(&self, nic: &Nic) -> Result<Option<&SharedMemory>, GrantError> {
        if !Arc::ptr_eq(self.0.nic.shared(), nic.shared()) {
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

/// Memory of a peer's, by the key that the peer has told.
///
/// It is a value: as text, as [20 bytes](Self::to_bytes), and with the feature `serde`, it goes
/// wherever it is needed. Whoever has it may do what the peer has granted with it.
///
/// ```
/// use doorbell::verbs::RemoteMemory;
///
/// let memory: RemoteMemory = "7f0012345000+4096@8c0ffee1".parse()?;
/// assert_eq!(memory.len(), 4096);
/// assert_eq!(memory.at(4000, 96).map(|part| part.to_string()),
///            Ok("7f0012345fa0+96@8c0ffee1".to_owned()));
/// assert!(memory.at(4000, 97).is_err());
/// assert_eq!(RemoteMemory::from_bytes(memory.to_bytes()), memory);
/// # Ok::<(), doorbell::verbs::RemoteMemoryError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RemoteMemory {
    address: u64,
    rkey: u32,
    len: u64,
}

/// Text that names no memory of a peer's.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("`{0}` names no remote memory: that is ADDRESS+LENGTH@KEY, the length in decimal")]
pub struct RemoteMemoryError(String);

impl RemoteMemory {
    /// How many bytes it has as bytes.
    pub const ENCODED: usize = 20;

    /// What a peer has told in another way.
    pub const fn new(address: RemoteAddr, rkey: Rkey, len: u64) -> Self {
        Self { address: address.0, rkey: rkey.0, len }
    }

    /// Where it begins, by the peer's addresses.
    pub const fn address(&self) -> RemoteAddr {
        RemoteAddr(self.address)
    }

    /// The peer's key.
    pub const fn rkey(&self) -> Rkey {
        Rkey(self.rkey)
    }

    /// How many bytes there are.
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A part of it.
    ///
    /// # Errors
    /// When it is not within it.
    pub fn at(&self, offset: u64, len: u64) -> Result<Self, AccessError> {
        match offset.checked_add(len) {
            Some(end) if end <= self.len => {
                Ok(Self { address: self.address.wrapping_add(offset), len, ..*self })
            }
            _ => Err(AccessError::OutOfBounds {
                offset: offset as usize,
                len: len as usize,
                region: self.len as usize,
            }),
        }
    }

    /// All of it, in 20 bytes: address, length and key, each with its highest byte first.
    pub fn to_bytes(&self) -> [u8; Self::ENCODED] {
        let mut bytes = [0; Self::ENCODED];
        bytes[..8].copy_from_slice(&self.address.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.len.to_be_bytes());
        bytes[16..].copy_from_slice(&self.rkey.to_be_bytes());
        bytes
    }

    /// What a peer has told in such bytes.
    pub fn from_bytes(bytes: [u8; Self::ENCODED]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, rkey @ ..] = bytes;
        Self {
            address: u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            len: u64::from_be_bytes([i, j, k, l, m, n, o, p]),
            rkey: u32::from_be_bytes(rkey),
        }
    }

    /// What a peer has told in the first bytes of a message, or of private data.
    pub fn from_prefix(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk().copied().map(Self::from_bytes)
    }

    /// Data that has room here. It is handed on as it is, and never in memory for that.
    #[inline(always)]
    pub(crate) fn check(&self, data: Data) -> Result<Data, Failed> {
        match data.len() <= self.len {
            true => Ok(data),
            false => Err(self.has_no_room(data)),
        }
    }

    #[cold]
    fn has_no_room(&self, data: Data) -> Failed {
        let len = data.len();
        let memory = match data {
            Data::Inline(_) => Memory::None,
            Data::Memory(memory) => memory,
        };
        Failed::beyond((len, self.len), memory)
    }

    /// Memory that can be filled from here.
    pub(crate) fn check_room(&self, memory: Memory) -> Result<Memory, Failed> {
        match memory.room() {
            room if room <= self.len => Ok(memory),
            room => Err(Failed::beyond((room, self.len), memory)),
        }
    }

    pub(crate) fn check_word(&self) -> Result<(), Failed> {
        let fits = self.len >= 8 && self.address.is_multiple_of(8);
        if fits { Ok(()) } else { Err(Failed::no_word(self.address, self.len)) }
    }
}

impl From<[u8; Self::ENCODED]> for RemoteMemory {
    fn from(bytes: [u8; Self::ENCODED]) -> Self {
        Self::from_bytes(bytes)
    }
}

impl From<RemoteMemory> for [u8; RemoteMemory::ENCODED] {
    fn from(memory: RemoteMemory) -> Self {
        memory.to_bytes()
    }
}

impl fmt::Display for RemoteMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}+{}@{:08x}", self.address, self.len, self.rkey)
    }
}

impl FromStr for RemoteMemory {
    type Err = RemoteMemoryError;

    fn from_str(text: &str) -> Result<Self, RemoteMemoryError> {
        let parsed = || {
            let (address, rest) = text.split_once('+')?;
            let (len, rkey) = rest.split_once('@')?;
            let address = u64::from_str_radix(address, 16).ok()?;
            let rkey = u32::from_str_radix(rkey, 16).ok()?;
            Some(Self { address, len: len.parse().ok()?, rkey })
        };
        parsed().ok_or_else(|| RemoteMemoryError(text.to_owned()))
    }
}

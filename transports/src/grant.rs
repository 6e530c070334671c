//! Shared memory that a process lets its peers map, and grants of peers.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use doorbell_core::encap::PathId;
use doorbell_core::memory::Region;
use thiserror::Error;

use crate::sys::unix::PassedFd;
use crate::sys::unix::{Sealed, Words};

/// The bytes of a page. Pieces of memory are multiples of a page, so that no two share one.
const PIECE: usize = 4096;

/// Memory that can be granted to peers on the same machine, who then read and write it as their
/// own, in nanoseconds and with no NIC in between.
///
/// Its [region](Self::region) can be registered with a NIC like any other, and peers elsewhere
/// reach it that way.
///
/// **A grant can't be taken back.** A peer that has mapped the memory has it until it drops its
/// [`Grant`], whatever becomes of this process or of the link. So memory should be granted only to
/// processes that are trusted like this one, and is [private](Region::assume_private) by agreement
/// with them only.
pub struct SharedMemory {
    sealed: Arc<Sealed>,
    /// The offset in `sealed` at which the memory begins.
    at: usize,
    region: Region,
}

impl SharedMemory {
    /// Makes `len` bytes of zeros, which live for as long as any process has them mapped.
    ///
    /// # Errors
    /// When the machine has not so much memory, or not so much left, or this process may make no
    /// file of that size (`ulimit -f`).
    pub fn new(len: usize) -> io::Result<Self> {
        let sealed = Sealed::new(len)?;
        let region = sealed.map(true)?.region(0, len);
        Ok(Self { sealed: Arc::new(sealed), at: 0, region })
    }

    /// Reserves addresses for `len` bytes of zeros, which the machine need not have yet: for memory
    /// of which only a part will be used. A part must be [provided](Self::provide) before it is
    /// used, or an access to that part may end the process with `SIGBUS` when the machine has no
    /// memory left.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn reserve(len: usize) -> io::Result<Self> {
        let sealed = Sealed::hollow(len)?;
        let region = sealed.map(false)?.region(0, len);
        Ok(Self { sealed: Arc::new(sealed), at: 0, region })
    }

    /// Reserves `count` pieces of memory of `len` bytes each, as [`reserve`](Self::reserve) does
    /// one, all of which together take one descriptor and one mapping: for tasks of one process
    /// that reach each other's. A piece alone can't be granted to a peer.
    ///
    /// # Errors
    /// As [`new`](Self::new), and when a piece has not a whole number of pages.
    pub fn reserve_pieces(len: usize, count: usize) -> io::Result<Vec<Self>> {
        if !len.is_multiple_of(PIECE) {
            let why = format!("pieces of {len} bytes: they must be multiples of {PIECE}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let sealed = Arc::new(Sealed::hollow_parts(len, count)?);
        let words = sealed.map(false)?;
        let piece = |number| {
            let at = number * len;
            Self { sealed: sealed.clone(), at, region: words.region(at, len) }
        };
        Ok((0..count).map(piece).collect())
    }

    /// Returns the descriptor of the memory; `None` if this is a piece of longer memory.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        (self.sealed.len() == self.len()).then(|| self.sealed.as_fd())
    }

    /// Has the machine provide a part of memory that was [reserved](Self::reserve), so that no
    /// access to the part can fail. What is there already stays as it is.
    ///
    /// # Errors
    /// When the part is not within the memory, or the machine has not so much left.
    pub fn provide(&self, part: Range<usize>) -> io::Result<()> {
        if part.start > part.end || part.end > self.len() {
            let Range { start, end } = part;
            let why = format!("bytes {start} to {end} are not within {} bytes", self.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        self.sealed.fill(self.at + part.start..self.at + part.end)
    }

    /// Returns the memory as a region, to be registered with a NIC.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Returns how many bytes the memory has.
    pub fn len(&self) -> usize {
        self.region.len()
    }

    /// Returns whether the memory has no bytes.
    pub fn is_empty(&self) -> bool {
        self.region.is_empty()
    }
}

impl fmt::Debug for SharedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedMemory({} bytes)", self.len())
    }
}

/// Memory of a peer that is mapped into this process, until the last handle to its region is
/// dropped.
#[derive(Debug)]
pub struct Grant {
    /// The link by which the grant came.
    pub from: PathId,
    /// The number that the peer has chosen for the grant.
    pub tag: u128,
    /// The memory that is mapped.
    pub memory: Region,
}

/// The error of memory that could not be granted.
#[derive(Debug, Error)]
pub enum GrantError {
    /// Peers of the device can't map memory.
    #[error("{device} can't grant memory: that takes a device whose peers can map it, such as shm")]
    Unsupported {
        /// The name of the device.
        device: &'static str,
    },
    /// The memory is registered such that peers may not write it, but a peer that maps memory
    /// could.
    #[error("peers may not write this memory, and who maps it does: register it with REMOTE_WRITE")]
    NotWritable,
    /// The memory is registered with another NIC than the connection's.
    #[error(
        "this memory is registered with another NIC than the connection's: grant it by one of that"
    )]
    OtherNic,
    /// The link does not exist, or not any more.
    #[error("{0:?} leads to nobody: its peer has left, or it is not a path of this device's")]
    NoLink(PathId),
    /// The memory is a piece of longer memory, all of which the peer would get.
    #[error("a piece of memory that was reserved with others can't be granted by itself")]
    Piece,
    /// The peer has to take other grants first.
    #[error("the peer has {most} grants that its program has yet to take; grant again afterwards")]
    Waiting {
        /// The most grants that may wait at the peer.
        most: usize,
    },
    /// The system refused to send the grant.
    #[error("sending a grant failed")]
    System(#[from] io::Error),
}

/// A grant that has arrived, and that the program has not taken yet.
struct Arrived {
    from: PathId,
    tag: u128,
    words: Words,
    len: usize,
}

impl Arrived {
    fn new(from: PathId, tag: u128, sealed: &Sealed) -> io::Result<Self> {
        Ok(Self { from, tag, words: sealed.map(false)?, len: sealed.len() })
    }

    fn take(self) -> Grant {
        Grant { from: self.from, tag: self.tag, memory: self.words.region(0, self.len) }
    }
}

/// The grants that a device's program has not taken yet.
#[derive(Default)]
pub(crate) struct UntakenGrants {
    grants: VecDeque<Arrived>,
    /// The number of bytes that all waiting grants map.
    bytes: u64,
}

impl UntakenGrants {
    /// The most bytes that grants of all peers may map while they wait: a quarter of what a process
    /// can address. Grants use up addresses even where no memory was provided.
    pub const MOST: u64 = 1 << 45;

    /// Maps the memory of a grant, if a peer has passed `len` bytes of sealed memory, and there is
    /// room for so many.
    pub fn add(&mut self, from: PathId, tag: u128, passed: PassedFd, len: u64) -> io::Result<()> {
        let sealed = Sealed::received(passed, len)?;
        if len > Self::MOST - self.bytes {
            let why = format!("{} bytes are granted already, and not taken", self.bytes);
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, why));
        }
        self.grants.push_back(Arrived::new(from, tag, &sealed)?);
        self.bytes += len;
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.grants.is_empty()
    }

    /// Takes the grant that came first.
    pub fn take(&mut self) -> Option<Grant> {
        let first = self.grants.pop_front()?;
        self.bytes -= first.len as u64;
        Some(first.take())
    }

    /// Forgets the grants that came by a link.
    pub fn forget(&mut self, link: PathId) {
        self.grants.retain(|grant| grant.from != link);
        self.bytes = self.grants.iter().map(|grant| grant.len as u64).sum();
    }
}

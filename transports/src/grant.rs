//! Memory that a process lets its peers map.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use doorbell_core::encap::PathId;
use doorbell_core::memory::Region;
use thiserror::Error;

use crate::sys::memfd::{Sealed, Words};
use crate::sys::unix::Passed;

/// Pieces of memory are multiples of so many bytes, a page, so that none shares a page with another.
const PIECE: usize = 4096;

/// Memory that can be granted to peers on the same machine, who then read and write it as their
/// own, in nanoseconds and with no NIC in between.
///
/// Its [region](Self::region) can be registered with a NIC like any other, and peers elsewhere
/// reach it that way.
///
/// **A grant can't be taken back.** Who has mapped the memory has it until he drops his
/// [`Grant`], whatever becomes of this process or of the link: so it is lent to processes that are
/// trusted like oneself, and is [private](Region::assume_private) by agreement with them only.
pub struct SharedMemory {
    sealed: Arc<Sealed>,
    /// Where the memory begins in `sealed`.
    at: usize,
    region: Region,
}

impl SharedMemory {
    /// So many zeros, for as long as any process has them mapped.
    ///
    /// # Errors
    /// When the machine has not so much memory, or this process may make no file of that size
    /// (`ulimit -f`). (That others have taken it all is for the kernel to
    /// find out, as ever.)
    pub fn new(len: usize) -> io::Result<Self> {
        let sealed = Sealed::new(len)?;
        let region = sealed.map(true)?.region(0, len);
        Ok(Self { sealed: Arc::new(sealed), at: 0, region })
    }

    /// Room for so many zeros, which the machine need not have yet: for memory of which only a part
    /// will be used. Whoever uses a part [provides](Self::provide) it first, or an access to that
    /// part may end the process with `SIGBUS` when the machine has no memory left.
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

    /// The descriptor of the memory; `None` of a piece of longer memory.
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

    /// The memory.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.region.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.region.is_empty()
    }
}

impl fmt::Debug for SharedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedMemory({} bytes)", self.len())
    }
}

/// Memory of a peer's that is mapped here, until the last handle to its region is dropped.
#[derive(Debug)]
pub struct Grant {
    /// The link that it came by.
    pub from: PathId,
    /// What the peer calls it.
    pub tag: u128,
    /// The memory.
    pub memory: Region,
}

/// Memory that could not be granted.
#[derive(Debug, Error)]
pub enum GrantError {
    /// The device does not reach memory of peers.
    #[error("{device} can't grant memory: that takes a device whose peers can map it, such as shm")]
    Unsupported {
        /// The device.
        device: &'static str,
    },
    /// Peers may not write there, which who maps it could.
    #[error("peers may not write this memory, and who maps it does: register it with REMOTE_WRITE")]
    NotWritable,
    /// It is another NIC's than the connection.
    #[error(
        "this memory is registered with another NIC than the connection's: grant it by one of that"
    )]
    OtherNic,
    /// There is no such link, or not any more.
    #[error("{0:?} leads to nobody: its peer has left, or it is not a path of this device's")]
    NoLink(PathId),
    /// The memory is a piece of longer memory, all of which the peer would get.
    #[error("a piece of memory that was reserved with others can't be granted by itself")]
    Piece,
    /// The peer has to take others first.
    #[error("the peer has {most} grants that its program has yet to take; grant again afterwards")]
    Waiting {
        /// The most that may wait.
        most: usize,
    },
    /// The system refused.
    #[error("sending a grant failed")]
    System(#[from] io::Error),
}

/// A grant that the program has yet to take.
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

/// The grants that a device's program has yet to take.
#[derive(Default)]
pub(crate) struct Waiting {
    grants: VecDeque<Arrived>,
    /// The number of bytes that all waiting grants map.
    bytes: u64,
}

impl Waiting {
    /// The most bytes that grants of all peers may map while they wait: a quarter of what a process can address, which grants
    /// use up though nobody has paid for the memory.
    pub const MOST: u64 = 1 << 45;

    /// Maps what a peer has passed, if that is a grant, and there is room for so many bytes.
    pub fn add(&mut self, from: PathId, tag: u128, passed: Passed, len: u64) -> io::Result<()> {
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

    /// Forgets those that came by a link.
    pub fn forget(&mut self, link: PathId) {
        self.grants.retain(|grant| grant.from != link);
        self.bytes = self.grants.iter().map(|grant| grant.len as u64).sum();
    }
}

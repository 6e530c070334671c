//! Memory without a name that processes pass to each other by descriptor, and that nobody can take
//! away from those who have mapped it.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use doorbell_core::memory::Region;
use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat,
    fstatfs, ftruncate, memfd_create,
};
use rustix::io::Errno;
use rustix::process::Resource;
use rustix::system::sysinfo;

use super::message::PassedFd;
use crate::sys::error::Context;
use crate::sys::limit::{self, Limit};
use crate::sys::mapping::Mapping;

/// The seals of memory: nobody may shrink it, grow it, or add another seal.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// An anonymous file in memory whose size is fixed for ever.
pub(crate) struct Sealed {
    fd: OwnedFd,
    len: usize,
}

impl Sealed {
    /// Makes a file of `len` zeros. All its pages are provided now, so no access can fail for want
    /// of memory.
    pub fn new(len: usize) -> io::Result<Self> {
        let sealed = Self::hollow(len)?;
        sealed.fill(0..len)?;
        Ok(sealed)
    }

    /// Makes a file of `len` zeros without providing any page. Each part must be
    /// [filled](Self::fill) before it is used, or an access may fail for want of a page.
    pub fn hollow(len: usize) -> io::Result<Self> {
        Self::hollow_parts(len, 1)
    }

    /// Makes a hollow file of `count` parts of `part` bytes, each of which may be as long as the
    /// machine has memory.
    pub fn hollow_parts(part: usize, count: usize) -> io::Result<Self> {
        if part as u64 > machine_memory() {
            let why = format!("{part} bytes are more than this machine has");
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, why));
        }
        let len = part.checked_mul(count).ok_or(io::ErrorKind::FileTooLarge)?;
        // The kernel would not only refuse to make the file longer, but send SIGXFSZ, which ends
        // the process.
        if len as u64 > limit::value(Resource::Fsize) {
            return Err(Limit::FileSize.refused(&format!("{len} bytes of shared memory")));
        }
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = memfd_create(c"doorbell", flags).context("memfd_create")?;
        let size = i64::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        ftruncate(&fd, size as u64).context("ftruncate")?;
        fcntl_add_seals(&fd, SEALS).context("F_ADD_SEALS")?;
        Ok(Self { fd, len })
    }

    /// Takes over a descriptor that a peer passed, if it stands for `len` bytes of ordinary memory
    /// that is sealed. Any other descriptor is closed by another thread, as its close may wait.
    pub fn received(passed: PassedFd, len: u64) -> io::Result<Self> {
        let fd = passed.look();
        // A descriptor that has seals is memory. The kernel answers this question for any other
        // file without asking the file's owner, so nobody can make it wait.
        let seals = fcntl_get_seals(fd).context("F_GET_SEALS")?;
        let size = fstat(fd).context("fstat")?.st_size;
        let kind = fstatfs(fd).context("fstatfs")?.f_type;
        let refuse = |why| Err(io::Error::new(io::ErrorKind::InvalidData, why));
        if !seals.contains(SEALS) {
            return refuse("it is not sealed against shrinking and growing");
        }
        // In memory of huge pages, an access may fail for want of a page.
        if kind != libc::TMPFS_MAGIC {
            return refuse("it is not ordinary memory");
        }
        if u64::try_from(size) != Ok(len) {
            return refuse("its size is not what was said");
        }
        // No honest peer makes such a file, and mapping it would use up what this process can
        // address.
        if len > machine_memory() {
            return refuse("it is longer than this machine's memory");
        }
        Ok(Self { fd: passed.keep(), len: len as usize })
    }

    /// Returns the length of the file in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Has the system provide all pages of a range.
    pub fn fill(&self, range: Range<usize>) -> io::Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let [start, len] = [range.start, range.len()].map(|bytes| bytes as u64);
        loop {
            match fallocate(&self.fd, FallocateFlags::empty(), start, len) {
                Ok(()) => return Ok(()),
                // A signal has ended the call before anything was done.
                Err(Errno::INTR) => {}
                Err(found) => {
                    let found = io::Error::from(found);
                    let what = format!("providing {len} bytes of shared memory");
                    return Err(match Limit::of_memory(&found) {
                        Some(limit) => limit.refused(&what),
                        None => io::Error::new(found.kind(), format!("{what}: {found}")),
                    });
                }
            }
        }
    }

    /// Maps the file into this process: all pages now, if `at_once`, or else each when it is used.
    pub fn map(&self, at_once: bool) -> io::Result<Words> {
        if self.len == 0 {
            return Ok(Words { mapping: None, len: 0 });
        }
        let map = if at_once { Mapping::new } else { Mapping::lazily };
        Ok(Words { mapping: Some(Arc::new(map(self.as_fd(), self.len)?)), len: self.len })
    }
}

impl AsFd for Sealed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Returns how many bytes of memory the machine has.
fn machine_memory() -> u64 {
    let info = sysinfo();
    info.totalram * u64::from(info.mem_unit)
}

/// Sealed memory that is mapped here.
pub(crate) struct Words {
    /// `None` where there are no bytes, since nothing can't be mapped.
    mapping: Option<Arc<Mapping>>,
    len: usize,
}

impl Words {
    /// Returns a part of the memory, which begins at a multiple of 8. The memory stays mapped for
    /// as long as any part is held.
    pub fn region(&self, at: usize, len: usize) -> Region {
        let end = at.checked_add(len.next_multiple_of(8));
        let room = self.len.next_multiple_of(8);
        assert!(at.is_multiple_of(8) && end.is_some_and(|end| end <= room), "a part of the words");
        let Some(mapping) = &self.mapping else { return Region::new(0) };
        let first = mapping.at().map_addr(|first| first.saturating_add(at)).cast();
        // SAFETY: the range lies within the mapping, which ends with a page and thus a whole word,
        // begins with one, too, and is unmapped when the owner is dropped. The memory is sealed
        // against shrinking, so every access finds it, or has the kernel find a page. This process
        // reaches it by regions made here, which are of atomic words.
        unsafe { Region::foreign(first, len, Arc::clone(mapping)) }
    }
}

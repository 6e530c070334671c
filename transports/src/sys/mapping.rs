//! Memory mapped from a descriptor.

use std::io;
use std::os::fd::AsRawFd;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use libc::{c_int, c_void};

use super::check;
use super::limit::Limit;

/// Memory mapped from a descriptor, unmapped when dropped.
pub(crate) struct Mapping {
    at: NonNull<u8>,
    len: usize,
}

impl Mapping {
    /// Maps the first `len` bytes of what a descriptor stands for, to be read and written by all
    /// who map it.
    pub fn new(fd: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        Self::with(fd, len, libc::MAP_POPULATE)
    }

    /// The same, page by page as they are used.
    pub fn lazily(fd: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        Self::with(fd, len, 0)
    }

    fn with(fd: BorrowedFd<'_>, len: usize, flags: c_int) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | flags;
        // SAFETY: the kernel chooses the place, so nothing that lives is mapped over.
        let at = unsafe { libc::mmap(ptr::null_mut(), len, protection, flags, fd.as_raw_fd(), 0) };
        if at == libc::MAP_FAILED {
            let found = io::Error::last_os_error();
            let what = format!("mapping {len} bytes");
            return Err(match Limit::of_mapping(&found) {
                Some(limit) => limit.refused(&what),
                None => io::Error::new(found.kind(), format!("{what}: {found}")),
            });
        }
        let at = NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { at, len })
    }

    /// Where it lies, for as long as self.
    #[inline]
    pub fn at(&self) -> NonNull<u8> {
        self.at
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and borrows of it have ended.
        unsafe { libc::munmap(self.at.as_ptr().cast::<c_void>(), self.len) };
    }
}

// SAFETY: a mapping is plain memory; what is shared of it is reached through atomics, or, for a
// receive ring, through `&mut`.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// Has all pages of some words be there and mapped, so that from now on no access to them waits for
/// one, or fails for want of it.
///
/// # Errors
/// When there is not so much memory, and before Linux 5.14.
pub(crate) fn populate(words: &[AtomicU64]) -> io::Result<()> {
    // SAFETY: the call touches no memory of this program's.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let first = words.as_ptr().map_addr(|at| at & !(page - 1));
    let len = words.as_ptr_range().end.addr().next_multiple_of(page) - first.addr();
    // SAFETY: nothing is changed of the pages' contents, whosever they are.
    let done = unsafe { libc::madvise(first.cast_mut().cast(), len, libc::MADV_POPULATE_WRITE) };
    check(done, "populating mapped memory").map(drop)
}

/// Has the system refuse to [`populate`] the whole pages among some words, and to write them.
#[cfg(test)]
pub(crate) fn refuse(words: &[AtomicU64]) {
    // SAFETY: the call touches no memory of this program's.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let first = words.as_ptr().map_addr(|at| at.next_multiple_of(page));
    let len = (words.as_ptr_range().end.addr() & !(page - 1)) - first.addr();
    // SAFETY: what is mapped stays so, to be read; a test that writes there after all is killed.
    let done = unsafe { libc::mprotect(first.cast_mut().cast(), len, libc::PROT_READ) };
    check(done, "mprotect").expect("pages of a mapping");
}

//! Memory mapped from a descriptor.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use rustix::param::page_size;

use super::error::Context;
use super::limit::Limit;

/// Memory mapped from a descriptor, unmapped when dropped.
pub(crate) struct Mapping {
    at: NonNull<u8>,
    len: usize,
}

impl Mapping {
    /// Maps the first `len` bytes of what a descriptor stands for, to be read and written by all
    /// who map it. All pages are mapped at once.
    pub fn new(fd: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        Self::with(fd, len, MapFlags::SHARED | MapFlags::POPULATE)
    }

    /// Maps memory as [`new`](Self::new) does, but page by page as the pages are used.
    pub fn lazily(fd: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        Self::with(fd, len, MapFlags::SHARED)
    }

    fn with(fd: BorrowedFd<'_>, len: usize, flags: MapFlags) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the place, so nothing that lives is mapped over.
        let mapped = unsafe { mmap(ptr::null_mut(), len, protection, flags, fd, 0) };
        let at = mapped.map_err(|found| {
            let (found, what) = (io::Error::from(found), format!("mapping {len} bytes"));
            match Limit::of_mapping(&found) {
                Some(limit) => limit.refused(&what),
                None => io::Error::new(found.kind(), format!("{what}: {found}")),
            }
        })?;
        let at = NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { at, len })
    }

    /// Returns the first byte's place, which is valid for as long as the mapping lives.
    #[inline]
    pub fn at(&self) -> NonNull<u8> {
        self.at
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and borrows of it have ended.
        let _ = unsafe { munmap(self.at.as_ptr().cast(), self.len) };
    }
}

// SAFETY: a mapping is plain memory; what is shared of it is reached through atomics, or, for a
// receive ring, through `&mut`.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`, above.
unsafe impl Sync for Mapping {}

/// Has the system provide and map all pages of some words, so that from now on no access to them
/// waits for a page, or fails for want of one.
///
/// # Errors
/// When there is not so much memory, and before Linux 5.14.
pub(crate) fn populate(words: &[AtomicU64]) -> io::Result<()> {
    let page = page_size();
    let first = words.as_ptr().map_addr(|at| at & !(page - 1));
    let len = words.as_ptr_range().end.addr().next_multiple_of(page) - first.addr();
    // SAFETY: the pages are mapped, as the words are, and their contents do not change.
    let done = unsafe { madvise(first.cast_mut().cast(), len, Advice::LinuxPopulateWrite) };
    done.context("populating mapped memory")
}

/// Has the system refuse to [`populate`] the whole pages among some words, and to write them.
#[cfg(test)]
pub(crate) fn refuse(words: &[AtomicU64]) {
    use rustix::mm::{MprotectFlags, mprotect};

    let page = page_size();
    let first = words.as_ptr().map_addr(|at| at.next_multiple_of(page));
    let len = (words.as_ptr_range().end.addr() & !(page - 1)) - first.addr();
    // SAFETY: the pages stay mapped and readable; a test that writes to them after all is killed.
    let done = unsafe { mprotect(first.cast_mut().cast(), len, MprotectFlags::READ) };
    done.expect("pages of a mapping");
}

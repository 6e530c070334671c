//! Memory mapped from a descriptor.

use std::io;
use std::os::fd::AsRawFd;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};

use libc::{c_int, c_void};

/// Memory mapped from a descriptor, unmapped when dropped.
pub(crate) struct Mapping {
    at: NonNull<u8>,
    len: usize,
}

impl Mapping {
    /// Maps the first `len` bytes of what a descriptor stands for, to be read and written by all who
    /// map it.
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
            return Err(io::Error::new(found.kind(), format!("mapping {len} bytes: {found}")));
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

//! The system calls of a bell, and all of the simulation's unsafe code.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::c_int;

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A descriptor that is readable from when the bell is rung until it is silenced.
pub(crate) struct Bell(OwnedFd);

impl Bell {
    pub fn new() -> io::Result<Self> {
        // SAFETY: the descriptor is new and nobody else's.
        unsafe {
            let fd = check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?;
            Ok(Self(OwnedFd::from_raw_fd(fd)))
        }
    }

    pub fn ring(&self) {
        // The call fails when the bell has been rung 2^64 - 2 times, and then the descriptor is
        // readable already.
        // SAFETY: a plain system call on a live descriptor.
        unsafe { libc::eventfd_write(self.0.as_raw_fd(), 1) };
    }

    pub fn silence(&self) {
        let mut times = 0;
        // The call fails when the bell was not rung, and then the descriptor is not readable.
        // SAFETY: the kernel writes a live number.
        unsafe { libc::eventfd_read(self.0.as_raw_fd(), &mut times) };
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

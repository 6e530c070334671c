//! What devices ask of Linux, and all of this crate's unsafe code.

pub(crate) mod filter;
pub(crate) mod interface;
pub(crate) mod mapping;
pub(crate) mod memfd;
pub(crate) mod packet;
pub(crate) mod sentry;
pub(crate) mod unix;
pub(crate) mod watch;

use std::io;
use std::os::fd::RawFd;
use std::ptr;

use libc::{c_int, c_long};

/// The result of a call, or what the system says is wrong, behind what was tried.
pub(crate) fn check(result: c_int, what: &str) -> io::Result<c_int> {
    if result >= 0 {
        return Ok(result);
    }
    let found = io::Error::last_os_error();
    Err(io::Error::new(found.kind(), format!("{what}: {found}")))
}

/// The same for calls that return a count, without the text: for the data path.
#[inline]
pub(crate) fn count(result: c_long) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

pub(crate) fn set_option<T>(
    fd: RawFd,
    level: c_int,
    name: c_int,
    value: &T,
    what: &str,
) -> io::Result<()> {
    // SAFETY: the kernel reads size_of::<T>() bytes of a live value.
    let result = unsafe {
        libc::setsockopt(fd, level, name, ptr::from_ref(value).cast(), size_of::<T>() as u32)
    };
    check(result, what).map(drop)
}

//! What devices ask of Linux, and all of this crate's unsafe code.

pub(crate) mod closer;
pub(crate) mod diag;
pub(crate) mod ethtool;
pub(crate) mod filter;
pub(crate) mod interface;
pub(crate) mod limit;
pub(crate) mod mapping;
pub(crate) mod memfd;
pub(crate) mod packet;
pub(crate) mod process;
pub(crate) mod sentry;
pub(crate) mod thread;
pub(crate) mod udp;
pub(crate) mod unix;
pub(crate) mod virtio;
pub(crate) mod watch;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use libc::{c_int, c_long};

use limit::Limit;

/// The result of a call, or what the system says is wrong, behind what was tried. If that is a
/// limit of this process's, the error names the limit; if that there is no such device, its kind is
/// `NotFound`.
pub(crate) fn check(result: c_int, what: &str) -> io::Result<c_int> {
    if result >= 0 {
        return Ok(result);
    }
    let found = io::Error::last_os_error();
    Err(match Limit::of(&found) {
        Some(limit) => limit.refused(what),
        None => {
            let gone = matches!(found.raw_os_error(), Some(libc::ENODEV | libc::ENXIO));
            let kind = if gone { io::ErrorKind::NotFound } else { found.kind() };
            io::Error::new(kind, format!("{what}: {found}"))
        }
    })
}

/// The descriptor that a call has returned, as a value that closes it.
///
/// # Safety
/// A result that is not negative must be a descriptor that is new and nobody else's.
pub(crate) unsafe fn owned(result: c_int, what: &str) -> io::Result<OwnedFd> {
    let fd = check(result, what)?;
    // SAFETY: the caller says so.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
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

/// An option of a socket that is a number.
pub(crate) fn number(socket: BorrowedFd<'_>, name: c_int) -> Option<c_int> {
    let (mut value, mut len): (c_int, _) = (0, size_of::<c_int>() as libc::socklen_t);
    let (fd, to) = (socket.as_raw_fd(), ptr::from_mut(&mut value).cast());
    // SAFETY: the kernel writes at most the length that it is told.
    let result = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, name, to, &mut len) };
    (result == 0).then_some(value)
}

/// Bytes that nobody can guess, from the system: no more than 256, which it gives at once.
///
/// # Errors
/// When the system has none to give.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    // SAFETY: the kernel writes at most the length of a live array; so few bytes it gives at once.
    let result = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) };
    check(result as c_int, "getrandom").map(|_| bytes)
}

/// Waits until a descriptor is readable.
pub(crate) fn wait(fd: BorrowedFd<'_>) -> io::Result<()> {
    let mut watched = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the kernel reads and writes one live pollfd.
    match check(unsafe { libc::poll(&mut watched, 1, -1) }, "poll") {
        Err(why) if why.kind() != io::ErrorKind::Interrupted => Err(why),
        _ => Ok(()),
    }
}

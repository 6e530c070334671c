//! System calls for threads: pinning, and sleeping on descriptors.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use tokio::io::unix::AsyncFd;

/// Pins the calling thread to one processor.
///
/// # Errors
/// When there is no such processor, or this process may not use it.
pub fn pin_to(core: usize) -> io::Result<()> {
    if core >= 8 * size_of::<libc::cpu_set_t>() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: a set of zeros is a valid empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `core` lies within the set.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: the kernel reads a live set of the given size.
    let result = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Waits until one of two descriptors is readable, and returns false if that is `end`.
pub(crate) fn wait_either(one: impl AsFd, end: impl AsFd) -> bool {
    let watch = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut watched = [watch(one.as_fd().as_raw_fd()), watch(end.as_fd().as_raw_fd())];
    // SAFETY: the kernel writes to two live entries of the given array. A signal ends the call
    // early with nothing written, which callers treat as readable.
    unsafe { libc::poll(watched.as_mut_ptr(), 2, -1) };
    watched[1].revents == 0
}

/// Registers a descriptor with this runtime, so that its tasks can sleep on the descriptor.
pub(crate) fn sleepable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor stays open, and the same, for as long as it is owned: here by the
    // returned value.
    unsafe { AsyncFd::register(fd) }.map_err(io::Error::from)
}

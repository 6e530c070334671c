//! What a thread of the NIC's own needs of the system.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use tokio::io::unix::AsyncFd;

/// Has this thread run on one processor only.
pub(crate) fn pin_to(core: usize) -> io::Result<()> {
    if core >= 8 * size_of::<libc::cpu_set_t>() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: all zeros are a set of no processors, the one that is added has its bit there, and
    // the kernel reads a live set.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Waits until one of two descriptors is readable. Whether the second one is not.
pub(crate) fn wait_either(one: impl AsFd, end: impl AsFd) -> bool {
    let watch = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut watched = [watch(one.as_fd().as_raw_fd()), watch(end.as_fd().as_raw_fd())];
    // SAFETY: the kernel writes to the two live entries that it is told of. A signal ends it early,
    // with nothing written: as good as readable.
    unsafe { libc::poll(watched.as_mut_ptr(), 2, -1) };
    watched[1].revents == 0
}

/// A descriptor that tasks of this runtime can sleep on.
pub(crate) fn sleepable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor stays open, and the same, for as long as it is owned: here, by
    // what is returned.
    unsafe { AsyncFd::register(fd) }.map_err(io::Error::from)
}

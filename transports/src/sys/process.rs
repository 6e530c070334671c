//! The process at the other end of a socket, as the kernel knows it.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use libc::c_int;

use super::unix;

/// The process at the other end of a link. The kernel has told which one it is, so a peer can't
/// name another.
#[derive(Debug)]
pub struct PeerProcess {
    number: u32,
    user: Option<u32>,
    /// A descriptor of the process itself, and not of its number.
    descriptor: OwnedFd,
}

impl PeerProcess {
    /// Finds the process that opened the other end of a Unix socket. Returns `None` if the process
    /// has no number here, because it is in a namespace that this process does not see; or if the
    /// kernel hands out no descriptor of the process, as it does from Linux 6.5 on.
    pub(crate) fn behind(socket: RawFd) -> Option<Self> {
        let nobody = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
        let libc::ucred { pid, uid, .. } = option(socket, libc::SO_PEERCRED, nobody)?;
        let (number, user) = (u32::try_from(pid).ok()?, unix::user(Some(uid)));
        let descriptor: RawFd = option(socket, libc::SO_PEERPIDFD, -1)?;
        // SAFETY: the descriptor is new and nobody else's.
        let descriptor = (descriptor >= 0).then(|| unsafe { OwnedFd::from_raw_fd(descriptor) })?;
        (number != 0).then_some(Self { number, user, descriptor })
    }

    /// Returns the number of the process. While the process [is there](Self::is_there), no other
    /// has the number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the number of the user as whom the process opened its end, or `None` if the user has
    /// no number in this process's user namespace.
    pub fn user(&self) -> Option<u32> {
        self.user
    }

    /// Returns whether the process has not ended. If so, whatever was done by its
    /// [number](Self::number) before was done to this very process.
    pub fn is_there(&self) -> bool {
        let mut ends =
            libc::pollfd { fd: self.descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the kernel reads and writes one entry, which is live.
        let count = unsafe { libc::poll(&mut ends, 1, 0) };
        count == 0
    }
}

/// Returns an option of a socket, or `None` if the kernel has no such option.
fn option<T: Copy>(socket: RawFd, name: c_int, mut value: T) -> Option<T> {
    let mut len = size_of::<T>() as libc::socklen_t;
    let to = ptr::from_mut(&mut value).cast();
    // SAFETY: the kernel writes at most the length that it is told, of a live value. The types here
    // are a number and a struct of numbers, of which any bytes are a value.
    let result = unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, name, to, &mut len) };
    (result == 0).then_some(value)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_process_at_the_other_end_of_a_socket_is_found_and_is_there() {
        let (here, _there) = UnixStream::pair().expect("descriptors");
        let Some(found) = PeerProcess::behind(here.as_raw_fd()) else {
            eprintln!("SKIPPED: this kernel hands out no descriptors of peers (Linux 6.5 does)");
            return;
        };
        assert_eq!((found.number(), found.is_there()), (std::process::id(), true));
        assert_eq!(found.user(), unix::own_user());
    }
}

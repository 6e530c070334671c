//! The process at the other end of a socket, as the kernel knows it.

use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use super::credentials::{Credentials, credentials_of};
use crate::sys::option;

/// The process at the other end of a link. The kernel has told which process it is, so a peer can't
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
    pub(crate) fn behind(socket: impl AsFd) -> Option<Self> {
        let Credentials { process, user } = credentials_of(&socket)?;
        let [descriptor] = option::words(&socket, libc::SOL_SOCKET, libc::SO_PEERPIDFD)?;
        let descriptor = RawFd::try_from(descriptor).ok()?;
        // SAFETY: the kernel has made this descriptor for this call, and nobody else has it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Some(Self { number: process?, user, descriptor })
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
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let ends = PollFd::new(&self.descriptor, PollFlags::IN);
        poll(&mut [ends], Some(&at_once)) == Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::sys::unix::own_user;

    #[test]
    fn a_process_at_the_other_end_of_a_socket_is_found_and_is_there() {
        let (here, _there) = UnixStream::pair().expect("descriptors");
        let Some(found) = PeerProcess::behind(&here) else {
            eprintln!("SKIPPED: this kernel hands out no descriptors of peers (Linux 6.5 does)");
            return;
        };
        assert_eq!((found.number(), found.is_there()), (std::process::id(), true));
        assert_eq!(found.user(), own_user());
    }
}

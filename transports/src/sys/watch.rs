//! Which of many descriptors have something, at the price of one call.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;

use libc::c_int;

use super::{check, count, owned};

/// An epoll over descriptors, each with a token.
pub(crate) struct Watch {
    epoll: OwnedFd,
}

impl Watch {
    /// How many are told of at once.
    pub const MOST: usize = 16;

    pub fn new() -> io::Result<Self> {
        // SAFETY: the call touches no memory.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        // SAFETY: the descriptor is new and nobody else's.
        let epoll = unsafe { owned(epoll, "epoll_create1") }?;
        Ok(Self { epoll })
    }

    fn control(&self, operation: c_int, fd: RawFd, events: c_int, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: token };
        // SAFETY: the kernel reads a live event.
        let result = unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd, &mut event) };
        check(result, "epoll_ctl").map(drop)
    }

    /// Watches a descriptor for something to receive.
    pub fn add(&self, fd: RawFd, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, libc::EPOLLIN, token)
    }

    /// Watches one that is watched already for room to send, too, or no longer for that.
    pub fn room(&self, fd: RawFd, token: u64, room: bool) -> io::Result<()> {
        let events = if room { libc::EPOLLIN | libc::EPOLLOUT } else { libc::EPOLLIN };
        self.control(libc::EPOLL_CTL_MOD, fd, events, token)
    }

    /// Gives a descriptor that is watched already another token.
    pub fn rename(&self, fd: RawFd, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, libc::EPOLLIN, token)
    }

    /// Watches a descriptor no longer.
    pub fn remove(&self, fd: RawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0, 0)
    }

    /// The tokens of some that have something, without waiting.
    #[inline]
    pub fn ready(&self) -> ([u64; Self::MOST], usize) {
        let nothing = libc::epoll_event { events: 0, u64: 0 };
        let mut events = [nothing; Self::MOST];
        let (fd, to, most) = (self.epoll.as_raw_fd(), events.as_mut_ptr(), Self::MOST);
        // SAFETY: the kernel writes at most as many events as it is told.
        let found = count(unsafe {
            libc::syscall(libc::SYS_epoll_pwait, fd, to, most, 0, ptr::null::<u8>(), 0)
        });
        (events.map(|event| event.u64), found.unwrap_or(0).min(Self::MOST))
    }

    pub fn as_raw_fd(&self) -> RawFd {
        self.epoll.as_raw_fd()
    }
}

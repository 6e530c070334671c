//! Which of many descriptors have something to say.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::check;

/// A set of descriptors, each by a number; one leaves it when it is closed.
pub(crate) struct Watch {
    epoll: OwnedFd,
}

/// How many are told of at once.
const MOST: usize = 16;

impl Watch {
    pub fn new() -> io::Result<Self> {
        // SAFETY: the descriptor is new and nobody else's.
        unsafe {
            let epoll = check(libc::epoll_create1(libc::EPOLL_CLOEXEC), "epoll_create1")?;
            Ok(Self { epoll: OwnedFd::from_raw_fd(epoll) })
        }
    }

    /// Watches a descriptor for messages and for its end.
    pub fn add(&self, fd: BorrowedFd<'_>, number: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, number)
    }

    /// Gives a descriptor another number.
    pub fn renumber(&self, fd: BorrowedFd<'_>, number: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, number)
    }

    fn control(&self, operation: i32, fd: BorrowedFd<'_>, number: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: number };
        let epoll = self.epoll.as_raw_fd();
        // SAFETY: the kernel reads a live event.
        let result = unsafe { libc::epoll_ctl(epoll, operation, fd.as_raw_fd(), &mut event) };
        check(result, "epoll_ctl").map(drop)
    }

    /// The numbers of some that have something to say, at this moment.
    pub fn ready(&self) -> impl Iterator<Item = u64> + use<> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; MOST];
        let (epoll, at) = (self.epoll.as_raw_fd(), events.as_mut_ptr());
        // SAFETY: the kernel writes at most so many events.
        let found = unsafe {
            libc::syscall(libc::SYS_epoll_pwait, epoll, at, MOST, 0, std::ptr::null::<u8>(), 8)
        };
        let found = usize::try_from(found).unwrap_or(0);
        events.into_iter().take(found).map(|event| event.u64)
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

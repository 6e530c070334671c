//! Epoll instances, which tell the ready ones among many descriptors by one system call.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::time::Timespec;

use super::error::Context;

/// An epoll instance, in which each descriptor has a token.
#[derive(Debug)]
pub(crate) struct Epoll {
    fd: OwnedFd,
}

impl Epoll {
    /// The most tokens that [`ready`](Self::ready) returns at once.
    pub const MOST: usize = 16;

    pub fn new() -> io::Result<Self> {
        Ok(Self { fd: epoll::create(CreateFlags::CLOEXEC).context("epoll_create1")? })
    }

    /// Watches a descriptor for something to receive.
    pub fn add(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        let token = EventData::new_u64(token);
        epoll::add(&self.fd, fd, token, EventFlags::IN).context("epoll_ctl(ADD)")
    }

    /// Changes whether a descriptor that is watched is watched for room to send, too.
    pub fn watch_room(&self, fd: impl AsFd, token: u64, room: bool) -> io::Result<()> {
        let events = if room { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        epoll::modify(&self.fd, fd, EventData::new_u64(token), events).context("epoll_ctl(MOD)")
    }

    /// Gives a descriptor that is watched for something to receive another token.
    pub fn change_token(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        let token = EventData::new_u64(token);
        epoll::modify(&self.fd, fd, token, EventFlags::IN).context("epoll_ctl(MOD)")
    }

    /// Stops watching a descriptor.
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        epoll::delete(&self.fd, fd).context("epoll_ctl(DEL)")
    }

    /// Returns the tokens of some ready descriptors, and how many there are, without waiting.
    #[inline]
    pub fn ready(&self) -> ([u64; Self::MOST], usize) {
        let nothing = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let mut events = [nothing; Self::MOST];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let found = epoll::wait(&self.fd, &mut events, Some(&at_once)).unwrap_or(0);
        (events.map(|event| event.data.u64()), found.min(Self::MOST))
    }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

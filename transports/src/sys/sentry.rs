//! Sleeping on a device, and waking for nothing else.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

use libc::c_int;

use super::{check, owned};

/// What a device sleeps on: its descriptors and a timer, watched only while somebody sleeps.
///
/// It is an epoll of our own in front of the program's: the program's reactor watches nothing but
/// this epoll. A descriptor that stays in an epoll, even disarmed, costs the sender of each frame a
/// locked look at it, and every frame would wake an idle thread while another polls.
#[derive(Debug)]
pub struct Sentry {
    epoll: OwnedFd,
    timer: OwnedFd,
    armed: bool,
    timed: bool,
}

impl Sentry {
    /// One that watches nothing yet.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the call touches no memory.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        // SAFETY: the descriptor is new and nobody else's.
        let epoll = unsafe { owned(epoll, "epoll_create1") }?;
        let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
        // SAFETY: the call touches no memory.
        let timer = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) };
        // SAFETY: the descriptor is new and nobody else's.
        let timer = unsafe { owned(timer, "timerfd_create") }?;
        let sentry = Self { epoll, timer, armed: false, timed: false };
        check(sentry.control(libc::EPOLL_CTL_ADD, sentry.timer.as_raw_fd()), "epoll_ctl(timer)")?;
        Ok(sentry)
    }

    /// What is readable when the watched descriptor is, or the time has come, while armed.
    pub fn readiness(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Whether it reports anything.
    pub fn is_armed(&self) -> bool {
        self.armed
    }

    fn control(&self, operation: c_int, fd: RawFd) -> c_int {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        // SAFETY: the kernel reads a live event.
        unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd, &mut event) }
    }

    fn set_timer(&self, after: Duration) -> io::Result<()> {
        let value = libc::timespec {
            tv_sec: after.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: after.subsec_nanos().into(),
        };
        let interval = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = libc::itimerspec { it_interval: interval, it_value: value };
        // SAFETY: the kernel reads a live setting, and is not asked for the old one.
        let result =
            unsafe { libc::timerfd_settime(self.timer.as_raw_fd(), 0, &setting, ptr::null_mut()) };
        check(result, "timerfd_settime").map(drop)
    }

    /// Reports from here on that one of `watched` is ready, at once if it is so already, or that
    /// `after` has passed.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn arm(
        &mut self,
        watched: impl IntoIterator<Item = impl AsRawFd>,
        after: Option<Duration>,
    ) -> io::Result<()> {
        if let Some(after) = after {
            // None at all would disarm the timer.
            self.set_timer(after.max(Duration::from_nanos(1)))?;
            self.timed = true;
        }
        if !self.armed {
            for fd in watched {
                check(self.control(libc::EPOLL_CTL_ADD, fd.as_raw_fd()), "epoll_ctl(ADD)")?;
                self.armed = true;
            }
        }
        Ok(())
    }

    /// Reports nothing any more, and takes back what was reported: `watched` are the same again.
    pub fn disarm(&mut self, watched: impl IntoIterator<Item = impl AsRawFd>) {
        if std::mem::take(&mut self.armed) {
            for fd in watched {
                self.control(libc::EPOLL_CTL_DEL, fd.as_raw_fd());
            }
        }
        if std::mem::take(&mut self.timed) {
            // Setting it clears what it has reported. A live descriptor's timer can always be
            // unset.
            let _ = self.set_timer(Duration::ZERO);
        }
    }
}

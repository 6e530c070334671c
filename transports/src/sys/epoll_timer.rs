//! What a device sleeps on: an epoll instance with a timer, which is armed only for a sleep.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::epoll::Epoll;
use super::error::Context;

/// An epoll instance with a timer, on which a device sleeps: the device's descriptors are in it
/// only while somebody sleeps.
///
/// It stands between the device and the epoll instance of the program's reactor, which watches this
/// one and none of the device's descriptors. A descriptor that stays in an epoll instance, even
/// disarmed, costs the sender of each frame a locked look at it, and every frame would wake an idle
/// thread while another polls.
#[derive(Debug)]
pub struct EpollTimer {
    epoll: Epoll,
    timer: OwnedFd,
    armed: bool,
    timed: bool,
}

impl EpollTimer {
    /// Makes an epoll instance that watches no descriptors yet, with a timer that is not set.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        let epoll = Epoll::new()?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).context("timerfd_create")?;
        epoll.add(&timer, 0)?;
        Ok(Self { epoll, timer, armed: false, timed: false })
    }

    /// Returns a descriptor that is readable, while armed, when one of the watched descriptors is
    /// or the time has passed.
    pub fn readiness(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Returns whether descriptors are watched at present.
    pub fn is_armed(&self) -> bool {
        self.armed
    }

    fn set_timer(&self, after: Duration) -> io::Result<()> {
        let once = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec {
                tv_sec: after.as_secs().try_into().unwrap_or(i64::MAX),
                tv_nsec: after.subsec_nanos().into(),
            },
        };
        let set = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once);
        set.map(drop).context("timerfd_settime")
    }

    /// Makes [`readiness`](Self::readiness) readable from here on when one of `watched` is
    /// readable, at once if one is so already, or when `after` has passed. An instance that is
    /// armed keeps the descriptors that it watches, and only its timer changes.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn arm(
        &mut self,
        watched: impl IntoIterator<Item = impl AsFd>,
        after: Option<Duration>,
    ) -> io::Result<()> {
        if let Some(after) = after {
            // A time of zero would disarm the timer.
            self.set_timer(after.max(Duration::from_nanos(1)))?;
            self.timed = true;
        }
        if !self.armed {
            for fd in watched {
                self.epoll.add(fd, 0)?;
                self.armed = true;
            }
        }
        Ok(())
    }

    /// Stops watching, and makes [`readiness`](Self::readiness) unreadable. `watched` are the
    /// descriptors that [`arm`](Self::arm) was given.
    pub fn disarm(&mut self, watched: impl IntoIterator<Item = impl AsFd>) {
        if std::mem::take(&mut self.armed) {
            for fd in watched {
                let _ = self.epoll.remove(fd);
            }
        }
        if std::mem::take(&mut self.timed) {
            // Setting the timer takes back that it has run out. The timer of a live descriptor can
            // always be unset.
            let _ = self.set_timer(Duration::ZERO);
        }
    }
}

/// Waits until a descriptor is readable, or a signal comes.
pub(crate) fn wait(fd: BorrowedFd<'_>) -> io::Result<()> {
    match poll(&mut [PollFd::new(&fd, PollFlags::IN)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        refused => refused.map(drop).context("poll"),
    }
}

//! Sleeping on a timer and on many descriptors, each of which reports once until it is asked to
//! report again.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// The most descriptors that one sleep reports.
const MOST_AT_ONCE: usize = 64;

/// The key of the timer. Descriptors of the caller have others.
const TIMER: u64 = 0;

/// An epoll whose descriptors report that they are readable once each, under a key; and a timer.
#[derive(Debug)]
pub(crate) struct Alarms {
    epoll: OwnedFd,
    timer: OwnedFd,
}

/// Takes ownership of a new descriptor, which a system call has returned.
///
/// # Safety
/// Nobody else may own the descriptor.
unsafe fn owned(fd: libc::c_int) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open, and the caller's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl Alarms {
    pub fn new() -> io::Result<Self> {
        // SAFETY: the call touches no memory.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        // SAFETY: the descriptor is new.
        let epoll = unsafe { owned(epoll) }?;
        let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
        // SAFETY: the call touches no memory.
        let timer = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) };
        // SAFETY: the descriptor is new.
        let alarms = Self { epoll, timer: unsafe { owned(timer) }? };
        alarms.add(alarms.timer.as_fd(), TIMER)?;
        Ok(alarms)
    }

    /// Sets the timer, which ends a sleep after `time`, once.
    pub fn set_timer(&self, time: Duration) {
        let value = libc::timespec {
            tv_sec: time.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            // A time of zero would stop the timer.
            tv_nsec: libc::c_long::from(time.subsec_nanos()).max(1),
        };
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = libc::itimerspec { it_interval: never, it_value: value };
        let none = std::ptr::null_mut();
        // SAFETY: the kernel reads a live setting, and is not asked for the old one. The timer of a
        // live descriptor can always be set.
        unsafe { libc::timerfd_settime(self.timer.as_raw_fd(), 0, &setting, none) };
        // As above.
        let _ = self.again(self.timer.as_fd(), TIMER);
    }

    fn control(&self, operation: libc::c_int, fd: BorrowedFd<'_>, key: u64) -> io::Result<()> {
        let events = (libc::EPOLLIN | libc::EPOLLONESHOT) as u32;
        let mut event = libc::epoll_event { events, u64: key };
        let epoll = self.epoll.as_raw_fd();
        // SAFETY: both descriptors are open, and the kernel reads a live event.
        let result = unsafe { libc::epoll_ctl(epoll, operation, fd.as_raw_fd(), &mut event) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Adds a descriptor, to be reported once under `key` when it is readable.
    pub fn add(&self, fd: BorrowedFd<'_>, key: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, key)
    }

    /// Asks to be told once more when a descriptor is readable, which may be at once.
    pub fn again(&self, fd: BorrowedFd<'_>, key: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, key)
    }

    /// Removes a descriptor.
    pub fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0)
    }

    /// Sleeps until a descriptor is readable or the timer ends, or only looks, if `sleeps` is false.
    /// Adds the keys of readable descriptors to `keys`. A signal may end the sleep early.
    pub fn sleep(&self, sleeps: bool, keys: &mut Vec<u64>) {
        let empty = libc::epoll_event { events: 0, u64: 0 };
        let mut events = [empty; MOST_AT_ONCE];
        let (room, most) = (MOST_AT_ONCE as libc::c_int, if sleeps { -1 } else { 0 });
        // SAFETY: the kernel writes up to `room` events into a live array of as many.
        let count =
            unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), room, most) };
        let count = usize::try_from(count).unwrap_or(0);
        let known = events.iter().take(count).map(|event| event.u64);
        keys.extend(known.filter(|key| *key != TIMER));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_readable_descriptor_is_reported_once_and_once_more_when_asked() {
        let alarms = Alarms::new().expect("a descriptor");
        let (read, mut write) = UnixStream::pair().expect("a pair");
        alarms.add(read.as_fd(), 7).expect("a new descriptor");
        write.write_all(b"!").expect("room");
        let reported = |alarms: &Alarms| {
            let mut keys = Vec::new();
            alarms.sleep(false, &mut keys);
            keys
        };
        assert_eq!(reported(&alarms), [7]);
        assert!(reported(&alarms).is_empty());
        alarms.again(read.as_fd(), 7).expect("a known descriptor");
        assert_eq!(reported(&alarms), [7]);
        alarms.remove(read.as_fd()).expect("a known descriptor");
        assert!(alarms.again(read.as_fd(), 7).is_err(), "the descriptor was removed");
    }

    #[test]
    fn a_timer_ends_a_sleep_each_time_that_it_is_set() {
        let alarms = Alarms::new().expect("descriptors");
        for _ in 0..2 {
            alarms.set_timer(Duration::from_millis(1));
            let mut keys = Vec::new();
            alarms.sleep(true, &mut keys);
            assert!(keys.is_empty(), "{keys:?}");
        }
    }
}

//! Closes what peers have passed, on a thread that may wait.
//!
//! To close the last descriptor of an open file may take any time: of a TCP socket, as long as
//! its owner has told it to linger. Devices must not wait for that. So there is one thread in a
//! process for all of them, while there is something to close.
//!
//! At most [`MOST`] descriptors wait for the thread. Beyond that, sockets that listen accept
//! nobody, if those may pass descriptors before it is known who they are (before Linux 6.16); and
//! what trusted peers pass by mistake is closed where it is, having been told not to linger.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use super::set_option;
use super::thread::run_anywhere;

/// How many descriptors wait to be closed, at most.
pub(crate) const MOST: usize = 256;

/// A descriptor whose close may take its time, and the function that closes it.
struct Waste {
    fd: OwnedFd,
    how: fn(OwnedFd),
}

impl Waste {
    fn close(self) {
        (self.how)(self.fd);
    }
}

struct Closer {
    waiting: VecDeque<Waste>,
    /// True while a thread closes what waits.
    works: bool,
}

fn closer() -> MutexGuard<'static, Closer> {
    static CLOSER: Mutex<Closer> = Mutex::new(Closer { waiting: VecDeque::new(), works: false });
    CLOSER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells if fewer than [`MOST`] descriptors wait for the closing thread.
pub(crate) fn has_room() -> bool {
    closer().waiting.len() < MOST
}

/// Has something closed elsewhere, in the way that is given.
pub(super) fn discard(fd: OwnedFd, how: fn(OwnedFd)) {
    let (waste, mut closer) = (Waste { fd, how }, closer());
    if closer.waiting.len() >= MOST {
        drop(closer);
        return waste.close();
    }
    closer.waiting.push_back(waste);
    if !closer.works {
        let started = thread::Builder::new().name("doorbell-close".to_owned()).spawn(work);
        closer.works = started.is_ok();
        if let Err(why) = started {
            let waiting = std::mem::take(&mut closer.waiting);
            drop(closer);
            tracing::warn!(%why, "no thread closes what peers have passed: it is closed here");
            waiting.into_iter().for_each(Waste::close);
        }
    }
}

/// The thread, which ends when nothing is left.
fn work() {
    run_anywhere();
    loop {
        let next = {
            let mut closer = closer();
            let next = closer.waiting.pop_front();
            closer.works = next.is_some();
            next
        };
        match next {
            Some(waste) => waste.close(),
            None => return,
        }
    }
}

/// Closes a descriptor that a peer has passed. A socket no longer lingers: unless somebody else
/// tells it to again, its close does not wait.
pub(super) fn close(fd: OwnedFd) {
    let never = libc::linger { l_onoff: 0, l_linger: 0 };
    // Anything else than a socket has no such option.
    let _ = set_option(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, &never, "SO_LINGER");
}

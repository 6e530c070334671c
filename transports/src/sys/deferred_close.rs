//! Closes descriptors that peers have passed, on a thread that may wait.
//!
//! To close the last descriptor of an open file may take any time: of a TCP socket, as long as
//! its owner has told the socket to linger. Devices must not wait for that. So one thread of the
//! process closes such descriptors for all devices, and runs while there is something to close.
//!
//! At most [`MOST`] descriptors wait for the thread. Beyond that, sockets that listen accept
//! nobody, if callers may pass descriptors before it is known who they are (before Linux 6.16); and
//! what trusted peers pass by mistake is closed by the thread that received it, after the socket
//! was told not to linger.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::net::sockopt::set_socket_linger;

use super::thread::run_anywhere;

/// The most descriptors that wait to be closed.
pub(crate) const MOST: usize = 256;

/// A descriptor whose close may take its time, and the function that closes it.
struct Discarded {
    fd: OwnedFd,
    how: fn(OwnedFd),
}

impl Discarded {
    fn close(self) {
        (self.how)(self.fd);
    }
}

/// The descriptors of the process that wait to be closed.
struct Queue {
    waiting: VecDeque<Discarded>,
    /// True while a thread closes what waits.
    works: bool,
}

fn queue() -> MutexGuard<'static, Queue> {
    static QUEUE: Mutex<Queue> = Mutex::new(Queue { waiting: VecDeque::new(), works: false });
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells if fewer than [`MOST`] descriptors wait for the closing thread.
pub(crate) fn has_room() -> bool {
    queue().waiting.len() < MOST
}

/// Has the closing thread close a descriptor, by the function `how`.
pub(super) fn discard(fd: OwnedFd, how: fn(OwnedFd)) {
    let (discarded, mut queue) = (Discarded { fd, how }, queue());
    if queue.waiting.len() >= MOST {
        drop(queue);
        return discarded.close();
    }
    queue.waiting.push_back(discarded);
    if !queue.works {
        let started = thread::Builder::new().name("doorbell-close".to_owned()).spawn(work);
        queue.works = started.is_ok();
        if let Err(why) = started {
            let waiting = std::mem::take(&mut queue.waiting);
            drop(queue);
            tracing::warn!(%why, "no thread closes what peers have passed: it is closed here");
            waiting.into_iter().for_each(Discarded::close);
        }
    }
}

/// The body of the closing thread, which ends when nothing is left.
fn work() {
    run_anywhere();
    loop {
        let next = {
            let mut queue = queue();
            let next = queue.waiting.pop_front();
            queue.works = next.is_some();
            next
        };
        match next {
            Some(discarded) => discarded.close(),
            None => return,
        }
    }
}

/// Closes a descriptor that a peer has passed. A socket is told not to linger first: unless
/// another process tells the socket to linger again, its close does not wait.
pub(super) fn close(fd: OwnedFd) {
    // Only sockets have this option: for other files the call fails, and that is no harm.
    let _ = set_socket_linger(&fd, None);
}

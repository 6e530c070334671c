//! Who is at the other end of a socket, and whether that is somebody to be trusted.

use std::fs;
use std::io;
use std::ptr;
use std::sync::OnceLock;

use super::Socket;
use crate::holder::Holder;
use crate::sys::diag;

/// The number that the kernel gives every user whom a user namespace has no number for, unless
/// something else is set.
const OVERFLOW: u32 = 65534;

/// The number that stands for every user of other user namespaces who has none in this one: so two
/// of whom the kernel tells this number need not be the same.
fn overflow() -> u32 {
    static FOUND: OnceLock<u32> = OnceLock::new();
    let found = FOUND.get().copied();
    found.unwrap_or_else(|| {
        let told = fs::read_to_string("/proc/sys/kernel/overflowuid").ok();
        match told.and_then(|text| text.trim().parse().ok()) {
            Some(number) => *FOUND.get_or_init(|| number),
            // Without that file, or a descriptor for it, as it is everywhere.
            None => OVERFLOW,
        }
    })
}

/// The user of a number that the kernel tells, if that stands for one.
fn known(user: u32, overflow: u32) -> Option<u32> {
    (user != overflow && user != u32::MAX).then_some(user)
}

/// Whether two users are the same: nobody is who has no number of his own.
fn is_same(own: Option<u32>, other: Option<u32>) -> bool {
    own.is_some() && own == other
}

/// The user of this process, if it has a number of its own.
pub(crate) fn own_user() -> Option<u32> {
    // SAFETY: the call touches no memory.
    known(unsafe { libc::geteuid() }, overflow())
}

/// The user of a number that the kernel tells, if it tells one that stands for a user.
pub(crate) fn user(told: Option<u32>) -> Option<u32> {
    told.and_then(|user| known(user, overflow()))
}

impl Socket {
    /// Whether the other end was opened by this process's user, or by root.
    pub fn is_trusted(&self) -> bool {
        let other = self.holder().user;
        is_same(own_user(), other) || other == Some(0)
    }

    /// Whether the other end was opened by this process's user: of a socket that listens, who
    /// connects sees who made it listen.
    pub fn is_same_user(&self) -> bool {
        is_same(own_user(), self.holder().user)
    }

    /// The user and the process that opened the socket's other end, as far as the kernel tells.
    pub fn holder(&self) -> Holder {
        let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
        let mut len = size_of_val(&peer) as libc::socklen_t;
        let (to, name) = (ptr::from_mut(&mut peer).cast(), libc::SO_PEERCRED);
        // SAFETY: the kernel writes at most the length that it is told.
        let result = unsafe { libc::getsockopt(self.raw(), libc::SOL_SOCKET, name, to, &mut len) };
        let told = (result == 0).then_some(peer);
        // A process of another namespace has the number 0.
        let process = told.and_then(|peer| u32::try_from(peer.pid).ok()).filter(|&pid| pid > 0);
        Holder { user: user(told.map(|peer| peer.uid)), process }
    }
}

/// Returns the user and the process that have an abstract name, as far as the kernel tells.
pub(crate) fn holder(name: &[u8]) -> Holder {
    let found = Socket::connect(name).map(|socket| socket.holder());
    // One that does not listen, or at whom too many wait already.
    found.unwrap_or_else(|_: io::Error| Holder { user: user(diag::user_of(name)), process: None })
}

/// Whether somebody is known to have a name who is another user than this process's.
pub(crate) fn is_anothers(name: &[u8]) -> bool {
    diag::user_of(name).is_some_and(|told| !is_same(own_user(), user(Some(told))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two users of other user namespaces have the same number here, and were taken for one.
    #[test]
    fn the_number_that_stands_for_users_without_one_is_nobodys_although_it_equals_ones_own() {
        for overflow in [65534, 1000, 0] {
            let [own, other] = [known(overflow, overflow); 2];
            assert!(!is_same(own, other), "{overflow}");
        }
        assert!(is_same(known(1000, 65534), known(1000, 65534)));
        assert!(!is_same(known(1000, 65534), known(1001, 65534)));
        assert_eq!(known(u32::MAX, 65534), None, "what the kernel did not tell");
    }
}

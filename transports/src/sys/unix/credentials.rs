//! The user and the process at the other end of a socket, and users who are the same.

use std::fs;
use std::os::fd::AsFd;
use std::sync::OnceLock;

use crate::sys::option;

/// The number that the kernel gives every user who has no number in a user namespace, unless
/// another one is set.
const OVERFLOW: u32 = 65534;

/// The user and the process that opened the other end of a socket.
pub(crate) struct Credentials {
    /// The number of the process, if it has one in this process's PID namespace.
    pub process: Option<u32>,
    /// The number of the user, if the user has one in this process's user namespace.
    pub user: Option<u32>,
}

/// Returns the number that stands for every user of other user namespaces who has none in this one:
/// so two users of whom the kernel tells this number need not be the same.
fn overflow() -> u32 {
    static FOUND: OnceLock<u32> = OnceLock::new();
    let found = FOUND.get().copied();
    found.unwrap_or_else(|| {
        let told = fs::read_to_string("/proc/sys/kernel/overflowuid").ok();
        match told.and_then(|text| text.trim().parse().ok()) {
            Some(number) => *FOUND.get_or_init(|| number),
            // Without that file, or a descriptor for it, the number is taken to be the usual one.
            None => OVERFLOW,
        }
    })
}

/// Returns a number that the kernel tells, if it stands for one user.
fn known(user: u32, overflow: u32) -> Option<u32> {
    (user != overflow && user != u32::MAX).then_some(user)
}

/// Returns whether two users are the same. A user without a number is the same as nobody.
pub(super) fn is_same(own: Option<u32>, other: Option<u32>) -> bool {
    own.is_some() && own == other
}

/// Returns the number of this process's user, if the user has one that is nobody else's.
pub(crate) fn own_user() -> Option<u32> {
    known(rustix::process::geteuid().as_raw(), overflow())
}

/// Returns a number that the kernel has told, if it stands for one user.
pub(super) fn user(told: Option<u32>) -> Option<u32> {
    told.and_then(|user| known(user, overflow()))
}

/// Returns who opened the other end of a Unix socket, or `None` if the kernel does not tell.
pub(crate) fn credentials_of(socket: impl AsFd) -> Option<Credentials> {
    // `rustix` has this option, too, but takes for granted that the number of a process is not 0,
    // as it is for a process of a PID namespace that this one does not see.
    let [process, user_id, _] = option::words(socket, libc::SOL_SOCKET, libc::SO_PEERCRED)?;
    let process = i32::try_from(process).ok().filter(|&process| process > 0);
    Some(Credentials { process: process.map(i32::cast_unsigned), user: user(Some(user_id)) })
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

//! Whose process has an abstract name.

use std::io;

use super::credentials::{is_same, own_user, user};
use super::socket::Socket;
use crate::holder::Holder;
use crate::sys::sock_diag;

/// Returns the user and the process that have an abstract name, as far as the kernel tells.
pub(crate) fn holder(name: &[u8]) -> Holder {
    let found = Socket::connect(name).map(|socket| socket.holder());
    // No connection comes about if the socket with that name does not listen, or too many callers
    // wait there already.
    let of_name = |_: io::Error| Holder { user: user(sock_diag::user_of(name)), process: None };
    found.unwrap_or_else(of_name)
}

/// Returns whether another user than this process's is known to have a name.
pub(crate) fn is_anothers(name: &[u8]) -> bool {
    sock_diag::user_of(name).is_some_and(|told| !is_same(own_user(), user(Some(told))))
}

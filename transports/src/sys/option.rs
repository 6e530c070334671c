//! Socket options that neither `rustix` nor `socket2` has, by their numbers.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libc::c_int;

use super::error::Context;

/// Sets a socket option to the bytes that `<linux/…>` declares for the option. `what` names the
/// option in an error.
pub(super) fn set_bytes(
    socket: impl AsFd,
    level: c_int,
    name: c_int,
    value: &[u8],
    what: &str,
) -> io::Result<()> {
    let (fd, len) = (socket.as_fd().as_raw_fd(), value.len() as libc::socklen_t);
    // `libc`: no crate sets an option by its number.
    // SAFETY: the kernel reads `len` bytes of a live slice.
    let result = unsafe { libc::setsockopt(fd, level, name, value.as_ptr().cast(), len) };
    let done = if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    done.context(what)
}

/// Sets a socket option that is a number. `what` names the option in an error.
pub(super) fn set(
    socket: impl AsFd,
    level: c_int,
    name: c_int,
    value: c_int,
    what: &str,
) -> io::Result<()> {
    set_bytes(socket, level, name, &value.to_ne_bytes(), what)
}

/// Returns a socket option that is `N` words long. `None` if the kernel does not have the option,
/// or has fewer words.
pub(super) fn words<const N: usize>(
    socket: impl AsFd,
    level: c_int,
    name: c_int,
) -> Option<[u32; N]> {
    let mut value = [0_u32; N];
    let mut len = size_of_val(&value) as libc::socklen_t;
    let (fd, to) = (socket.as_fd().as_raw_fd(), value.as_mut_ptr().cast());
    // `libc`: no crate reads an option by its number.
    // SAFETY: the kernel writes at most `len` bytes, the size of a live array.
    let result = unsafe { libc::getsockopt(fd, level, name, to, &mut len) };
    (result == 0 && len as usize == size_of_val(&value)).then_some(value)
}

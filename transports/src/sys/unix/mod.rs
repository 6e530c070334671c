//! Unix sockets by abstract names, which nobody has to remove, and descriptors sent along them.
//!
//! Whoever is connected may pass descriptors, and whoever closes the last one to an open file may
//! have to wait for that: a TCP socket lingers, for as long as its sender has set. So until a peer
//! is known to be trusted, the kernel is told to let none in ([`Socket::let_descriptors_in`]), which
//! it can since Linux 6.16; and what may hold some is closed by the [closer](super::closer).

mod credentials;
mod messages;

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use libc::c_int;

use super::closer;
use super::{check, owned, set_option};

pub(crate) use credentials::{holder, is_anothers, own_user, user};
pub(crate) use messages::{Passed, Received};

/// Whether a socket lets descriptors in; missing from the library for most targets.
#[cfg(not(any(target_arch = "sparc", target_arch = "sparc64")))]
const SO_PASSRIGHTS: c_int = 83;
#[cfg(any(target_arch = "sparc", target_arch = "sparc64"))]
const SO_PASSRIGHTS: c_int = 0x5c;

/// How many connections wait to be accepted, at most.
const BACKLOG: c_int = 128;

const KIND: c_int = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;

/// The address of an abstract name.
fn address(name: &[u8]) -> io::Result<(libc::sockaddr_un, u32)> {
    // SAFETY: sockaddr_un is plain and zero is a value for it.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as u16;
    // The first byte stays zero: that makes it abstract.
    let Some(place) = address.sun_path.get_mut(1..=name.len()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name is too long"));
    };
    for (to, from) in place.iter_mut().zip(name) {
        *to = *from as libc::c_char;
    }
    let len = std::mem::offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len();
    Ok((address, len as u32))
}

/// A Unix socket that is neither named nor connected.
fn unconnected() -> io::Result<OwnedFd> {
    // SAFETY: the call touches no memory.
    let result = unsafe { libc::socket(libc::AF_UNIX, KIND, 0) };
    // SAFETY: the descriptor is new and nobody else's.
    unsafe { owned(result, "AF_UNIX") }
}

fn bind(fd: &OwnedFd, name: &[u8]) -> io::Result<()> {
    let (address, len) = address(name)?;
    // SAFETY: the kernel reads the size that it is told.
    let result = unsafe { libc::bind(fd.as_raw_fd(), ptr::from_ref(&address).cast(), len) };
    check(result, "bind").map(drop)
}

/// Tells the kernel whether peers may pass descriptors to a socket. Whether it knows how to refuse
/// them: not before Linux 6.16.
fn let_in(fd: &OwnedFd, descriptors: bool) -> bool {
    #[cfg(test)]
    if tests::KERNEL_LETS_ALL_IN.get() {
        return false;
    }
    let value = c_int::from(descriptors);
    let set = set_option(fd.as_raw_fd(), libc::SOL_SOCKET, SO_PASSRIGHTS, &value, "SO_PASSRIGHTS");
    set.is_ok()
}

/// A place that keeps a descriptor free for something else.
pub(crate) struct Reserve(#[expect(dead_code, reason = "it is held, and not used")] OwnedFd);

impl Reserve {
    pub fn new() -> io::Result<Self> {
        unconnected().map(Self)
    }
}

/// A name that nobody else has as long as this lives, and by which nobody can connect.
pub(crate) struct Claim(#[expect(dead_code, reason = "it is held, and not used")] OwnedFd);

impl Claim {
    pub fn take(name: &[u8]) -> io::Result<Self> {
        let fd = unconnected()?;
        bind(&fd, name)?;
        Ok(Self(fd))
    }
}

/// A socket to which others connect by its name.
pub(crate) struct Listener {
    fd: OwnedFd,
    /// True if peers may pass descriptors before they are accepted: the kernel can't refuse them.
    open: bool,
}

impl Listener {
    pub fn by_name(name: &[u8]) -> io::Result<Self> {
        let fd = unconnected()?;
        // Of those who connect, each socket is as this one is at that time.
        let open = !let_in(&fd, false);
        bind(&fd, name)?;
        // SAFETY: the call touches no memory.
        check(unsafe { libc::listen(fd.as_raw_fd(), BACKLOG) }, "listen")?;
        Ok(Self { fd, open })
    }

    /// Accepts a connection, if there is one. The error is `ResourceBusy` while there is [no
    /// room](closer::has_room) for connections that the closer would have to close.
    pub fn accept(&self) -> io::Result<Socket> {
        if self.open && !closer::has_room() {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        self.accept_any()
    }

    fn accept_any(&self) -> io::Result<Socket> {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: the address is not asked for.
        let result = unsafe { libc::accept4(self.raw(), ptr::null_mut(), ptr::null_mut(), flags) };
        // SAFETY: the descriptor is new and nobody else's.
        let fd = unsafe { owned(result, "accept") }?;
        Ok(Socket::of(fd, self.open))
    }

    pub fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if self.open {
            shut_down(&self.fd);
            // Nobody can connect any more. Those who have are closed elsewhere, if they must be;
            // and the name is free when this returns.
            for _ in 0..=BACKLOG {
                if self.accept_any().is_err() {
                    break;
                }
            }
        }
    }
}

/// A connected socket that keeps messages apart, and never waits.
pub(crate) struct Socket {
    /// The socket's descriptor, which is there until the socket is dropped.
    fd: Option<OwnedFd>,
    /// True if the other end may pass descriptors.
    open: bool,
}

impl Socket {
    fn of(fd: OwnedFd, open: bool) -> Self {
        Self { fd: Some(fd), open }
    }

    /// Connects to the socket that listens by a name. The error is `WouldBlock` if too many
    /// connections wait there to be accepted.
    pub fn connect(name: &[u8]) -> io::Result<Self> {
        let (fd, (address, len)) = (unconnected()?, address(name)?);
        let open = !let_in(&fd, false);
        // SAFETY: the kernel reads the size that it is told.
        let result = unsafe { libc::connect(fd.as_raw_fd(), ptr::from_ref(&address).cast(), len) };
        check(result, "connect").map(|_| Self::of(fd, open))
    }

    /// Two that are connected to each other.
    pub fn pair() -> io::Result<[Self; 2]> {
        let mut fds = [0; 2];
        // SAFETY: the kernel writes two descriptors.
        let result = unsafe { libc::socketpair(libc::AF_UNIX, KIND, 0, fds.as_mut_ptr()) };
        check(result, "socketpair")?;
        // SAFETY: the descriptors are new and nobody else's.
        Ok(fds.map(|fd| Self::of(unsafe { OwnedFd::from_raw_fd(fd) }, true)))
    }

    /// Lets the other end pass descriptors from here on, which is trusted.
    pub fn let_descriptors_in(&mut self) {
        if !std::mem::replace(&mut self.open, true)
            && let Some(fd) = &self.fd
        {
            let_in(fd, true);
        }
    }

    pub fn raw(&self) -> RawFd {
        self.fd.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let Some(fd) = self.fd.take() else { return };
        if self.open {
            // The other end hears of it now, and can pass nothing more.
            shut_down(&fd);
            if !messages::is_empty(&fd) {
                closer::discard(fd, close_with_descriptors);
            }
        }
    }
}

/// Lets nobody send to a socket, or connect to it, any more. What has come stays.
fn shut_down(fd: &OwnedFd) {
    // SAFETY: the call touches no memory.
    unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_RDWR) };
}

/// Takes the descriptors out of a socket, closes them, and then the socket. It may wait.
fn close_with_descriptors(fd: OwnedFd) {
    /// As many messages as a socket has room for, and more.
    const MOST: usize = 4096;
    for _ in 0..MOST {
        if messages::is_empty(&fd) {
            break;
        }
        for passed in messages::take_descriptors(&fd) {
            closer::close(passed);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;

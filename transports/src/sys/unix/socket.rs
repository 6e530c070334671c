//! Sockets that listen by an abstract name, and connected ones.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libc::c_int;
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect,
    listen, shutdown, socket_with, socketpair,
};

use super::credentials::{Credentials, credentials_of, is_same, own_user};
use super::message::{self, ReceivedMessage};
use crate::holder::Holder;
use crate::sys::error::Context;
use crate::sys::{deferred_close, option};

/// Whether a socket lets descriptors in; missing from the library for most targets.
#[cfg(not(any(target_arch = "sparc", target_arch = "sparc64")))]
const SO_PASSRIGHTS: c_int = 83;
#[cfg(any(target_arch = "sparc", target_arch = "sparc64"))]
const SO_PASSRIGHTS: c_int = 0x5c;

/// How many connections wait to be accepted, at most.
const BACKLOG: i32 = 128;

const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

/// Makes the address of an abstract name.
fn address(name: &[u8]) -> io::Result<SocketAddrUnix> {
    SocketAddrUnix::new_abstract_name(name)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the name is too long"))
}

/// Opens a Unix socket that is neither named nor connected.
fn unconnected() -> io::Result<OwnedFd> {
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, FLAGS, None).context("AF_UNIX")
}

fn bind_by_name(fd: &OwnedFd, name: &[u8]) -> io::Result<()> {
    bind(fd, &address(name)?).context("bind")
}

/// Tells the kernel whether peers may pass descriptors to a socket. Returns whether the kernel
/// knows how to refuse them, as it does since Linux 6.16.
fn let_in(fd: &OwnedFd, descriptors: bool) -> bool {
    #[cfg(test)]
    if super::tests::KERNEL_LETS_ALL_IN.get() {
        return false;
    }
    let value = descriptors.into();
    option::set(fd, libc::SOL_SOCKET, SO_PASSRIGHTS, value, "SO_PASSRIGHTS").is_ok()
}

/// A descriptor that is held so that another one can be had in its place.
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
        bind_by_name(&fd, name)?;
        Ok(Self(fd))
    }
}

/// A socket to which others connect by its name.
pub(crate) struct Listener {
    fd: OwnedFd,
    /// True if peers may pass descriptors before they are accepted: the kernel can't refuse them.
    pub(super) open: bool,
}

impl Listener {
    pub fn by_name(name: &[u8]) -> io::Result<Self> {
        let fd = unconnected()?;
        // The socket of a caller inherits this when the caller connects.
        let open = !let_in(&fd, false);
        bind_by_name(&fd, name)?;
        listen(&fd, BACKLOG).context("listen")?;
        Ok(Self { fd, open })
    }

    /// Accepts a connection, if there is one. The error is `ResourceBusy` while there is [no
    /// room](deferred_close::has_room) for connections that another thread would have to close.
    pub fn accept(&self) -> io::Result<Socket> {
        if self.open && !deferred_close::has_room() {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        self.accept_any()
    }

    fn accept_any(&self) -> io::Result<Socket> {
        Ok(Socket::of(accept_with(&self.fd, FLAGS).context("accept")?, self.open))
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if self.open {
            shut_down(&self.fd);
            // Nobody can connect any more. The sockets of those who have are closed by another
            // thread, if they must be; and the name is free when this returns.
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
    pub(super) open: bool,
}

impl Socket {
    fn of(fd: OwnedFd, open: bool) -> Self {
        Self { fd: Some(fd), open }
    }

    /// Connects to the socket that listens by a name. The error is `WouldBlock` if too many
    /// connections wait there to be accepted.
    pub fn connect(name: &[u8]) -> io::Result<Self> {
        let (fd, address) = (unconnected()?, address(name)?);
        let open = !let_in(&fd, false);
        connect(&fd, &address).context("connect")?;
        Ok(Self::of(fd, open))
    }

    /// Opens two sockets that are connected to each other.
    pub fn pair() -> io::Result<[Self; 2]> {
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, FLAGS, None)
            .context("socketpair")?;
        Ok([one, other].map(|fd| Self::of(fd, true)))
    }

    /// Lets the other end pass descriptors from here on, since it is trusted.
    pub fn let_descriptors_in(&mut self) {
        if !std::mem::replace(&mut self.open, true)
            && let Some(fd) = &self.fd
        {
            let_in(fd, true);
        }
    }

    /// Sends a message, and a descriptor with it. The error is `WouldBlock` if the other end has
    /// many messages to read.
    pub fn send(&self, message: &[u8], fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
        message::send(self.as_fd(), message, fd)
    }

    /// Receives the next message, if there is one. Of several descriptors, the first comes along.
    pub fn receive(&self, to: &mut [u8]) -> io::Result<ReceivedMessage> {
        message::receive(self.as_fd(), to)
    }

    /// Returns whether the other end was opened by this process's user, or by root.
    pub fn is_trusted(&self) -> bool {
        let other = self.holder().user;
        is_same(own_user(), other) || other == Some(0)
    }

    /// Returns whether the other end was opened by this process's user. Of a connection to a socket
    /// that listens, this tells who made that socket listen.
    pub fn is_same_user(&self) -> bool {
        is_same(own_user(), self.holder().user)
    }

    /// Returns the user and the process that opened the socket's other end, as far as the kernel
    /// tells.
    pub fn holder(&self) -> Holder {
        let unknown = Credentials { process: None, user: None };
        let Credentials { process, user } = credentials_of(self).unwrap_or(unknown);
        Holder { user, process }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("the descriptor is there until the socket is dropped").as_fd()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let Some(fd) = self.fd.take() else { return };
        if self.open {
            // The other end hears of the close now, and can pass nothing more.
            shut_down(&fd);
            if !message::is_empty(fd.as_fd()) {
                deferred_close::discard(fd, close_with_descriptors);
            }
        }
    }
}

/// Keeps others from sending to a socket, or connecting to it, from here on. What has come stays.
fn shut_down(fd: &OwnedFd) {
    let _ = shutdown(fd, Shutdown::Both);
}

/// Takes the descriptors out of a socket, closes them, and then the socket. This may wait.
fn close_with_descriptors(fd: OwnedFd) {
    /// More messages than a socket has room for.
    const MOST: usize = 4096;
    for _ in 0..MOST {
        if message::is_empty(fd.as_fd()) {
            break;
        }
        message::take_descriptors(fd.as_fd()).into_iter().for_each(deferred_close::close);
    }
}

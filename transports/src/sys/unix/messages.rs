//! Messages along Unix sockets, and descriptors that come with them.

use std::io;
use std::mem::{offset_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use libc::c_int;

use super::Socket;
use crate::sys::closer;
use crate::sys::{count, set_option};

/// The most descriptors that come with a message: Linux sends no more.
const MOST: usize = 253;

/// The result of looking for a message in a socket.
pub(crate) enum Received {
    /// A message of so many bytes, and the descriptor that came with the message, if one did.
    Message(usize, Option<Passed>),
    /// A message whose descriptor is lost, since this process may have no more descriptors.
    NoDescriptor,
    Nothing,
    /// The socket's other end is closed, and all that it sent has been read.
    End,
}

/// A descriptor that a peer has passed, whatever it may be for. One that is not kept is closed
/// elsewhere, since that may take any time.
pub(crate) struct Passed(Option<OwnedFd>);

impl Passed {
    /// Borrows the descriptor, to find out what it is.
    pub fn look(&self) -> BorrowedFd<'_> {
        self.0.as_ref().expect("it is there until it is kept or dropped").as_fd()
    }

    /// Takes the descriptor out, for a caller who knows that its close never waits.
    pub fn keep(mut self) -> OwnedFd {
        self.0.take().expect("it is there until it is kept or dropped")
    }
}

impl Drop for Passed {
    fn drop(&mut self) {
        if let Some(fd) = self.0.take() {
            closer::discard(fd, closer::close);
        }
    }
}

/// A control message with room for some descriptors.
#[repr(C)]
struct Control<const N: usize> {
    header: libc::cmsghdr,
    fds: [RawFd; N],
}

/// Where the descriptors begin in a control message.
const AHEAD: usize = size_of::<libc::cmsghdr>();

impl<const N: usize> Control<N> {
    /// Without what would pad it: that would be room for another descriptor.
    const LEN: usize = AHEAD + N * size_of::<RawFd>();

    fn new() -> Self {
        const { assert!(offset_of!(Self, fds) == AHEAD && AHEAD.is_multiple_of(size_of::<usize>())) };
        // SAFETY: cmsghdr is plain and zero is a value for it.
        Self { header: unsafe { zeroed() }, fds: [-1; N] }
    }

    /// The descriptors that the kernel has written to it.
    fn into_descriptors(self) -> impl Iterator<Item = OwnedFd> {
        let rights =
            (self.header.cmsg_level, self.header.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS);
        let len: usize = if rights { self.header.cmsg_len as _ } else { 0 };
        let written = len.saturating_sub(AHEAD) / size_of::<RawFd>();
        self.fds.into_iter().take(written).filter(|&fd| fd >= 0).map(|fd| {
            // SAFETY: the kernel has written it, as a descriptor that is new and nobody else's.
            unsafe { OwnedFd::from_raw_fd(fd) }
        })
    }
}

/// The outcome of one system call that receives a message.
struct Taken<const N: usize> {
    result: io::Result<usize>,
    flags: c_int,
    control: Control<N>,
}

/// Receives a message to some bytes, and its descriptors.
fn take<const N: usize>(fd: RawFd, to: &mut [u8], flags: c_int) -> Taken<N> {
    let mut bytes = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    let mut control = Control::new();
    // SAFETY: msghdr is plain and zero is a value for it.
    let mut header: libc::msghdr = unsafe { zeroed() };
    (header.msg_iov, header.msg_iovlen) = (&raw mut bytes, 1);
    if N > 0 {
        header.msg_control = (&raw mut control).cast();
        header.msg_controllen = Control::<N>::LEN as _;
    }
    let flags = flags | libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
    // SAFETY: the kernel writes no more than the lengths that it is told, to parts that all live.
    let result = count(unsafe { libc::syscall(libc::SYS_recvmsg, fd, &raw mut header, flags) });
    Taken { result, flags: header.msg_flags, control }
}

/// Whether nothing waits in a socket to be read, for good if nobody can send to it any more.
///
/// A message without bytes looks like the end of the connection. But with each message, and not
/// with the end, comes who has sent it, if that is asked for; and that there is no room for that
/// shows.
pub(super) fn is_empty(fd: &OwnedFd) -> bool {
    let ask = |value: c_int| {
        set_option(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PASSCRED, &value, "SO_PASSCRED")
    };
    if ask(1).is_err() {
        return false;
    }
    let mut taken = take::<0>(fd.as_raw_fd(), &mut [], libc::MSG_PEEK);
    if taken.result.as_ref().is_err_and(|why| why.kind() == io::ErrorKind::ConnectionReset) {
        taken = take::<0>(fd.as_raw_fd(), &mut [], libc::MSG_PEEK);
    }
    let waits = taken.result.is_ok() && taken.flags & libc::MSG_CTRUNC != 0;
    ask(0).is_ok() && !waits
}

/// The descriptors of the next message in a socket; its bytes are passed over.
pub(super) fn take_descriptors(fd: &OwnedFd) -> impl Iterator<Item = OwnedFd> {
    take::<MOST>(fd.as_raw_fd(), &mut [], 0).control.into_descriptors()
}

impl Socket {
    /// Sends a message, and a descriptor with it. `WouldBlock` if the other end has many to read.
    pub fn send(&self, message: &[u8], fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut bytes =
            libc::iovec { iov_base: message.as_ptr().cast_mut().cast(), iov_len: message.len() };
        let mut control = Control::<1>::new();
        // SAFETY: msghdr is plain and zero is a value for it.
        let mut header: libc::msghdr = unsafe { zeroed() };
        (header.msg_iov, header.msg_iovlen) = (&raw mut bytes, 1);
        if let Some(fd) = fd {
            let (level, kind) = (libc::SOL_SOCKET, libc::SCM_RIGHTS);
            (control.header.cmsg_level, control.header.cmsg_type) = (level, kind);
            control.header.cmsg_len = Control::<1>::LEN as _;
            control.fds = [fd.as_raw_fd()];
            header.msg_control = (&raw mut control).cast();
            header.msg_controllen = Control::<1>::LEN as _;
        }
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: the kernel reads the message and the control message, both live.
        count(unsafe { libc::syscall(libc::SYS_sendmsg, self.raw(), &raw const header, flags) })
            .map(drop)
    }

    /// The next message, if there is one. Of several descriptors the first one comes along.
    pub fn receive(&self, to: &mut [u8]) -> io::Result<Received> {
        let mut taken = take::<MOST>(self.raw(), to, 0);
        // The other end was closed before it had read everything: so much is told once, before
        // what it said last.
        if taken.result.as_ref().is_err_and(|why| why.kind() == io::ErrorKind::ConnectionReset) {
            taken = take(self.raw(), to, 0);
        }
        let len = match taken.result {
            Ok(len) => len,
            Err(error) => {
                return match error.kind() {
                    io::ErrorKind::WouldBlock => Ok(Received::Nothing),
                    io::ErrorKind::ConnectionReset => Ok(Received::End),
                    _ => Err(error),
                };
            }
        };
        let mut passed = taken.control.into_descriptors().map(|fd| Passed(Some(fd)));
        let first = passed.next();
        // Nobody has use for more.
        passed.for_each(drop);
        if first.is_none() && taken.flags & libc::MSG_CTRUNC != 0 {
            return Ok(Received::NoDescriptor);
        }
        // No message that is sent here is empty, so that is the end.
        Ok(if len == 0 { Received::End } else { Received::Message(len, first) })
    }
}

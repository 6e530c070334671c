//! Unix sockets by abstract names, which nobody has to remove, and descriptors sent along them.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use libc::c_int;

use super::{check, count};

/// A socket that keeps messages apart, and never waits.
pub(crate) struct Socket(OwnedFd);

/// How many connections wait to be accepted, at most.
const BACKLOG: c_int = 128;

/// What became of looking for a message.
pub(crate) enum Received {
    /// One of so many bytes, and a descriptor if one came along.
    Message(usize, Option<OwnedFd>),
    /// One whose descriptor is lost, for this process may have no more.
    NoDescriptor,
    Nothing,
    /// The other end is closed.
    End,
}

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

const KIND: c_int = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;

impl Socket {
    /// One that is neither named nor connected.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the descriptor is new and nobody else's.
        unsafe {
            let fd = check(libc::socket(libc::AF_UNIX, KIND, 0), "AF_UNIX")?;
            Ok(Self(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// One that others find by a name.
    pub fn listen(name: &[u8]) -> io::Result<Self> {
        let (socket, (address, len)) = (Self::new()?, address(name)?);
        // SAFETY: the kernel reads the size that it is told.
        let result = unsafe { libc::bind(socket.raw(), ptr::from_ref(&address).cast(), len) };
        check(result, "bind")?;
        // SAFETY: the call touches no memory.
        check(unsafe { libc::listen(socket.raw(), BACKLOG) }, "listen")?;
        Ok(socket)
    }

    /// One that is connected to whoever listens by a name; or would be, were there not too many
    /// waiting there already (`WouldBlock`).
    pub fn connect(name: &[u8]) -> io::Result<Self> {
        let (socket, (address, len)) = (Self::new()?, address(name)?);
        // SAFETY: the kernel reads the size that it is told.
        let result = unsafe { libc::connect(socket.raw(), ptr::from_ref(&address).cast(), len) };
        check(result, "connect").map(|_| socket)
    }

    /// Who connected to this one, if anybody has.
    pub fn accept(&self) -> io::Result<Self> {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: the address is not asked for; the descriptor is new and nobody else's.
        unsafe {
            let fd = libc::accept4(self.raw(), ptr::null_mut(), ptr::null_mut(), flags);
            Ok(Self(OwnedFd::from_raw_fd(check(fd, "accept")?)))
        }
    }

    /// Two that are connected to each other.
    pub fn pair() -> io::Result<[Self; 2]> {
        let mut fds = [0; 2];
        // SAFETY: the kernel writes two descriptors, new and nobody else's.
        unsafe {
            let result = libc::socketpair(libc::AF_UNIX, KIND, 0, fds.as_mut_ptr());
            check(result, "socketpair")?;
            Ok(fds.map(|fd| Self(OwnedFd::from_raw_fd(fd))))
        }
    }

    /// Whether the other end was opened by this process's user, or by root.
    pub fn is_trusted(&self) -> bool {
        self.is_same_user() || self.user() == Some(0)
    }

    /// Whether the other end was opened by this process's user: of a socket that listens, who
    /// connects sees who made it listen.
    pub fn is_same_user(&self) -> bool {
        // SAFETY: the call touches no memory.
        self.user() == Some(unsafe { libc::geteuid() })
    }

    /// The user who opened the other end.
    fn user(&self) -> Option<u32> {
        let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
        let mut len = size_of_val(&peer) as libc::socklen_t;
        let (to, name) = (ptr::from_mut(&mut peer).cast(), libc::SO_PEERCRED);
        // SAFETY: the kernel writes at most the length that it is told.
        let result = unsafe { libc::getsockopt(self.raw(), libc::SOL_SOCKET, name, to, &mut len) };
        (result == 0).then_some(peer.uid)
    }

    /// Sends a message, and a descriptor with it. `WouldBlock` if the other end has many to read.
    pub fn send(&self, message: &[u8], fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut bytes =
            libc::iovec { iov_base: message.as_ptr().cast_mut().cast(), iov_len: message.len() };
        let mut control = Control::new();
        // SAFETY: msghdr is plain and zero is a value for it; the kernel reads the message and the
        // control message, both live; the latter has room for one descriptor.
        count(unsafe {
            let mut header: libc::msghdr = std::mem::zeroed();
            header.msg_iov = &mut bytes;
            header.msg_iovlen = 1;
            if let Some(fd) = fd {
                header.msg_control = control.0.as_mut_ptr().cast();
                header.msg_controllen = Control::LEN;
                let first = libc::CMSG_FIRSTHDR(&header);
                (*first).cmsg_level = libc::SOL_SOCKET;
                (*first).cmsg_type = libc::SCM_RIGHTS;
                (*first).cmsg_len = Control::LEN;
                libc::CMSG_DATA(first).cast::<RawFd>().write_unaligned(fd.as_raw_fd());
            }
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            libc::syscall(libc::SYS_sendmsg, self.raw(), &raw const header, flags)
        })
        .map(drop)
    }

    /// The next message, if there is one. Of several descriptors, the first one comes along, and
    /// the kernel closes the rest.
    pub fn receive(&self, to: &mut [u8]) -> io::Result<Received> {
        let mut bytes = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
        let mut control = Control::new();
        // SAFETY: msghdr is plain and zero is a value for it; the kernel writes no more than the
        // lengths that it is told. What it writes as descriptors are new ones, and nobody else's.
        unsafe {
            let mut header: libc::msghdr = std::mem::zeroed();
            header.msg_iov = &mut bytes;
            header.msg_iovlen = 1;
            header.msg_control = control.0.as_mut_ptr().cast();
            header.msg_controllen = Control::LEN;
            let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
            let receive = |header: &mut libc::msghdr| {
                count(libc::syscall(libc::SYS_recvmsg, self.raw(), ptr::from_mut(header), flags))
            };
            let mut received = receive(&mut header);
            // The other end was closed before it had read everything: so much is told once, before
            // what it said last.
            if received.as_ref().is_err_and(|why| why.kind() == io::ErrorKind::ConnectionReset) {
                received = receive(&mut header);
            }
            let len = match received {
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Received::Nothing);
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Ok(Received::End);
                }
                Err(error) => return Err(error),
            };
            let first = libc::CMSG_FIRSTHDR(&header);
            let came = !first.is_null()
                && (*first).cmsg_level == libc::SOL_SOCKET
                && (*first).cmsg_type == libc::SCM_RIGHTS
                && (*first).cmsg_len == Control::LEN;
            let fd = came.then(|| {
                OwnedFd::from_raw_fd(libc::CMSG_DATA(first).cast::<RawFd>().read_unaligned())
            });
            if fd.is_none() && header.msg_flags & libc::MSG_CTRUNC != 0 {
                return Ok(Received::NoDescriptor);
            }
            // No message that is sent here is empty, so that is the end.
            Ok(if len == 0 { Received::End } else { Received::Message(len, fd) })
        }
    }

    pub fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Room for a control message with one descriptor.
#[repr(align(8))]
struct Control([MaybeUninit<u8>; 24]);

impl Control {
    /// Without what would pad it: that would be room for another descriptor.
    // SAFETY: the macro computes a number.
    const LEN: usize = unsafe { libc::CMSG_LEN(size_of::<RawFd>() as u32) } as usize;

    fn new() -> Self {
        const { assert!(Self::LEN <= 24) };
        Self([MaybeUninit::zeroed(); 24])
    }
}

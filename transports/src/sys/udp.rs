//! UDP sockets: segments both ways, peers that the kernel remembers, and identifications learnt.

mod notes;

use std::io;
use std::mem::zeroed;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr;

use libc::{c_int, c_void};

use super::{check, count, owned, set_option};

pub(crate) use notes::Note;

/// Missing from the library for some targets.
const UDP_NO_CHECK6_RX: c_int = 102;
const IPV6_ADDR_PREFERENCES: c_int = 72;
const IPV6_PREFER_SRC_PUBLIC: c_int = 2;

/// How much of what has arrived waits at a socket at most. The kernel counts double, for what it
/// keeps beside each datagram.
pub(crate) const RECEIVE_BUFFER: usize = 4 << 20;
/// The same for what is to leave.
pub(crate) const SEND_BUFFER: usize = 1 << 20;

/// A UDP socket that blocks nobody, fragments nothing, has one address, and says when what it was
/// to send did not leave. What it says of the network it [notes](Self::note), too, and each note
/// must be read.
pub(crate) struct UdpSocket {
    fd: OwnedFd,
    v6: bool,
}

/// What a control message of one number takes, aligned as it must be.
#[repr(C)]
struct Control {
    header: libc::cmsghdr,
    value: u64,
}

impl Control {
    const fn of(level: c_int, kind: c_int, value: &[u8]) -> Self {
        // SAFETY: cmsghdr is plain and zero is a value for it.
        let mut header: libc::cmsghdr = unsafe { zeroed() };
        header.cmsg_len = (size_of::<libc::cmsghdr>() + value.len()) as _;
        (header.cmsg_level, header.cmsg_type) = (level, kind);
        let (mut bytes, mut at) = ([0; 8], 0);
        while at < value.len() {
            bytes[at] = value[at];
            at += 1;
        }
        Self { header, value: u64::from_ne_bytes(bytes) }
    }
}

/// An address as the kernel reads and writes it.
#[derive(Clone, Copy)]
pub(crate) struct Name {
    storage: libc::sockaddr_storage,
    len: libc::socklen_t,
}

impl Name {
    const NOBODY: Self = {
        // SAFETY: sockaddr_storage is plain and zero is a value for it.
        let storage = unsafe { zeroed() };
        Self { storage, len: size_of::<libc::sockaddr_storage>() as libc::socklen_t }
    };

    pub fn of(address: SocketAddr) -> Self {
        let mut name = Self::NOBODY;
        let storage = ptr::from_mut(&mut name.storage);
        match address {
            SocketAddr::V4(address) => {
                let v4 = libc::sockaddr_in {
                    sin_family: libc::AF_INET as u16,
                    sin_port: address.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
                    sin_zero: [0; 8],
                };
                // SAFETY: the storage is large enough and aligned for every kind of address.
                unsafe { storage.cast::<libc::sockaddr_in>().write(v4) };
                name.len = size_of_val(&v4) as libc::socklen_t;
            }
            SocketAddr::V6(address) => {
                let v6 = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as u16,
                    sin6_port: address.port().to_be(),
                    sin6_flowinfo: 0,
                    sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                    sin6_scope_id: address.scope_id(),
                };
                // SAFETY: as above.
                unsafe { storage.cast::<libc::sockaddr_in6>().write(v6) };
                name.len = size_of_val(&v6) as libc::socklen_t;
            }
        }
        name
    }

    #[inline]
    fn address(&self) -> Option<SocketAddr> {
        let storage = ptr::from_ref(&self.storage);
        match c_int::from(self.storage.ss_family) {
            libc::AF_INET => {
                // SAFETY: the storage is large enough and aligned for either kind, and all of it
                // was written once.
                let v4 = unsafe { &*storage.cast::<libc::sockaddr_in>() };
                let ip = u32::from_be(v4.sin_addr.s_addr).into();
                Some(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
            }
            libc::AF_INET6 => {
                // SAFETY: as above.
                let v6 = unsafe { &*storage.cast::<libc::sockaddr_in6>() };
                let (ip, port) = (v6.sin6_addr.s6_addr.into(), u16::from_be(v6.sin6_port));
                Some(SocketAddrV6::new(ip, port, 0, v6.sin6_scope_id).into())
            }
            _ => None,
        }
    }
}

/// What a datagram was received as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Received {
    pub len: usize,
    /// The size of its packets, if the kernel put several together.
    pub segment: Option<u16>,
    /// Whom it is from, if that was asked.
    pub from: Option<SocketAddr>,
}

impl UdpSocket {
    /// A socket for peers of the same family as `local`, not yet bound.
    ///
    /// What it sends is not fragmented, and is as long as the interface lets it be: what ICMP
    /// messages say of narrower links further on, which anybody can forge, fails no send (`PROBE`).
    pub fn open(local: SocketAddr) -> io::Result<Self> {
        let (family, v6) = match local {
            SocketAddr::V4(_) => (libc::AF_INET, false),
            SocketAddr::V6(_) => (libc::AF_INET6, true),
        };
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: the call touches no memory.
        let result = unsafe { libc::socket(family, kind, 0) };
        // SAFETY: the descriptor is new and nobody else's.
        let fd = unsafe { owned(result, "a UDP socket") }?;
        let socket = Self { fd, v6 };
        if v6 {
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1, "IPV6_V6ONLY")?;
            let (name, whole) = (libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE);
            socket.set(libc::IPPROTO_IPV6, name, whole, "IPV6_MTU_DISCOVER")?;
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1, "IPV6_RECVERR")?;
            // The kernel's own RoCE sends no checksum.
            socket.set(libc::IPPROTO_UDP, UDP_NO_CHECK6_RX, 1, "UDP_NO_CHECK6_RX")?;
        } else {
            let (name, whole) = (libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE);
            socket.set(libc::IPPROTO_IP, name, whole, "IP_MTU_DISCOVER")?;
            socket.set(libc::IPPROTO_IP, libc::IP_RECVERR, 1, "IP_RECVERR")?;
        }
        for (force, ask, size) in [
            (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, RECEIVE_BUFFER as c_int),
            (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, SEND_BUFFER as c_int),
        ] {
            // Without the privilege, as much as the system's limit allows.
            let forced = socket.set(libc::SOL_SOCKET, force, size, "");
            let ask = |_| socket.set(libc::SOL_SOCKET, ask, size, "SO_RCVBUF, SO_SNDBUF");
            forced.or_else(ask)?;
        }
        Ok(socket)
    }

    /// One more, if this thread is where that of this socket was: sockets belong for good to the
    /// network namespace of the thread that opens them, and another has other addresses.
    pub fn another(&self, local: SocketAddr) -> io::Result<Self> {
        let other = Self::open(local)?;
        // Systems that don't tell are taken to have but one.
        let namespace = |socket: &Self| socket.get::<2>(libc::SO_NETNS_COOKIE);
        match namespace(self) == namespace(&other) {
            true => Ok(other),
            false => Err(io::ErrorKind::AddrNotAvailable.into()),
        }
    }

    /// Has the system, where it chooses the address that this sends from, not choose one of those
    /// that IPv6 replaces each day for privacy.
    pub fn prefer_lasting_address(&self) -> io::Result<()> {
        if !self.v6 {
            return Ok(());
        }
        let (name, lasting) = (IPV6_ADDR_PREFERENCES, IPV6_PREFER_SRC_PUBLIC);
        self.set(libc::IPPROTO_IPV6, name, lasting, "IPV6_ADDR_PREFERENCES")
    }

    fn set(&self, level: c_int, name: c_int, value: c_int, what: &str) -> io::Result<()> {
        set_option(self.fd.as_raw_fd(), level, name, &value, what)
    }

    /// An option of any socket that is so many words long.
    fn get<const N: usize>(&self, name: c_int) -> Option<[u32; N]> {
        let mut value = [0u32; N];
        let mut len = size_of_val(&value) as libc::socklen_t;
        let (fd, to) = (self.fd.as_raw_fd(), value.as_mut_ptr().cast());
        // SAFETY: the kernel writes at most the length that it is told.
        let result = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, name, to, &mut len) };
        (result == 0 && len as usize == size_of_val(&value)).then_some(value)
    }

    /// Takes an address, on which nobody else listens.
    pub fn bind(&self, local: SocketAddr) -> io::Result<()> {
        let name = Name::of(local);
        // SAFETY: the kernel reads the size that it is told of a live address.
        let result = unsafe {
            libc::bind(self.fd.as_raw_fd(), ptr::from_ref(&name.storage).cast(), name.len)
        };
        // As it is: what kind of error it was matters to whoever opens a device.
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Takes the address that `listener` has already, to be connected to a peer.
    ///
    /// The system lets sockets share an address if they all say so. The listener says so for the
    /// length of this call only, and to processes of the same user only (`SO_REUSEPORT`): at any
    /// other time nobody else takes the address, for with the listener nobody may share it. Those
    /// beside it have said so for good (`SO_REUSEADDR`), as each must accept the next.
    ///
    /// `anywhere` gives it all addresses, of which connecting leaves the one that the system
    /// chooses. It is for IPv6, where sockets that share an address stand behind each other, and
    /// the kernel takes its short cut to the first only: two fifths of a microsecond. Connecting
    /// puts a socket to the front that had all addresses before.
    pub fn bind_beside(
        &self,
        listener: &Self,
        local: SocketAddr,
        anywhere: bool,
    ) -> io::Result<()> {
        let from = match anywhere {
            true => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), local.port()),
            false => local,
        };
        let level = libc::SOL_SOCKET;
        self.set(level, libc::SO_REUSEADDR, 1, "SO_REUSEADDR")?;
        self.set(level, libc::SO_REUSEPORT, 1, "SO_REUSEPORT")?;
        listener.set(level, libc::SO_REUSEPORT, 1, "SO_REUSEPORT")?;
        let bound = self.bind(from);
        listener.set(level, libc::SO_REUSEPORT, 0, "SO_REUSEPORT")?;
        self.set(level, libc::SO_REUSEPORT, 0, "SO_REUSEPORT")?;
        bound
    }

    /// Sends to a peer, and receives from it alone, from here on.
    pub fn connect(&self, peer: SocketAddr) -> io::Result<()> {
        let name = Name::of(peer);
        // SAFETY: the kernel reads the size that it is told of a live address.
        let result = unsafe {
            libc::connect(self.fd.as_raw_fd(), ptr::from_ref(&name.storage).cast(), name.len)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The address that it is bound to.
    pub fn local(&self) -> io::Result<SocketAddr> {
        let mut name = Name::NOBODY;
        // SAFETY: the kernel writes at most the length that it is told.
        let result = unsafe {
            let to = ptr::from_mut(&mut name.storage).cast();
            libc::getsockname(self.fd.as_raw_fd(), to, &mut name.len)
        };
        check(result, "getsockname")?;
        name.address().ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }

    /// Whether datagrams that arrive together may be put together.
    pub fn put_together(&self, together: bool) -> io::Result<()> {
        self.set(libc::SOL_UDP, libc::UDP_GRO, together.into(), "UDP_GRO")
    }

    /// How many datagrams came while there was no room for them.
    pub fn overrun(&self) -> u64 {
        const DROPS: usize = 8;
        let counted = self.get::<{ DROPS + 1 }>(libc::SO_MEMINFO);
        counted.map_or(0, |counted| counted[DROPS].into())
    }

    /// Sends a datagram to the peer that it is connected to.
    ///
    /// A system call, as all on the data path are: the library's functions are points of
    /// cancellation, and in a process of several threads pay 60 ns for being one.
    #[inline]
    pub fn send(&self, datagram: &[u8]) -> io::Result<()> {
        let (fd, nowhere) = (self.fd.as_raw_fd(), ptr::null::<c_void>());
        // SAFETY: the kernel reads the bytes of a live slice.
        count(unsafe {
            libc::syscall(libc::SYS_sendto, fd, datagram.as_ptr(), datagram.len(), 0, nowhere, 0)
        })
        .map(drop)
    }

    /// Sends datagrams of `segment` bytes each, the last possibly shorter; one, if that is not
    /// given. To a peer, or the one that it is connected to.
    #[inline]
    pub fn send_run(
        &self,
        datagrams: &[u8],
        segment: Option<u16>,
        to: Option<&Name>,
    ) -> io::Result<()> {
        let control = segment
            .map(|segment| Control::of(libc::SOL_UDP, libc::UDP_SEGMENT, &segment.to_ne_bytes()));
        self.send_with(datagrams, control.as_ref(), to)
    }

    #[inline]
    fn send_with(
        &self,
        datagrams: &[u8],
        control: Option<&Control>,
        to: Option<&Name>,
    ) -> io::Result<()> {
        let mut bytes = libc::iovec {
            iov_base: datagrams.as_ptr().cast_mut().cast(),
            iov_len: datagrams.len(),
        };
        // SAFETY: msghdr is plain and zero is a value for it.
        let mut message: libc::msghdr = unsafe { zeroed() };
        (message.msg_iov, message.msg_iovlen) = (&raw mut bytes, 1);
        if let Some(name) = to {
            message.msg_name = ptr::from_ref(&name.storage).cast_mut().cast();
            message.msg_namelen = name.len;
        }
        if let Some(control) = control {
            message.msg_control = ptr::from_ref(control).cast_mut().cast();
            message.msg_controllen = size_of::<Control>() as _;
        }
        // SAFETY: the kernel reads a message whose parts all live until the call returns, and
        // writes none of them.
        count(unsafe {
            libc::syscall(libc::SYS_sendmsg, self.fd.as_raw_fd(), &raw const message, 0)
        })
        .map(drop)
    }

    /// Receives a datagram; from a socket that puts several together, [`receive`](Self::receive).
    #[inline]
    pub fn receive_one(&self, to: &mut [u8]) -> io::Result<usize> {
        let (fd, nobody) = (self.fd.as_raw_fd(), ptr::null::<c_void>());
        // SAFETY: the kernel writes at most the length of a live slice.
        count(unsafe {
            libc::syscall(libc::SYS_recvfrom, fd, to.as_mut_ptr(), to.len(), 0, nobody, nobody)
        })
    }

    /// Receives a datagram, or several that were put together, and if `named` whom they are from.
    /// It costs 0.12 µs more than to receive one alone, and the name another 0.04.
    #[inline]
    pub fn receive(&self, to: &mut [u8], named: bool) -> io::Result<Received> {
        let mut name = Name::NOBODY;
        let mut control = Control::of(0, 0, &[]);
        let mut bytes = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
        // SAFETY: msghdr is plain and zero is a value for it.
        let mut message: libc::msghdr = unsafe { zeroed() };
        (message.msg_iov, message.msg_iovlen) = (&raw mut bytes, 1);
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = size_of::<Control>() as _;
        if named {
            (message.msg_name, message.msg_namelen) = ((&raw mut name.storage).cast(), name.len);
        }
        // SAFETY: the kernel writes at most the lengths that it is told, to parts that all live.
        let len = count(unsafe {
            libc::syscall(libc::SYS_recvmsg, self.fd.as_raw_fd(), &raw mut message, 0)
        })?;
        let put_together = message.msg_controllen as usize > size_of::<libc::cmsghdr>()
            && (control.header.cmsg_level, control.header.cmsg_type)
                == (libc::SOL_UDP, libc::UDP_GRO);
        let value = control.value.to_ne_bytes();
        let segment = put_together
            .then(|| u32::from_ne_bytes([value[0], value[1], value[2], value[3]]) as u16);
        Ok(Received { len, segment, from: if named { name.address() } else { None } })
    }

    pub fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

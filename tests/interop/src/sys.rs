//! What the harness asks of Linux beyond the kit, and all of its unsafe code.

use std::ffi::CString;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use libc::{c_int, c_void, socklen_t};

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Has a command inherit a descriptor, under the number that is returned.
pub(crate) fn inherit(command: &mut Command, descriptor: OwnedFd) -> RawFd {
    let number = descriptor.as_raw_fd();
    let keep = move || {
        // SAFETY: a plain system call on a descriptor that the closure owns.
        check(unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFD, 0) }).map(drop)
    };
    // SAFETY: `keep` makes a system call and nothing else.
    unsafe { command.pre_exec(keep) };
    number
}

/// Waits until one of the descriptors can be read or, where `true` is said, written: which of them.
pub(crate) fn wait<const N: usize>(
    descriptors: [(BorrowedFd<'_>, bool); N],
    at_most: Option<Duration>,
) -> io::Result<[bool; N]> {
    let mut polled = descriptors.map(|(descriptor, write)| libc::pollfd {
        fd: descriptor.as_raw_fd(),
        events: if write { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN },
        revents: 0,
    });
    // Rather a millisecond late than many times too early.
    let millis = |time: Duration| c_int::try_from(time.as_millis() + 1).unwrap_or(c_int::MAX);
    let millis = at_most.map_or(-1, millis);
    // SAFETY: the kernel reads and writes `N` live entries.
    match check(unsafe { libc::poll(polled.as_mut_ptr(), N as libc::nfds_t, millis) }) {
        Err(why) if why.kind() == io::ErrorKind::Interrupted => Ok([false; N]),
        other => other.map(|_| polled.map(|polled| polled.revents != 0)),
    }
}

fn set<T>(socket: &OwnedFd, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    let (value, len) = (std::ptr::from_ref(value).cast::<c_void>(), size_of::<T>() as socklen_t);
    // SAFETY: the kernel reads as many bytes of a live value as it has.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value, len) }).map(drop)
}

/// Opens a socket that receives every frame of an interface of this thread's namespace, except what
/// it sends itself. It does not block.
pub(crate) fn packet_socket(interface: &str, queue: c_int) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the descriptor is new and nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(check(libc::socket(libc::AF_PACKET, kind, 0))?) };
    let name = CString::new(interface)?;
    // SAFETY: the name ends with a zero.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) } as c_int;
    if index == 0 {
        return Err(io::Error::last_os_error());
    }
    set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1_i32)?;
    // More than the system's limit takes a privilege.
    if set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &queue).is_err() {
        set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &queue)?;
    }
    let all = libc::packet_mreq {
        mr_ifindex: index,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set(&socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &all)?;
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: index,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let len = size_of::<libc::sockaddr_ll>() as socklen_t;
    // SAFETY: the kernel reads as many bytes of a live address as it has.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) })?;
    Ok(socket)
}

/// How many frames came while the queue of such a socket was full, since this was last asked.
pub(crate) fn overlooked(socket: &OwnedFd) -> io::Result<u64> {
    let mut counted = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut len = size_of::<libc::tpacket_stats>() as socklen_t;
    let to = (&raw mut counted).cast();
    let (level, name) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
    // SAFETY: the kernel writes a live value, of the length given at most.
    check(unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, to, &raw mut len) })?;
    Ok(u64::from(counted.tp_drops))
}

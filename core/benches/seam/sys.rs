//! What the seam asks of Linux, and, but for the lock, all of its unsafe code: packet sockets and their receive ring,
//! shared memory, a private epoll, namespaces, processors.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use libc::{c_int, c_void};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

fn check(result: c_int, what: &str) -> io::Result<c_int> {
    if result >= 0 {
        return Ok(result);
    }
    let found = io::Error::last_os_error();
    Err(io::Error::new(found.kind(), format!("{what}: {found}")))
}

/// Binds the calling thread, and those it will start, to one processor.
pub fn pin(cpu: usize) -> io::Result<()> {
    // SAFETY: cpu_set_t is a plain bit set for which zero is a value; the call only reads it.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set)
    };
    check(result, "sched_setaffinity").map(drop)
}

pub fn is_root() -> bool {
    // SAFETY: the call touches no memory and can't fail.
    unsafe { libc::geteuid() == 0 }
}

/// Makes the calling process, which must have one thread, root in a user namespace of its own,
/// where it may make network namespaces.
pub fn enter_new_user() -> io::Result<()> {
    // SAFETY: none of these calls touches memory.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    // SAFETY: as above.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER) }, "unshare(NEWUSER)")?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

/// Moves the calling process, which must have one thread, into a network namespace of its own.
pub fn enter_new_network() -> io::Result<()> {
    // SAFETY: the call touches no memory.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) }, "unshare(NEWNET)").map(drop)
}

/// A descriptor that this process inherited and keeps open.
pub fn borrow(fd: RawFd) -> BorrowedFd<'static> {
    // SAFETY: the parent passed its number, and nothing here closes it.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

fn set_option<T>(fd: RawFd, level: c_int, name: c_int, value: &T, what: &str) -> io::Result<()> {
    // SAFETY: the kernel reads size_of::<T>() bytes of a live value.
    let result = unsafe {
        libc::setsockopt(fd, level, name, ptr::from_ref(value).cast(), size_of::<T>() as u32)
    };
    check(result, what).map(drop)
}

/// A raw socket on one interface.
pub struct PacketSocket {
    fd: OwnedFd,
}

impl PacketSocket {
    /// Sends on `interface` and receives the frames of one protocol. With `virtio`, ten bytes in
    /// front of each frame speak of segmentation and checksums.
    pub fn open(interface: &str, protocol: u16, virtio: bool) -> io::Result<Self> {
        // SAFETY: the descriptor is new and nobody else's.
        let fd = unsafe {
            let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
            OwnedFd::from_raw_fd(check(libc::socket(libc::AF_PACKET, kind, 0), "AF_PACKET")?)
        };
        let (one, big): (c_int, c_int) = (1, 64 << 20);
        if virtio {
            let name = libc::PACKET_VNET_HDR;
            set_option(fd.as_raw_fd(), libc::SOL_PACKET, name, &one, "PACKET_VNET_HDR")?;
        }
        for name in [libc::SO_RCVBUFFORCE, libc::SO_SNDBUFFORCE] {
            // Refused in a user namespace; the ordinary limit then has to do.
            let _ = set_option(fd.as_raw_fd(), libc::SOL_SOCKET, name, &big, "SO_*BUFFORCE");
        }
        let socket = Self { fd };
        socket.bind(interface, protocol)?;
        Ok(socket)
    }

    fn bind(&self, interface: &str, protocol: u16) -> io::Result<()> {
        let name = CString::new(interface)?;
        // SAFETY: the name is NUL-terminated; sockaddr_ll is plain and zero is a value for it; the
        // kernel reads the size it is told.
        let result = unsafe {
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = protocol.to_be();
            address.sll_ifindex = libc::if_nametoindex(name.as_ptr()) as c_int;
            let len = size_of_val(&address) as u32;
            libc::bind(self.fd.as_raw_fd(), ptr::from_ref(&address).cast(), len)
        };
        check(result, "bind to the interface").map(drop)
    }

    /// Sends a frame in the plainest way, for the floor.
    pub fn send_plainly(&self, frame: &[u8]) -> io::Result<()> {
        // SAFETY: the kernel reads the bytes of a live slice.
        let sent =
            unsafe { libc::send(self.fd.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        check(sent as c_int, "send").map(drop)
    }

    /// Sends a frame, and says whether the interface took it.
    #[inline]
    pub fn send(&self, frame: &[u8]) -> bool {
        let (fd, nowhere) = (self.fd.as_raw_fd(), ptr::null::<c_void>());
        // SAFETY: the kernel reads the bytes of a live slice.
        //
        // The library's `send` is a point of cancellation, and in a process of several threads
        // pays 60 ns for being one.
        let sent = unsafe {
            libc::syscall(libc::SYS_sendto, fd, frame.as_ptr(), frame.len(), 0, nowhere, 0)
        };
        sent >= 0
    }

    /// The next frame, copied to `buffer`, or `None` when there is none.
    #[inline]
    pub fn receive(&self, buffer: &mut [u8]) -> Option<usize> {
        let (fd, nowhere) = (self.fd.as_raw_fd(), ptr::null_mut::<c_void>());
        let (at, len) = (buffer.as_mut_ptr(), buffer.len());
        // SAFETY: the kernel writes at most the length of a live, exclusive slice.
        let received = unsafe {
            libc::syscall(libc::SYS_recvfrom, fd, at, len, libc::MSG_DONTWAIT, nowhere, nowhere)
        };
        usize::try_from(received).ok()
    }
}

impl AsRawFd for PacketSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

const PAGE: usize = 4096;

/// Memory mapped from a descriptor, unmapped when dropped.
struct Mapping {
    at: NonNull<u8>,
    len: usize,
}

impl Mapping {
    fn new(fd: RawFd, len: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: the kernel chooses the place, so nothing that lives is mapped over.
        let at = unsafe { libc::mmap(ptr::null_mut(), len, protection, flags, fd, 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { at, len })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and borrows of it have ended.
        unsafe { libc::munmap(self.at.as_ptr().cast::<c_void>(), self.len) };
    }
}

// SAFETY: a mapping is plain memory; what is shared of it is reached through atomics, or, for the
// receive ring, through `&mut`.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// Words of memory that several processes map.
pub struct SharedWords {
    mapping: Mapping,
}

impl SharedWords {
    /// An anonymous file of `words` words, sealed against shrinking, which children inherit.
    pub fn create(words: usize) -> io::Result<OwnedFd> {
        // SAFETY: the name is NUL-terminated; the descriptor is new and nobody else's.
        unsafe {
            let flags = libc::MFD_ALLOW_SEALING;
            let fd = check(libc::memfd_create(c"doorbell-seam".as_ptr(), flags), "memfd_create")?;
            let fd = OwnedFd::from_raw_fd(fd);
            check(libc::ftruncate(fd.as_raw_fd(), (words * 8) as i64), "ftruncate")?;
            let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
            check(libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals), "F_ADD_SEALS")?;
            Ok(fd)
        }
    }

    pub fn map(fd: RawFd, words: usize) -> io::Result<Self> {
        Ok(Self { mapping: Mapping::new(fd, words * 8)? })
    }

    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, that long, sealed against shrinking, and lives as
        // long as self; every process that maps it reaches it through atomics of this size.
        unsafe { std::slice::from_raw_parts(self.mapping.at.as_ptr().cast(), self.mapping.len / 8) }
    }
}

/// The ring into which the kernel puts a packet socket's frames.
pub struct ReceiveRing {
    mapping: Mapping,
    slot: usize,
    slots: usize,
    at: usize,
    /// Slots behind `at` that were read and not yet given back.
    owed: usize,
}

impl ReceiveRing {
    /// A ring of `slots` slots of `slot` bytes, a multiple of 16, each for one frame and 66 bytes
    /// about it.
    pub fn new(socket: &PacketSocket, slot: usize, slots: usize) -> io::Result<Self> {
        assert!(slot.is_multiple_of(16), "the kernel aligns slots to 16 bytes");
        let (fd, level) = (socket.as_raw_fd(), libc::SOL_PACKET);
        let version = libc::tpacket_versions::TPACKET_V2;
        set_option(fd, level, libc::PACKET_VERSION, &version, "PACKET_VERSION")?;
        let len = (slot * slots).next_multiple_of(PAGE);
        let request = libc::tpacket_req {
            tp_block_size: len as u32,
            tp_block_nr: 1,
            tp_frame_size: slot as u32,
            tp_frame_nr: (len / slot) as u32,
        };
        set_option(fd, level, libc::PACKET_RX_RING, &request, "PACKET_RX_RING")?;
        Ok(Self { mapping: Mapping::new(fd, len)?, slot, slots: len / slot, at: 0, owed: 0 })
    }

    fn slot(&self, index: usize) -> *mut u8 {
        debug_assert!(index < self.slots);
        // SAFETY: every index is one of the ring's, and the ring lies within the mapping.
        unsafe { self.mapping.at.as_ptr().add(index * self.slot) }
    }

    fn status(&self, index: usize) -> &AtomicU32 {
        // SAFETY: tp_status is the first word of the slot's header, aligned, and both the kernel
        // and this process reach it atomically.
        unsafe { &*self.slot(index).cast::<AtomicU32>() }
    }

    /// Passes the next frame to `take`; `None` when there is none.
    ///
    /// A slot goes back to the kernel when there is nothing else to do, or a number of them is
    /// owed: the store waits for the line to come from the sender's processor, and every locked
    /// instruction after it waits for the store.
    #[inline]
    pub fn next<R>(&mut self, take: impl FnOnce(&[u8]) -> R) -> Option<R> {
        if self.status(self.at).load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            self.give_back();
            return None;
        }
        // SAFETY: the status says that the slot is this process's until it is given back, the
        // kernel has written its header, and the frame is cut to what the slot can hold.
        let frame = unsafe {
            let header = &*self.slot(self.at).cast::<libc::tpacket2_hdr>();
            let start = usize::from(header.tp_mac).min(self.slot);
            let len = (header.tp_snaplen as usize).min(self.slot - start);
            std::slice::from_raw_parts(self.slot(self.at).add(start), len)
        };
        let result = take(frame);
        // A division would cost as much as the look at the frame.
        self.at = if self.at + 1 == self.slots { 0 } else { self.at + 1 };
        self.owed += 1;
        if self.owed > self.slots / 4 {
            self.give_back();
        }
        Some(result)
    }

    /// Gives back what is owed.
    #[inline]
    pub fn give_back(&mut self) {
        while self.owed > 0 {
            let index = self.at.checked_sub(self.owed).unwrap_or(self.at + self.slots - self.owed);
            self.status(index).store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.owed -= 1;
        }
    }
}

/// An epoll of our own in front of Tokio's: a descriptor is in it only while somebody sleeps, and
/// the reactor watches nothing but this epoll. A descriptor that stays in an epoll, even disarmed,
/// costs the sender of each frame a locked look at it.
pub struct Sentry {
    epoll: OwnedFd,
    watched: RawFd,
}

impl Sentry {
    pub fn new(watched: RawFd) -> io::Result<Self> {
        // SAFETY: the descriptor is new and nobody else's.
        let epoll = unsafe {
            OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC), "epoll_create1")?)
        };
        Ok(Self { epoll, watched })
    }

    fn control(&self, operation: c_int) -> c_int {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        // SAFETY: the kernel reads a live event.
        unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, self.watched, &mut event) }
    }

    /// Reports readiness from here on; at once, if the descriptor is ready already.
    pub fn arm(&self) -> io::Result<()> {
        match check(self.control(libc::EPOLL_CTL_ADD), "epoll_ctl(ADD)") {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            result => result.map(drop),
        }
    }

    /// Reports nothing any more, and takes back what was reported.
    pub fn disarm(&self) {
        self.control(libc::EPOLL_CTL_DEL);
    }

    /// Has Tokio's reactor watch this epoll.
    pub fn reactor(&self) -> io::Result<AsyncFd<OwnedFd>> {
        let epoll = self.epoll.try_clone()?;
        // SAFETY: an owned descriptor is open, and stays the same one, until it is dropped.
        unsafe { AsyncFd::register_with_interest(epoll, Interest::READABLE) }
            .map_err(|error| io::Error::other(format!("registering with the reactor: {error}")))
    }
}

/// A counter that wakes whoever sleeps on it, in this process or another.
pub fn event_fd() -> io::Result<OwnedFd> {
    // SAFETY: the descriptor is new and nobody else's. Children are to inherit it.
    unsafe {
        let fd = check(libc::eventfd(0, libc::EFD_NONBLOCK), "eventfd")?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

pub fn signal_event(fd: RawFd) {
    let one = 1u64;
    // SAFETY: the kernel reads eight bytes of a live value. A full counter still wakes.
    unsafe { libc::write(fd, ptr::from_ref(&one).cast(), 8) };
}

pub fn clear_event(fd: RawFd) {
    let mut count = 0u64;
    // SAFETY: the kernel writes eight bytes to a live value.
    unsafe { libc::read(fd, ptr::from_mut(&mut count).cast(), 8) };
}

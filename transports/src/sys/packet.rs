//! Packet sockets, and the ring into which the kernel puts their frames.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use doorbell_core::wire::EtherType;
use libc::{c_int, c_void};

use super::filter::{Test, attach, program};
use super::mapping::Mapping;
use super::{check, count, set_option};

/// A raw socket on one interface.
pub(crate) struct PacketSocket {
    fd: OwnedFd,
}

impl PacketSocket {
    /// A socket that sends, and receives nothing before it is [bound](Self::bind). With `virtio`,
    /// ten bytes in front of each frame speak of segmentation and checksums.
    pub fn open(virtio: bool) -> io::Result<Self> {
        // SAFETY: the descriptor is new and nobody else's.
        let fd = unsafe {
            let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
            OwnedFd::from_raw_fd(check(libc::socket(libc::AF_PACKET, kind, 0), "AF_PACKET")?)
        };
        let (one, big): (c_int, c_int) = (1, 64 << 20);
        if virtio {
            let name = libc::PACKET_VNET_HDR;
            set_option(fd.as_raw_fd(), libc::SOL_PACKET, name, &one, "PACKET_VNET_HDR")?;
        }
        // Refused in a user namespace; the ordinary limit then has to do.
        let forced = libc::SO_SNDBUFFORCE;
        let _ = set_option(fd.as_raw_fd(), libc::SOL_SOCKET, forced, &big, "SO_SNDBUFFORCE");
        Ok(Self { fd })
    }

    /// Has the socket see only frames that pass all of these tests. Before it is bound, or others
    /// would already be waiting.
    pub fn filter(&self, tests: &[Test]) -> io::Result<()> {
        attach(self.fd.as_fd(), &mut program(tests))
    }

    /// Sends on an interface from here on, and receives the frames of a protocol there; of
    /// protocol 0, none.
    pub fn bind(&self, index: u32, protocol: EtherType) -> io::Result<()> {
        // SAFETY: sockaddr_ll is plain and zero is a value for it; the kernel reads the size that it
        // is told.
        let result = unsafe {
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = protocol.0.to_be();
            address.sll_ifindex = index as c_int;
            let len = size_of_val(&address) as u32;
            libc::bind(self.fd.as_raw_fd(), ptr::from_ref(&address).cast(), len)
        };
        check(result, "bind to the interface").map(drop)
    }

    /// Sends a frame.
    ///
    /// The library's `send` is a point of cancellation, and in a process of several threads pays
    /// 60 ns for being one: hence the system call itself.
    #[inline]
    pub fn send(&self, frame: &[u8]) -> io::Result<usize> {
        let (fd, nowhere) = (self.fd.as_raw_fd(), ptr::null::<c_void>());
        // SAFETY: the kernel reads the bytes of a live slice.
        count(unsafe {
            libc::syscall(libc::SYS_sendto, fd, frame.as_ptr(), frame.len(), 0, nowhere, 0)
        })
    }

    /// How many frames came while there was no room for them, since this was last asked.
    pub fn overrun(&self) -> u64 {
        // SAFETY: tpacket_stats is plain and zero is a value for it; the kernel writes at most the
        // length that it is told.
        unsafe {
            let mut stats: libc::tpacket_stats = std::mem::zeroed();
            let mut len = size_of_val(&stats) as libc::socklen_t;
            let (fd, to) = (self.fd.as_raw_fd(), ptr::from_mut(&mut stats).cast());
            let name = libc::PACKET_STATISTICS;
            match libc::getsockopt(fd, libc::SOL_PACKET, name, to, &mut len) {
                0 => u64::from(stats.tp_drops),
                _ => 0,
            }
        }
    }

    /// What is wrong with the interface, if the kernel has told this socket: it was taken down, or
    /// is no more.
    pub fn error(&self) -> Option<io::Error> {
        let (mut error, mut len): (c_int, _) = (0, size_of::<c_int>() as libc::socklen_t);
        let to = ptr::from_mut(&mut error).cast();
        // SAFETY: the kernel writes at most the length that it is told.
        let result = unsafe {
            libc::getsockopt(self.fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ERROR, to, &mut len)
        };
        (result == 0 && error != 0).then(|| io::Error::from_raw_os_error(error))
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

const PAGE: usize = 4096;

/// The ring into which the kernel puts a packet socket's frames.
pub(crate) struct ReceiveRing {
    mapping: Mapping,
    slot: usize,
    slots: usize,
    at: usize,
    /// Slots behind `at` that were read and not yet given back.
    owed: usize,
}

impl ReceiveRing {
    /// A ring of `slots` slots of `slot` bytes, a multiple of 16, each for one frame and 66 bytes
    /// about it. Before the socket is bound.
    pub fn new(socket: &PacketSocket, slot: usize, slots: usize) -> io::Result<Self> {
        assert!(slot.is_multiple_of(16), "the kernel aligns slots to 16 bytes");
        let (fd, level) = (socket.fd.as_raw_fd(), libc::SOL_PACKET);
        let version = libc::tpacket_versions::TPACKET_V2;
        set_option(fd, level, libc::PACKET_VERSION, &version, "PACKET_VERSION")?;
        let len = Self::memory(slot, slots);
        let request = libc::tpacket_req {
            tp_block_size: len as u32,
            tp_block_nr: 1,
            tp_frame_size: slot as u32,
            tp_frame_nr: (len / slot) as u32,
        };
        set_option(fd, level, libc::PACKET_RX_RING, &request, "PACKET_RX_RING")?;
        let mapping = Mapping::new(socket.as_fd(), len)?;
        Ok(Self { mapping, slot, slots: len / slot, at: 0, owed: 0 })
    }

    /// The memory that such a ring takes.
    pub const fn memory(slot: usize, slots: usize) -> usize {
        (slot * slots).next_multiple_of(PAGE)
    }

    fn slot(&self, index: usize) -> *mut u8 {
        debug_assert!(index < self.slots);
        // SAFETY: the index is below the number of slots that the mapping was made for.
        unsafe { self.mapping.at().as_ptr().add(index * self.slot) }
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
    fn give_back(&mut self) {
        while self.owed > 0 {
            let index = self.at.checked_sub(self.owed).unwrap_or(self.at + self.slots - self.owed);
            self.status(index).store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.owed -= 1;
        }
    }
}

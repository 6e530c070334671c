//! Packet sockets, and the ring into which the kernel puts their frames.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use doorbell_core::wire::{EtherType, Mac};
use libc::{c_int, c_void};

use super::filter::{Test, attach, detach, program};
use super::mapping::Mapping;
use super::{check, count, number, owned, set_option, virtio};

/// The bytes that wait in a socket's own queue at most, half of what the kernel makes of it: some
/// two hundred runs.
const QUEUE: c_int = 8 << 20;
/// How many bytes of frames may be on their way out of a socket: what an interface takes in a
/// millisecond.
const SENDING: c_int = 4 << 20;

/// A raw socket on one interface.
#[derive(Clone, Debug)]
pub struct PacketSocket {
    fd: Arc<OwnedFd>,
    virtio: bool,
}

impl PacketSocket {
    /// A socket that sends, and receives nothing before it is [bound](Self::bind). With `virtio`,
    /// ten bytes in front of each frame speak of segmentation and checksums.
    pub fn open(virtio: bool) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: the call touches no memory.
        let result = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        // SAFETY: the descriptor is new and nobody else's.
        let fd = unsafe { owned(result, "AF_PACKET") }?;
        let one: c_int = 1;
        if virtio {
            let name = libc::PACKET_VNET_HDR;
            set_option(fd.as_raw_fd(), libc::SOL_PACKET, name, &one, "PACKET_VNET_HDR")?;
        }
        enlarge(fd.as_raw_fd(), libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, &SENDING);
        Ok(Self { fd: fd.into(), virtio })
    }

    /// Has the socket see only frames that pass all of the tests of one of these lists. If it is
    /// bound already, others may be waiting.
    pub fn filter(&self, any: &[Vec<Test>]) -> io::Result<()> {
        attach(self.fd.as_fd(), &mut program(any))
    }

    /// Has the socket see all frames again.
    pub fn filter_no_more(&self) -> io::Result<()> {
        detach(self.fd.as_fd())
    }

    /// Sends on an interface from here on, and receives the frames of a protocol there; of
    /// protocol 0, none.
    pub fn bind(&self, index: u32, protocol: EtherType) -> io::Result<()> {
        // SAFETY: sockaddr_ll is plain and zero is a value for it.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol.0.to_be();
        address.sll_ifindex = index as c_int;
        let len = size_of_val(&address) as u32;
        // SAFETY: the kernel reads the size that it is told of a live address.
        let result =
            unsafe { libc::bind(self.fd.as_raw_fd(), ptr::from_ref(&address).cast(), len) };
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

    /// Copies the next frame that waits in the socket's own queue to `buffer`.
    #[inline]
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let (fd, nowhere) = (self.fd.as_raw_fd(), ptr::null_mut::<c_void>());
        // SAFETY: the kernel writes at most the length of a live, exclusive slice.
        count(unsafe {
            let (to, len) = (buffer.as_mut_ptr(), buffer.len());
            libc::syscall(libc::SYS_recvfrom, fd, to, len, libc::MSG_DONTWAIT, nowhere, nowhere)
        })
    }

    /// Has frames that are longer than a ring's slot wait in the socket's own queue. Whether the
    /// system lets that be as long as it must be: not in a user namespace.
    pub fn queue_long(&self) -> io::Result<bool> {
        let (fd, one): (_, c_int) = (self.fd.as_raw_fd(), 1);
        let forced = libc::SO_RCVBUFFORCE;
        if set_option(fd, libc::SOL_SOCKET, forced, &QUEUE, "SO_RCVBUFFORCE").is_err() {
            return Ok(false);
        }
        set_option(fd, libc::SOL_PACKET, PACKET_COPY_THRESH, &one, "PACKET_COPY_THRESH")?;
        Ok(true)
    }

    /// The number by which the system knows it.
    pub fn inode(&self) -> io::Result<u64> {
        Ok(File::from(self.fd.try_clone()?).metadata()?.ino())
    }

    /// Has the interface pass on what is sent to an address, of one station or of a group, for as
    /// long as the socket is open.
    pub fn join(&self, index: u32, mac: Mac) -> io::Result<()> {
        // SAFETY: packet_mreq is plain and zero is a value for it.
        let mut request: libc::packet_mreq = unsafe { std::mem::zeroed() };
        request.mr_ifindex = index as c_int;
        let group = mac.0[0] & 1 != 0;
        let kind = if group { libc::PACKET_MR_MULTICAST } else { PACKET_MR_UNICAST };
        request.mr_type = kind as u16;
        request.mr_alen = 6;
        request.mr_address[..6].copy_from_slice(&mac.0);
        let (fd, name) = (self.fd.as_raw_fd(), libc::PACKET_ADD_MEMBERSHIP);
        set_option(fd, libc::SOL_PACKET, name, &request, "PACKET_ADD_MEMBERSHIP")
    }

    /// How many bytes of frames may be on their way out, as the kernel counts.
    pub fn sending(&self) -> usize {
        number(self.fd.as_fd(), libc::SO_SNDBUF).unwrap_or(0) as usize
    }

    /// How many bytes of frames the socket's own queue takes.
    pub fn queue(&self) -> usize {
        number(self.fd.as_fd(), libc::SO_RCVBUF).unwrap_or(0) as usize
    }

    /// How many frames came while there was no room for them, since this was last asked.
    pub fn overrun(&self) -> u64 {
        // SAFETY: tpacket_stats is plain and zero is a value for it.
        let mut stats: libc::tpacket_stats = unsafe { std::mem::zeroed() };
        let mut len = size_of_val(&stats) as libc::socklen_t;
        let (fd, to) = (self.fd.as_raw_fd(), ptr::from_mut(&mut stats).cast());
        let (level, name) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
        // SAFETY: the kernel writes at most the length that it is told.
        let result = unsafe { libc::getsockopt(fd, level, name, to, &mut len) };
        if result == 0 { u64::from(stats.tp_drops) } else { 0 }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

const PACKET_MR_UNICAST: c_int = 3;
const PACKET_COPY_THRESH: c_int = 7;

/// Has a socket's buffer take so many bytes; in a user namespace, where that is refused, as many as
/// there are for everybody (`net.core.rmem_max`, `wmem_max`).
fn enlarge(fd: RawFd, forced: c_int, ordinary: c_int, bytes: &c_int) {
    let level = libc::SOL_SOCKET;
    if set_option(fd, level, forced, bytes, "SO_*BUFFORCE").is_err() {
        // What a socket has at first does, too, if slowly.
        let _ = set_option(fd, level, ordinary, bytes, "SO_*BUF");
    }
}

const PAGE: usize = 4096;

/// Where in a slot the address stands that a frame is from, and whom it is for.
const FROM: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);

/// A frame in the ring.
pub(crate) struct Received<'f> {
    /// As much of it as its slot has.
    pub frame: &'f [u8],
    pub kept: Kept,
    /// Whom it is for, by the kernel's judgement.
    pub kind: u8,
}

/// What a slot has of its frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kept {
    /// All of it.
    Whole,
    /// The beginning: the frame is longer than a slot, and the next in the socket's queue.
    Queued,
    /// The beginning: the frame is longer than a slot, and the queue was full.
    Cut,
}

/// The ring into which the kernel puts a packet socket's frames.
///
/// A frame that is longer than a slot has its place in the ring, too, and where the socket [has it
/// so](PacketSocket::queue_long) waits in the queue: short frames cost no system call, long ones
/// are copied on the processor that wants them, and all of them stay in their order.
pub(crate) struct ReceiveRing {
    mapping: Mapping,
    slot: usize,
    slots: usize,
    /// What stands in front of each frame: a virtio header, or nothing.
    ahead: usize,
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
        let ahead = if socket.virtio { virtio::LEN } else { 0 };
        Ok(Self { mapping, slot, slots: len / slot, ahead, at: 0, owed: 0 })
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

    /// Has the lines come that short frames lie in, which the sender's processor has: all at once,
    /// for what is done with the first may take so long that the next would not be asked for
    /// meanwhile.
    #[inline]
    fn fetch_begin(&self) {
        #[cfg(target_arch = "x86_64")]
        for line in 1..=2 {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let line = self.slot(self.at).wrapping_add(64 * line);
            // SAFETY: a hint, which reads nothing.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
        }
    }

    /// The length of the next frame, and what of it is in the ring.
    pub fn head(&self) -> Option<(usize, &[u8])> {
        self.look().map(|(received, len)| (len, received.frame))
    }

    /// The next frame, and its length: there may be less of it.
    #[inline]
    fn look(&self) -> Option<(Received<'_>, usize)> {
        let status = self.status(self.at).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        self.fetch_begin();
        let slot = self.slot(self.at);
        // SAFETY: the status says that the slot is this process's until it is given back, and the
        // kernel has written its header.
        let header = unsafe { &*slot.cast::<libc::tpacket2_hdr>() };
        // SAFETY: a slot is longer than its header.
        let from = unsafe { slot.add(FROM) };
        // SAFETY: the kernel has written the address behind the header, too.
        let from = unsafe { &*from.cast::<libc::sockaddr_ll>() };
        let start = usize::from(header.tp_mac).saturating_sub(self.ahead).min(self.slot);
        let kept = (self.ahead + header.tp_snaplen as usize).min(self.slot - start);
        // SAFETY: the frame begins within the slot.
        let frame = unsafe { slot.add(start) };
        // SAFETY: the frame is cut to what the slot can hold.
        let frame = unsafe { std::slice::from_raw_parts(frame, kept) };
        let len = self.ahead + header.tp_len as usize;
        let kept = match status & libc::TP_STATUS_COPY != 0 {
            true => Kept::Queued,
            false if kept == len => Kept::Whole,
            false => Kept::Cut,
        };
        Some((Received { frame, kept, kind: from.sll_pkttype }, len))
    }

    /// Passes the next frame, with what stands in front of it, to `take`; `None` when there is
    /// none.
    ///
    /// A slot goes back to the kernel when there is nothing else to do, or a number of them is
    /// owed: the store waits for the line to come from the sender's processor, and every locked
    /// instruction after it waits for the store.
    #[inline]
    pub fn next<R>(&mut self, take: impl FnOnce(Received<'_>) -> R) -> Option<R> {
        let Some((received, _)) = self.look() else {
            self.give_back();
            return None;
        };
        let result = take(received);
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

//! Packet sockets, and the ring into which the kernel puts their frames.

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use doorbell_core::wire::{EtherType, Mac};
use libc::{SOL_PACKET, c_int, tpacket2_hdr};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with, sockopt,
};

use super::error::Context;
use super::filter::{self, Test};
use super::mapping::Mapping;
use super::{option, virtio};
use crate::stamp::Stamp;

/// The bytes that wait in a socket's own queue at most, half of what the kernel makes of it: some
/// two hundred runs.
const QUEUE: usize = 8 << 20;
/// How many bytes of frames may be on their way out of a socket: what an interface takes in a
/// millisecond.
const SENDING: usize = 4 << 20;

/// A raw socket on one interface.
#[derive(Clone, Debug)]
pub struct PacketSocket {
    fd: Arc<OwnedFd>,
    virtio: bool,
}

impl PacketSocket {
    /// Opens a socket that sends, and receives nothing before it is [bound](Self::bind). With
    /// `virtio`, ten bytes in front of each frame speak of segmentation and checksums.
    pub fn open(virtio: bool) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)
            .context("AF_PACKET")?;
        if virtio {
            option::set(&fd, SOL_PACKET, libc::PACKET_VNET_HDR, 1, "PACKET_VNET_HDR")?;
        }
        // In a user namespace, only a buffer up to the limit for everybody is allowed
        // (`net.core.wmem_max`). A socket also works with the buffer that it has at first.
        if sockopt::set_socket_send_buffer_size_force(&fd, SENDING).is_err() {
            let _ = sockopt::set_socket_send_buffer_size(&fd, SENDING);
        }
        Ok(Self { fd: fd.into(), virtio })
    }

    /// Has the kernel pass to the socket only frames that pass all of the tests of one of these
    /// lists. If the socket is bound already, other frames may be waiting in it.
    pub fn filter(&self, any: &[Vec<Test>]) -> io::Result<()> {
        filter::attach(self.fd.as_fd(), any)
    }

    /// Has the kernel pass all frames to the socket again.
    pub fn remove_filter(&self) -> io::Result<()> {
        filter::detach(self.fd.as_fd())
    }

    /// Sends on an interface from here on, and receives the frames of a protocol there; with
    /// protocol 0, receives no frames.
    pub fn bind(&self, index: u32, protocol: EtherType) -> io::Result<()> {
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: protocol.0.to_be(),
            sll_ifindex: index as c_int,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        let (at, len) = (ptr::from_ref(&address).cast(), size_of_val(&address) as u32);
        // `libc`: no crate has addresses of this family.
        // SAFETY: the kernel reads `len` bytes of a live address.
        let result = unsafe { libc::bind(self.fd.as_raw_fd(), at, len) };
        let bound = if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
        bound.context("bind to the interface")
    }

    /// Sends a frame, and returns how many bytes were sent.
    #[inline]
    pub fn send(&self, frame: &[u8]) -> io::Result<usize> {
        Ok(send(&self.fd, frame, SendFlags::empty())?)
    }

    /// Copies the next frame that waits in the socket's own queue to `buffer`, and returns the
    /// frame's length.
    #[inline]
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(recv(&self.fd, buffer, RecvFlags::DONTWAIT)?.0)
    }

    /// Has frames that are longer than a ring's slot wait in the socket's own queue. Returns false
    /// if the system does not let the queue be as long as it must be, as in a user namespace.
    pub fn queue_long(&self) -> io::Result<bool> {
        if sockopt::set_socket_recv_buffer_size_force(&self.fd, QUEUE).is_err() {
            return Ok(false);
        }
        let name = PACKET_COPY_THRESH;
        option::set(&self.fd, SOL_PACKET, name, 1, "PACKET_COPY_THRESH")?;
        Ok(true)
    }

    /// Returns the number by which the system lists the socket.
    pub fn inode(&self) -> io::Result<u64> {
        Ok(File::from(self.fd.try_clone()?).metadata()?.ino())
    }

    /// Has the interface pass on what is sent to an address, of one station or of a group, for as
    /// long as the socket is open.
    pub fn join(&self, index: u32, mac: Mac) -> io::Result<()> {
        const ADDRESS_LEN: u16 = 6;
        let group = mac.0[0] & 1 != 0;
        let kind = if group { libc::PACKET_MR_MULTICAST } else { PACKET_MR_UNICAST };
        // A `packet_mreq`: the interface, the kind, the address in the first of eight bytes.
        let mut request = [0; size_of::<libc::packet_mreq>()];
        request[..4].copy_from_slice(&index.to_ne_bytes());
        request[4..6].copy_from_slice(&(kind as u16).to_ne_bytes());
        request[6..8].copy_from_slice(&ADDRESS_LEN.to_ne_bytes());
        request[8..14].copy_from_slice(&mac.0);
        let (name, what) = (libc::PACKET_ADD_MEMBERSHIP, "PACKET_ADD_MEMBERSHIP");
        option::set_bytes(&self.fd, SOL_PACKET, name, &request, what)
    }

    /// Returns how many bytes of frames may be on their way out, as the kernel counts.
    pub fn sending(&self) -> usize {
        sockopt::socket_send_buffer_size(&self.fd).unwrap_or(0)
    }

    /// Returns how many bytes of frames the socket's own queue takes.
    pub fn queue(&self) -> usize {
        sockopt::socket_recv_buffer_size(&self.fd).unwrap_or(0)
    }

    /// Returns how many frames came while there was no room for them, since the last call.
    pub fn overrun(&self) -> u64 {
        // A `tpacket_stats`: the packets that came, and those of them that were dropped.
        let counts = option::words(&self.fd, SOL_PACKET, libc::PACKET_STATISTICS);
        counts.map_or(0, |[_, dropped]| dropped.into())
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

const PACKET_MR_UNICAST: c_int = 3;
const PACKET_COPY_THRESH: c_int = 7;

const PAGE: usize = 4096;

/// Where in a slot the address stands that a frame is from, and whom the frame is for.
const FROM: usize = size_of::<tpacket2_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);

/// How much of a slot the kernel writes about a frame: a header, and the address.
const ABOUT: usize = FROM + size_of::<libc::sockaddr_ll>();

/// A frame in the ring.
pub(crate) struct RingFrame<'f> {
    /// The bytes of the frame that its slot has: all, or the first ones.
    pub frame: &'f [u8],
    pub kept: Kept,
    /// Whom the frame is for, by the kernel's judgement.
    pub kind: u8,
    /// When the frame came.
    pub stamp: Stamp,
}

/// How much of its frame a slot has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kept {
    /// The slot has the whole frame.
    Whole,
    /// The slot has the beginning of a longer frame, which is the next in the socket's queue.
    Queued,
    /// The slot has the beginning of a longer frame, for which the queue had no room.
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
    /// The bytes in front of each frame: those of a virtio header, or none.
    ahead: usize,
    at: usize,
    /// Slots behind `at` that were read and not yet given back.
    owed: usize,
}

impl ReceiveRing {
    /// Makes a ring of `slots` slots of `slot` bytes, a multiple of 16, each for one frame and 66
    /// bytes about it. The socket must not be bound yet.
    pub fn new(socket: &PacketSocket, slot: usize, slots: usize) -> io::Result<Self> {
        assert!(slot.is_multiple_of(16), "the kernel aligns slots to 16 bytes");
        let version = libc::tpacket_versions::TPACKET_V2 as c_int;
        option::set(socket, SOL_PACKET, libc::PACKET_VERSION, version, "PACKET_VERSION")?;
        let len = Self::memory(slot, slots);
        // A `tpacket_req`: the size and number of blocks, the size and number of slots.
        let request = [len as u32, 1, slot as u32, (len / slot) as u32].map(u32::to_ne_bytes);
        let (name, what) = (libc::PACKET_RX_RING, "PACKET_RX_RING");
        option::set_bytes(socket, SOL_PACKET, name, request.as_flattened(), what)?;
        let mapping = Mapping::new(socket.as_fd(), len)?;
        let ahead = if socket.virtio { virtio::LEN } else { 0 };
        Ok(Self { mapping, slot, slots: len / slot, ahead, at: 0, owed: 0 })
    }

    /// Returns how many bytes of memory such a ring takes.
    pub const fn memory(slot: usize, slots: usize) -> usize {
        (slot * slots).next_multiple_of(PAGE)
    }

    fn slot(&self, index: usize) -> *mut u8 {
        debug_assert!(index < self.slots);
        self.mapping.at().as_ptr().wrapping_add(index * self.slot)
    }

    fn status(&self, index: usize) -> &AtomicU32 {
        // SAFETY: tp_status is the first word of the slot's header, aligned, and both the kernel
        // and this process reach it atomically.
        unsafe { &*self.slot(index).cast::<AtomicU32>() }
    }

    /// Prefetches the cache lines that short frames lie in, which the sender's processor has. All
    /// of them are fetched at once, since the work on the first line may take so long that the next
    /// would not be asked for meanwhile.
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

    /// Returns the length of the next frame, and the bytes of the frame that are in the ring.
    pub fn head(&self) -> Option<(usize, &[u8])> {
        self.look().map(|(received, len)| (len, received.frame))
    }

    /// Returns the next frame, and its length, which may be more than the ring has of the frame.
    #[inline]
    fn look(&self) -> Option<(RingFrame<'_>, usize)> {
        let status = self.status(self.at).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        self.fetch_begin();
        // SAFETY: the slot lies within the mapping. The status says that the slot is this process's
        // until it is given back, for which this value must be borrowed exclusively.
        let slot = unsafe { std::slice::from_raw_parts(self.slot(self.at), self.slot) };
        let about: &[u8; ABOUT] = slot.first_chunk()?;
        let word = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|byte| about[at + byte]));
        let half = |at: usize| u16::from_ne_bytes([0, 1].map(|byte| about[at + byte]));
        let start = usize::from(half(offset_of!(tpacket2_hdr, tp_mac)));
        let start = start.saturating_sub(self.ahead).min(self.slot);
        let kept = self.ahead + word(offset_of!(tpacket2_hdr, tp_snaplen)) as usize;
        let kept = kept.min(self.slot - start);
        let frame = &slot[start..start + kept];
        let len = self.ahead + word(offset_of!(tpacket2_hdr, tp_len)) as usize;
        let kept = match status & libc::TP_STATUS_COPY != 0 {
            true => Kept::Queued,
            false if kept == len => Kept::Whole,
            false => Kept::Cut,
        };
        let kind = about[FROM + offset_of!(libc::sockaddr_ll, sll_pkttype)];
        let seconds = word(offset_of!(tpacket2_hdr, tp_sec));
        let stamp = Stamp::new(seconds.into(), word(offset_of!(tpacket2_hdr, tp_nsec)));
        Some((RingFrame { frame, kept, kind, stamp }, len))
    }

    /// Passes the next frame, with what stands in front of it, to `take`, and returns what that
    /// returns; `None` when there is no frame.
    ///
    /// A slot goes back to the kernel when there is nothing else to do, or a number of them is
    /// owed: the store waits for the line to come from the sender's processor, and every locked
    /// instruction after it waits for the store.
    #[inline]
    pub fn next<R>(&mut self, take: impl FnOnce(RingFrame<'_>) -> R) -> Option<R> {
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

    /// Gives the slots that were read back to the kernel.
    #[inline]
    pub fn give_back(&mut self) {
        while self.owed > 0 {
            let index = self.at.checked_sub(self.owed).unwrap_or(self.at + self.slots - self.owed);
            self.status(index).store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.owed -= 1;
        }
    }
}

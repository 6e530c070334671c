//! A packet socket with its receive ring, and how such a socket is made.

use std::io;

use doorbell_core::wire::{EtherType, Mac};

use super::duplicates::Head;
use super::frame::LONGEST;
use crate::stamp::Stamp;
use crate::sys::filter::{Test, takes};
use crate::sys::packet::{Kept, PacketSocket, ReceiveRing, RingFrame};
use crate::sys::virtio;

/// The size and the number of a ring's slots. Their size is an odd number of cache lines, so that
/// they do not all begin in the same sets of the cache.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    slot: usize,
    pub slots: usize,
}

impl Shape {
    /// Slots for a packet of 4096 bytes in any headers, and what the kernel says of it.
    const PACKETS: Self = Self { slot: 69 * 64, slots: 512 };
    /// Slots for any frame, which the kernel copies to the ring at the sender's cost.
    const FRAMES: Self = Self { slot: 1027 * 64, slots: 256 };

    pub const fn memory(self) -> usize {
        ReceiveRing::memory(self.slot, self.slots)
    }
}

const _: () = assert!(Shape::FRAMES.slot >= LONGEST + 128);

/// The settings from which [`RingSocket`]s are made.
#[derive(Clone)]
pub struct Recipe {
    pub index: u32,
    pub protocol: EtherType,
    pub filter: Vec<Vec<Test>>,
    /// The tests of `filter`, where it is a single list of two, and frames of the protocol are
    /// hardly for anybody but packet sockets.
    pub own: Option<[Test; 2]>,
    /// True if runs arrive whole.
    pub runs: bool,
    /// The addresses for which the interface is to accept frames.
    pub addresses: Vec<Mac>,
}

impl Recipe {
    /// Makes a socket that receives nothing yet.
    pub fn make(&self) -> io::Result<RingSocket> {
        let socket = PacketSocket::open(self.runs)?;
        let shape = self.shape(&socket)?;
        self.make_of(socket, shape)
    }

    /// Makes another socket with a ring of a shape. A process that has given up rights since the
    /// first socket was made would need a larger ring, and gets an error.
    pub fn make_like(&self, shape: Shape) -> io::Result<RingSocket> {
        let socket = PacketSocket::open(self.runs)?;
        match self.shape(&socket)? == shape {
            true => self.make_of(socket, shape),
            false => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    fn shape(&self, socket: &PacketSocket) -> io::Result<Shape> {
        let whole = self.runs && !socket.queue_long()?;
        Ok(if whole { Shape::FRAMES } else { Shape::PACKETS })
    }

    fn make_of(&self, socket: PacketSocket, shape: Shape) -> io::Result<RingSocket> {
        let ring = ReceiveRing::new(&socket, shape.slot, shape.slots)?;
        socket.filter(&self.filter)?;
        self.addresses.iter().try_for_each(|&mac| socket.join(self.index, mac))?;
        Ok(RingSocket { socket, ring, shape, lost: 0 })
    }

    /// Has a socket receive. From here on, the kernel asks this socket first whether a frame is its
    /// own.
    pub fn begin(&self, source: &RingSocket) -> io::Result<()> {
        source.socket.bind(self.index, self.protocol)
    }
}

/// The outcome of passing on the next frame of a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextFrame {
    /// The frame was passed on, or lost for want of room.
    Taken,
    /// The frame is not the device's.
    Anothers,
}

/// A packet socket and its ring. Packets and runs come by one socket, so that all frames are in the
/// order in which they came.
pub struct RingSocket {
    pub socket: PacketSocket,
    ring: ReceiveRing,
    pub shape: Shape,
    /// How many frames had a slot, but no room in the queue.
    lost: u64,
}

impl RingSocket {
    /// Returns how many frames came while there was no room for them, since the last call.
    pub fn overrun(&mut self) -> u64 {
        self.socket.overrun() + std::mem::take(&mut self.lost)
    }

    /// Returns what tells the next frame from others, if one has come.
    pub fn head(&self) -> Option<Head<'_>> {
        self.ring.head().map(|(len, begin)| Head { len, begin })
    }

    /// Gives the slots back to the kernel whose frames were taken.
    pub fn give_back(&mut self) {
        self.ring.give_back();
    }

    /// Passes the next frame to `take`, the size of its packets if the frame is a run, and when it
    /// came. A frame that fails the tests `own` is not passed on. `long` is memory for a frame that does not fit
    /// a slot. Returns what became of the frame, or `None` if there was no frame.
    #[inline]
    pub fn next(
        &mut self,
        long: &mut Option<Box<[u8]>>,
        own: &Option<[Test; 2]>,
        take: impl FnOnce(&[u8], Option<u16>, Stamp),
    ) -> Option<NextFrame> {
        let Self { socket, ring, lost, .. } = self;
        ring.next(|RingFrame { frame, kept, kind, stamp }| {
            if own.as_ref().is_some_and(|all| !takes(all, frame, kind)) {
                return NextFrame::Anothers;
            }
            match (kept, long) {
                (Kept::Whole, None) => take(frame, None, stamp),
                (Kept::Whole, Some(_)) => {
                    let (frame, segment) = virtio::split(frame);
                    take(frame, segment, stamp);
                }
                (Kept::Queued, Some(long)) => match queued(socket, long) {
                    Some(len) => {
                        let (frame, segment) = virtio::split(&long[..len]);
                        take(frame, segment, stamp);
                    }
                    None => *lost += 1,
                },
                (Kept::Queued | Kept::Cut, _) => *lost += 1,
            }
            NextFrame::Taken
        })
    }
}

/// Copies the frame that waits in the socket's queue, and returns its length.
#[inline]
fn queued(socket: &PacketSocket, long: &mut [u8]) -> Option<usize> {
    // An error of the interface is reported once, by the first call.
    socket.receive(long).or_else(|_| socket.receive(long)).ok()
}

//! A packet socket with its ring, and how it is made.

use std::io;

use doorbell_core::wire::{EtherType, Mac};

use super::LONGEST;
use super::doubles::Head;
use crate::sys::filter::{Test, takes};
use crate::sys::packet::{Kept, PacketSocket, ReceiveRing, Received};
use crate::sys::virtio;

/// How large a ring's slots are, and how many there are. Their size is odd in lines of the cache,
/// so that they do not all begin on the same ones.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    slot: usize,
    pub slots: usize,
}

impl Shape {
    /// For a packet of 4096 bytes in any headers, and what the kernel says of it.
    const PACKETS: Self = Self { slot: 69 * 64, slots: 512 };
    /// For any frame, which the kernel then copies to the ring at its sender's cost.
    const FRAMES: Self = Self { slot: 1027 * 64, slots: 256 };

    pub const fn memory(self) -> usize {
        ReceiveRing::memory(self.slot, self.slots)
    }
}

const _: () = assert!(Shape::FRAMES.slot >= LONGEST + 128);

/// What a source is made of.
#[derive(Clone)]
pub struct Recipe {
    pub index: u32,
    pub protocol: EtherType,
    pub filter: Vec<Vec<Test>>,
    /// The same, if that is all of it, where hardly anybody but packet sockets asks for the
    /// protocol.
    pub own: Option<[Test; 2]>,
    /// Whether super-frames come as they are.
    pub runs: bool,
    /// The addresses that the interface is to take in frames for.
    pub addresses: Vec<Mac>,
}

impl Recipe {
    /// Makes one that receives nothing yet.
    pub fn make(&self) -> io::Result<Source> {
        let socket = PacketSocket::open(self.runs)?;
        let shape = self.shape(&socket)?;
        self.make_of(socket, shape)
    }

    /// Makes another of a shape. A process that has given up rights since the first was made would
    /// need more memory for it: that is an error.
    pub fn make_like(&self, shape: Shape) -> io::Result<Source> {
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

    fn make_of(&self, socket: PacketSocket, shape: Shape) -> io::Result<Source> {
        let ring = ReceiveRing::new(&socket, shape.slot, shape.slots)?;
        socket.filter(&self.filter)?;
        self.addresses.iter().try_for_each(|&mac| socket.join(self.index, mac))?;
        Ok(Source { socket, ring, shape, lost: 0 })
    }

    /// Has a source receive: from here on it is asked first whether a frame is its own.
    pub fn begin(&self, source: &Source) -> io::Result<()> {
        source.socket.bind(self.index, self.protocol)
    }
}

/// A socket and its ring. One socket for packets and for runs, so that all frames are in the order
/// in which they came.
pub struct Source {
    pub socket: PacketSocket,
    ring: ReceiveRing,
    pub shape: Shape,
    /// Frames that had a slot, and no room in the queue.
    lost: u64,
}

impl Source {
    /// How many frames came while there was no room for them, since this was last asked.
    pub fn overrun(&mut self) -> u64 {
        self.socket.overrun() + std::mem::take(&mut self.lost)
    }

    /// What is known of the next frame, if one has come.
    pub fn head(&self) -> Option<Head<'_>> {
        self.ring.head()
    }

    /// Gives all slots back whose frames were taken.
    pub fn give_back(&mut self) {
        self.ring.give_back();
    }

    /// Passes the next frame to `take`, and the size of its packets if it is a run: if it is its
    /// `own`. Whether it was, if there was one. There is room for a `long` one, where they may be.
    #[inline]
    pub fn next(
        &mut self,
        long: &mut Option<Box<[u8]>>,
        own: &Option<[Test; 2]>,
        take: impl FnOnce(&[u8], Option<u16>),
    ) -> Option<bool> {
        let Self { socket, ring, lost, .. } = self;
        ring.next(|Received { frame, kept, kind }| {
            if own.as_ref().is_some_and(|all| !takes(all, frame, kind)) {
                return false;
            }
            match (kept, long) {
                (Kept::Whole, None) => take(frame, None),
                (Kept::Whole, Some(_)) => {
                    let (frame, segment) = virtio::split(frame);
                    take(frame, segment);
                }
                (Kept::Queued, Some(long)) => match queued(socket, long) {
                    Some(len) => {
                        let (frame, segment) = virtio::split(&long[..len]);
                        take(frame, segment);
                    }
                    None => *lost += 1,
                },
                (Kept::Queued | Kept::Cut, _) => *lost += 1,
            }
            true
        })
    }
}

/// Takes the frame that waits in the socket's queue.
#[inline]
fn queued(socket: &PacketSocket, long: &mut [u8]) -> Option<usize> {
    // An error of the interface is told once, and in front of what waits.
    socket.receive(long).or_else(|_| socket.receive(long)).ok()
}

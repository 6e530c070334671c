//! Where a raw device's frames come in.

use std::io;

use doorbell_core::wire::EtherType;

use super::LONGEST;
use crate::sys::filter::Test;
use crate::sys::packet::{Kept, PacketSocket, ReceiveRing};
use crate::sys::virtio;

/// How large a ring's slots are, and how many there are. Their size is odd in lines of the cache, so
/// that they do not all begin on the same ones.
#[derive(Clone, Copy)]
struct Shape {
    slot: usize,
    slots: usize,
}

impl Shape {
    /// For a packet of 4096 bytes in any headers, and what the kernel says of it.
    const PACKETS: Self = Self { slot: 69 * 64, slots: 512 };
    /// For any frame, which the kernel then copies to the ring at its sender's cost.
    const FRAMES: Self = Self { slot: 1027 * 64, slots: 256 };

    const fn memory(self) -> usize {
        ReceiveRing::memory(self.slot, self.slots)
    }
}

const _: () = assert!(Shape::FRAMES.slot >= LONGEST + 128);

/// A socket and its ring. One socket, so that all frames are in the order in which they came.
pub struct Intake {
    pub socket: PacketSocket,
    ring: ReceiveRing,
    shape: Shape,
    /// A frame too long for the ring's slots, where frames may hold a run.
    long: Option<Box<[u8]>>,
    /// Frames that had a slot, and no room in the queue.
    lost: u64,
}

impl Intake {
    /// Receives what passes `filter`; with `runs`, super-frames as they are.
    pub fn open(
        index: u32,
        protocol: EtherType,
        filter: &[Vec<Test>],
        runs: bool,
    ) -> io::Result<Self> {
        let socket = PacketSocket::open(runs)?;
        let whole = runs && !socket.queue_long()?;
        let shape = if whole { Shape::FRAMES } else { Shape::PACKETS };
        let ring = ReceiveRing::new(&socket, shape.slot, shape.slots)?;
        socket.filter(filter)?;
        socket.bind(index, protocol)?;
        let long = runs.then(|| vec![0; virtio::LEN + LONGEST].into());
        Ok(Self { socket, ring, shape, long, lost: 0 })
    }

    /// The most memory that it takes.
    pub fn memory(&self) -> usize {
        let long = self.long.as_ref().map_or(0, |long| long.len() + self.socket.queue());
        self.shape.memory() + long
    }

    /// How many frames came while there was no room for them, since this was last asked.
    pub fn overrun(&mut self) -> u64 {
        self.socket.overrun() + std::mem::take(&mut self.lost)
    }

    /// Passes the next frame to `take`, and the size of its packets if it is a run. Whether there
    /// was one.
    #[inline]
    pub fn next(&mut self, take: impl FnOnce(&[u8], Option<u16>)) -> bool {
        let Self { socket, ring, long, lost, .. } = self;
        let taken = ring.next(|bytes, kept| match (kept, long) {
            (Kept::Whole, None) => take(bytes, None),
            (Kept::Whole, Some(_)) => {
                let (frame, segment) = virtio::split(bytes);
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
        });
        taken.is_some()
    }
}

/// Takes the frame that waits in the socket's queue.
#[inline]
fn queued(socket: &PacketSocket, long: &mut [u8]) -> Option<usize> {
    // An error of the interface is told once, and in front of what waits.
    socket.receive(long).or_else(|_| socket.receive(long)).ok()
}

//! Where a raw device's frames come in.

use std::io;

use doorbell_core::wire::EtherType;

use super::LONGEST;
use crate::sys::filter::Test;
use crate::sys::packet::{Kept, PacketSocket, ReceiveRing};
use crate::sys::virtio;

/// Room for a packet of 4096 bytes in any headers, and what the kernel says of it, in slots that do
/// not all fall on the same lines of the cache.
const SLOT: usize = 69 * 64;
const SLOTS: usize = 512;

/// A socket and its ring. One socket, so that all frames are in the order in which they came.
pub struct Intake {
    pub socket: PacketSocket,
    ring: ReceiveRing,
    /// A frame too long for the ring's slots. There is none where frames hold one packet.
    long: Box<[u8]>,
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
        if runs {
            socket.queue_long()?;
        }
        let ring = ReceiveRing::new(&socket, SLOT, SLOTS)?;
        socket.filter(filter)?;
        socket.bind(index, protocol)?;
        let long = if runs { virtio::LEN + LONGEST } else { 0 };
        Ok(Self { socket, ring, long: vec![0; long].into(), lost: 0 })
    }

    /// The most memory that it takes.
    pub fn memory(&self) -> usize {
        let queue = if self.long.is_empty() { 0 } else { self.socket.queue() };
        ReceiveRing::memory(SLOT, SLOTS) + self.long.len() + queue
    }

    /// How many frames came while there was no room for them, since this was last asked.
    pub fn overrun(&mut self) -> u64 {
        self.socket.overrun() + std::mem::take(&mut self.lost)
    }

    /// Passes the next frame to `take`, and the size of its packets if it is a run. Whether there
    /// was one.
    #[inline]
    pub fn next(&mut self, take: impl FnOnce(&[u8], Option<u16>)) -> bool {
        let Self { socket, ring, long, lost } = self;
        let taken = ring.next(|bytes, kept| match kept {
            Kept::Whole if long.is_empty() => take(bytes, None),
            Kept::Whole => {
                let (frame, segment) = virtio::split(bytes);
                take(frame, segment);
            }
            Kept::Queued => match queued(socket, long) {
                Some(len) => {
                    let (frame, segment) = virtio::split(&long[..len]);
                    take(frame, segment);
                }
                None => *lost += 1,
            },
            Kept::Cut => *lost += 1,
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

//! How messages are cut into packets.

use anyhow::Context;
use doorbell_core::wire::{Opcode, PathMtu};
use doorbell_transports::Capabilities;

use crate::perf::shared::stream::Window;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// The bytes of a message.
    pub size: usize,
    /// The most of them in a packet.
    pub mtu: usize,
    /// How many packets a message takes.
    pub packets: u64,
}

impl Shape {
    pub fn new(size: usize, mtu: PathMtu) -> anyhow::Result<Self> {
        let len = u32::try_from(size).context("--size is less than 4 GiB")?;
        Ok(Self { size, mtu: mtu.bytes(), packets: mtu.packets(len).into() })
    }

    /// The place of a packet in its message.
    #[inline]
    fn place(&self, number: u64) -> u64 {
        if self.packets == 1 { 0 } else { number % self.packets }
    }

    /// The length of the packet of a number.
    #[inline]
    pub fn len(&self, number: u64) -> usize {
        match self.packets {
            1 => self.size,
            _ => (self.size - self.place(number) as usize * self.mtu).min(self.mtu),
        }
    }

    #[inline]
    pub fn opcode(&self, number: u64) -> Opcode {
        match self.place(number) {
            _ if self.packets == 1 => Opcode::RcSendOnly,
            0 => Opcode::RcSendFirst,
            place if place + 1 == self.packets => Opcode::RcSendLast,
            _ => Opcode::RcSendMiddle,
        }
    }

    /// Returns the window of a stream of frames. It has so many packets that frames always wait to
    /// be received, and so few that a receiver keeps all of them, because lost packets tell nothing
    /// about a device.
    pub fn window(&self, capabilities: &Capabilities) -> Window {
        /// The most bytes around a packet in a run of packets.
        const AROUND: usize = 24;
        /// The length of the longest frames, in bytes.
        const FRAME: usize = 65_000;
        let fitting = (FRAME / (self.len(0) + AROUND)) as u64;
        match fitting.min(capabilities.run.into()) {
            0 | 1 => Window { packets: 256, report: 64 },
            frame => Window { packets: 16 * frame, report: 4 * frame },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cut_into_packets_of_which_the_last_is_the_rest() {
        let shape = Shape::new(2050, PathMtu::Mtu1024).unwrap();
        let cut: Vec<_> = (3..6).map(|number| (shape.opcode(number), shape.len(number))).collect();
        let first_to_last = [Opcode::RcSendFirst, Opcode::RcSendMiddle, Opcode::RcSendLast];
        assert!(cut.iter().copied().eq(first_to_last.into_iter().zip([1024, 1024, 2])));
        let small = Shape::new(0, PathMtu::Mtu1024).unwrap();
        assert_eq!((small.packets, small.opcode(7), small.len(7)), (1, Opcode::RcSendOnly, 0));
    }
}

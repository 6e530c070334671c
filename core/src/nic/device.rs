//! What the NIC asks of a device, and what a device tells the NIC.

use crate::encap::{Full, Opener, Outer, Path, PathId};
use crate::payload::Payload;
use crate::wire::{Headers, Malformed, Packet};

/// Where packets leave: encoded in the device's own memory, merged into runs where it can.
pub trait Outbox {
    /// Encodes a packet behind those that wait. The ticket says, on a lossless device, when it has
    /// arrived: tickets of one path rise with every packet. Such a device goes by the path's number
    /// alone, for a path may be a mere [`link`](Path::link): what it received by one is answered
    /// along the path of the same number.
    ///
    /// # Errors
    /// When there is no room at this moment. Nothing was taken; the NIC offers it again.
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full>;

    /// Sends what was pushed.
    fn flush(&mut self);

    /// The highest ticket of `path` whose packet the peer's NIC has taken *and answered for*: a
    /// refusal of it, if there is one, can already be received here. So a device tells how far its
    /// NIC has come only after a transmit that followed, and while it
    /// [owes](super::Nic::owes) nothing. Asked of a lossless device only.
    fn delivered(&mut self, path: PathId) -> u64;
}

/// Whom a packet comes from, as far as the device knows.
#[derive(Clone, Copy, Debug)]
pub enum Flow<'a> {
    /// By a link of its own, which leads nowhere else: whatever a lossless device receives.
    Link(PathId),
    /// By a network: the outer headers, and a number that is the same only if they are. It is the
    /// one of [`Arrival::flow`](crate::encap::Arrival::flow), so a NIC is given the packets of one
    /// [`Opener`] only.
    Network(u64, &'a Outer),
}

impl Flow<'_> {
    /// The link, if it is one.
    #[inline]
    pub(super) fn link(self) -> Option<PathId> {
        match self {
            Self::Link(link) => Some(link),
            Self::Network(..) => None,
        }
    }
}

/// Where packets arrive.
pub trait Inbox {
    /// Takes a packet, whose payload lies where it arrived.
    fn packet<P: Payload>(&mut self, flow: Flow<'_>, packet: &Packet<P>);

    /// Hears of a packet, or a frame, that was not one.
    fn malformed(&mut self, why: Malformed);

    /// Hears that whoever was at the other end of a link has left it, or has died: nothing comes by
    /// it any more, and nothing that is under way there will be answered. It is told again when
    /// something was sent there all the same: who connects along it later must not wait for ever.
    fn gone(&mut self, link: PathId);

    /// Takes a frame apart, and takes its packets. `segment` is the size of each, where the device
    /// says that it received a run.
    #[inline]
    fn frame(&mut self, opener: &mut Opener, frame: &[u8], segment: Option<u16>) {
        match opener.open(frame, segment) {
            Err(why) => self.malformed(why),
            Ok(mut arrival) => {
                while let Some(packet) = arrival.next() {
                    match packet {
                        Ok(packet) => {
                            self.packet(Flow::Network(arrival.flow(), arrival.outer()), &packet);
                        }
                        Err(why) => self.malformed(why),
                    }
                }
            }
        }
    }
}

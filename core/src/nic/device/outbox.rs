//! The outbox: how the NIC gives packets to a device.

use crate::encap::{Full, Path, PathId};
use crate::payload::Payload;
use crate::time::Time;
use crate::wire::Headers;

/// The sender of packets: they are encoded in the device's own memory, and merged into runs where
/// the device can.
pub trait Outbox {
    /// Encodes a packet behind those that wait, and returns its ticket. On a lossless device,
    /// tickets say what was [delivered](Self::delivered): those of one path rise with every packet.
    /// Such a device goes by the path's number alone, for a path may be a mere
    /// [`link`](Path::link): what it received by one is answered along the path of the same number.
    ///
    /// # Errors
    /// When there is no room at this moment. Nothing was taken; the NIC offers the packet again. A
    /// lossless device, whose peers may read as slowly as they like, says so of the path alone: the
    /// NIC goes on with other paths.
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full>;

    /// Announces that a packet will be pushed along a path presently, if all goes well: a device
    /// may begin with what it can do before it has the packet. It is of no use to announce too
    /// early, since a peer that looks meanwhile undoes the preparation.
    #[inline]
    fn prepare(&mut self, path: PathId) {
        let _ = path;
    }

    /// Sends what was pushed.
    fn flush(&mut self);

    /// The time by the device's clock, for measuring how long packets are under way. A NIC may have
    /// been told the time a while ago. `None` if what it was told is right.
    #[inline]
    fn time(&self) -> Option<Time> {
        None
    }

    /// The highest ticket of `path` whose packet the peer's NIC has taken *and answered for*, when
    /// all that the peer had sent by then has been handed to the [`Inbox`](crate::nic::Inbox) here.
    /// So if the packet was refused, the NAK has come before. For this, a device reports how far
    /// its own NIC has come only after a transmit that followed, and only while the NIC
    /// has no [response to send](crate::nic::Nic::unsent_responses) there. With that report, or by
    /// the order in which things arrive, it says how much is to be received here before the report
    /// holds. A device that can't tell yet reports less. Only lossless devices are asked.
    fn delivered(&mut self, path: PathId) -> u64;
}

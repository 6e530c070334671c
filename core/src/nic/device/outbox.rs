//! The outbox: how the NIC gives packets to a device.

use crate::encap::{Full, Path, PathId};
use crate::payload::Payload;
use crate::wire::Headers;

/// Where packets leave: encoded in the device's own memory, merged into runs where it can.
pub trait Outbox {
    /// Encodes a packet behind those that wait. The ticket says, on a lossless device, when it has
    /// arrived: tickets of one path rise with every packet. Such a device goes by the path's number
    /// alone, for a path may be a mere [`link`](Path::link): what it received by one is answered
    /// along the path of the same number.
    ///
    /// # Errors
    /// When there is no room at this moment. Nothing was taken; the NIC offers it again. A lossless
    /// device, whose peers may read as slowly as they like, says so of the path alone: the NIC goes
    /// on with others.
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full>;

    /// A packet will be pushed along a path presently, if all goes well: what a device can begin
    /// with before it has the packet, it may. Too early is of no use: a peer that looks meanwhile
    /// undoes it.
    #[inline]
    fn prepare(&mut self, path: PathId) {
        let _ = path;
    }

    /// Sends what was pushed.
    fn flush(&mut self);

    /// The highest ticket of `path` whose packet the peer's NIC has taken *and answered for*, when
    /// all that it had sent by then has been handed to the [`Inbox`] here: a refusal of the packet,
    /// if there is one, is known. So a device tells how far its NIC has come only after a transmit
    /// that followed, and while it [owes](crate::nic::Nic::owes) nothing there; and it says with that,
    /// or by the order in which things arrive, how much is to be received before it is true here. A
    /// device that can't tell yet says less. Asked of a lossless device only.
    fn delivered(&mut self, path: PathId) -> u64;
}

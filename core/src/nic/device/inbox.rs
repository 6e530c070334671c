//! The inbox: how a device gives packets to the NIC.

use crate::encap::{Host, PathId};
use crate::nic::device::flow::Flow;
use crate::payload::Payload;
use crate::time::Time;
use crate::wire::{AfterBth, Malformed, OpcodeInfo, Packet, RawBth};

/// The receiver of what a device hands over: packets, and news of links and ports.
pub trait Inbox {
    /// Takes a packet, whose payload lies where it arrived.
    fn packet<P: Payload>(&mut self, flow: Flow<'_>, packet: &Packet<P>);

    /// Takes a packet by the fast path if its header, at a glance, is that of the next packet of a
    /// common kind. Otherwise nothing is done, and the packet is to be taken in the general way.
    /// `behind` is all that follows the BTH: other headers, if there are any, and payload. Returns
    /// whether the packet was taken.
    #[inline(always)]
    fn fast_path(&mut self, flow: Flow<'_>, bth: RawBth, behind: impl AfterBth) -> bool {
        let _ = (flow, bth, behind);
        false
    }

    /// Takes a packet whose opcode is known when this is compiled: its `row` of the table of
    /// opcodes is a constant.
    #[inline]
    fn packet_of_opcode<P: Payload>(&mut self, flow: Flow<'_>, packet: Packet<P>, row: OpcodeInfo) {
        let _ = row;
        self.packet(flow, &packet);
    }

    /// Takes notice of when the packets that follow arrived at the host, by the device's clock: they
    /// may have waited for this process since. Without this, they are taken to arrive now.
    #[inline]
    fn arrived(&mut self, at: Time) {
        let _ = at;
    }

    /// Takes notice of a packet, or a frame, that was malformed.
    fn malformed(&mut self, why: Malformed);

    /// Takes notice that the peer at the other end of a link has left it, or has died: nothing
    /// comes by the link any more, and nothing that is under way there will be acknowledged. The
    /// device reports this again when something was sent there all the same, so that nobody who
    /// connects along the link later waits for ever.
    ///
    /// Until the next burst, the device still reports how far the peer had come. So between the
    /// two, what was delivered is to be [collected](crate::nic::Nic::collect).
    fn gone(&mut self, link: PathId);

    /// Takes notice that the system of a host has said, by an ICMP message, that nobody is at the
    /// port which a packet was sent to. `quoted` is how that packet began, from its BTH on, as far
    /// as the message tells. Anybody can forge such a message, and one may be late: for a packet on
    /// a connection it is a reason to ask the peers there for a sign of life at once, and no more.
    /// A [request for a connection](crate::nic::Event::RequestBounced) has failed, if the message
    /// quotes enough of it.
    fn port_closed(&mut self, at: Host, quoted: &[u8]) {
        let (_, _) = (at, quoted);
    }
}

//! The inbox: how a device gives packets to the NIC.

use crate::encap::{Host, Opener, Outer, PathId, shm_record};
use crate::nic::device::flow::Flow;
use crate::payload::Payload;
use crate::sync::AtomicU64;
use crate::wire::{AfterBth, Bth, Malformed, OpcodeInfo, Packet, RawBth};

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

    /// Takes a frame apart, and takes its packets. `segment` is the size of each packet, where the
    /// device says that it received a run.
    #[inline]
    fn frame(&mut self, opener: &mut Opener, frame: &[u8], segment: Option<u16>)
    where
        Self: Sized,
    {
        let mut arrival = match opener.open(frame, segment) {
            Ok(arrival) => arrival,
            Err(why) => return self.malformed(why),
        };
        while let Some(sealed) = arrival.next_sealed() {
            let Some(packet) = arrival.check(sealed) else {
                self.malformed(arrival.wrong());
                continue;
            };
            let (flow, outer) = (arrival.flow(), arrival.outer());
            if let Some((bth, behind)) = Packet::glance(packet)
                && self.fast_path(Flow::Network(flow, outer), bth, behind)
            {
                continue;
            }
            any_of_frame(self, flow, outer, packet);
        }
    }

    /// Takes the packet of `len` bytes in a [record](crate::encap::shm_record), whose first word was
    /// loaded as `first`.
    #[inline]
    fn record(&mut self, link: PathId, record: &[AtomicU64], first: u64, len: usize)
    where
        Self: Sized,
    {
        if let Some((bth, behind)) = shm_record::glance(record, first, len)
            && self.fast_path(Flow::Link(link), bth, behind)
        {
            return;
        }
        any_of_record(self, link, record, first, len);
    }
}

/// Takes any packet of a frame. This is a function of its own, so that the fast path stays short.
#[inline(never)]
fn any_of_frame<I: Inbox>(inbox: &mut I, flow: u64, outer: &Outer, packet: &[u8]) {
    match Packet::begin(packet) {
        Ok((bth, rest)) => by_opcode(inbox, Flow::Network(flow, outer), bth, rest),
        Err(why) => inbox.malformed(why),
    }
}

/// Takes any packet of a record. This is a function of its own, so that the fast path stays short.
#[inline(never)]
fn any_of_record<I: Inbox>(
    inbox: &mut I,
    link: PathId,
    record: &[AtomicU64],
    first: u64,
    len: usize,
) {
    match shm_record::begin(record, first, len) {
        Ok(bth) => by_opcode(inbox, Flow::Link(link), bth, shm_record::Rest { record, len }),
        Err(why) => inbox.malformed(why),
    }
}

/// Does something with the row of the table of opcodes for a packet's opcode. For the opcodes that
/// are named, which are the most common, the row is a constant, so that much of what follows is
/// decided when this is compiled.
macro_rules! by_row {
    ($opcode:expr, [$($known:ident),+], $row:ident => $then:expr, $other:ident => $else:expr) => {
        match $opcode {
            $($crate::wire::Opcode::$known => {
                let $row = const { *$crate::wire::Opcode::$known.info() };
                $then
            })+
            $other => $else,
        }
    };
}
pub(crate) use by_row;

/// Takes a packet by its opcode. Parsing the headers of the common opcodes takes a few loads.
#[inline(always)]
fn by_opcode<I: Inbox>(inbox: &mut I, flow: Flow<'_>, bth: Bth, behind: impl AfterBth) {
    let taken = by_row!(
        bth.opcode(),
        [
            RcReadRequest,
            RcReadResponseOnly,
            RcFetchAdd,
            RcCompareSwap,
            RcAtomicAcknowledge,
            RcAcknowledge
        ],
        row => behind.parse(bth, row.layout).map(|packet| inbox.packet_of_opcode(flow, packet, row)),
        other => behind.parse(bth, other.layout()).map(|packet| inbox.packet(flow, &packet))
    );
    if let Err(why) = taken {
        inbox.malformed(why);
    }
}
